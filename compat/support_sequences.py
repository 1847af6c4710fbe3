"""A producer that numbers its batches itself, to see whether a broker remembers them."""

import time
from typing import NamedTuple

from compat.support_raw import ask
from headrace.errors import ErrorCode
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import build_batch

BATCHES_REMEMBERED = 5
RECORDS_OF_BATCH = 3
INIT_PRODUCER_ID_VERSION = 4
PRODUCE_VERSION = 12
#: Error and offset of a batch that does not follow the last one.
REFUSED = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


class _Written(NamedTuple):
    batch: bytes
    base_offset: int


class SequencedProducer:
    """Writes batches of an idempotent producer to partition 0 of a topic, and writes them again later."""

    def __init__(self, address: str, topic: str) -> None:
        self._address = address
        self._topic = topic
        self._producer_id = -1
        self._producer_epoch = -1
        self._next_sequence = 0
        self._written: list[_Written] = []

    def write(self) -> None:
        """Write a few batches more than a broker remembers of a producer."""
        if self._producer_id < 0:
            self._get_producer_id()
        for _ in range(BATCHES_REMEMBERED + 1):
            batch = self._batch(self._next_sequence)
            reply = self._produce(batch)
            assert reply.error_code == ErrorCode.NONE, reply
            assert reply.base_offset == self._next_sequence, "what was there before is not what was written"
            self._written.append(_Written(batch, reply.base_offset))
            self._next_sequence += RECORDS_OF_BATCH

    def check(self) -> None:
        """The last batch is known again; none of those before, nor one after a gap, is written.

        Of the batches before the last one, the files of a stopped broker tell nothing: after a restart it may
        take them for what they are or for a gap.
        """
        if not self._written:
            return
        *_, last = self._written
        outcome = self._outcome(last.batch)
        assert outcome == (ErrorCode.NONE, last.base_offset), f"{outcome} for offset {last.base_offset}"
        for earlier in self._written[-BATCHES_REMEMBERED:-1]:
            assert self._outcome(earlier.batch) in ((ErrorCode.NONE, earlier.base_offset), REFUSED)
        for wrong in (self._batch(self._next_sequence + 1), self._written[0].batch):
            assert self._outcome(wrong) == REFUSED

    def _outcome(self, batch: bytes) -> tuple[int, int]:
        reply = self._produce(batch)
        return reply.error_code, reply.base_offset

    def _batch(self, sequence: int) -> bytes:
        now = int(time.time() * 1000)
        records = [(now, None, b"%d" % (sequence + index), ()) for index in range(RECORDS_OF_BATCH)]
        return build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=sequence,
        )

    def _get_producer_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        reply = ask(self._address, request, INIT_PRODUCER_ID_VERSION, InitProducerIdResponse)
        assert reply.error_code == ErrorCode.NONE, reply
        self._producer_id, self._producer_epoch = reply.producer_id, reply.producer_epoch

    def _produce(self, batch: bytes) -> PartitionProduceResponse:
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self._topic, partition_data=[data])],
        )
        reply = ask(self._address, request, PRODUCE_VERSION, ProduceResponse)
        return reply.responses[0].partition_responses[0]
