"""A node's transaction coordinator beside Kafka's: transactions a second. One machine, in turns."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack

from bench.bench_node import SECONDS, SECONDS_VARIABLE, Contest
from bench.harness import Row
from bench.node_brokers import Broker, brokers
from bench.node_starts import first_start
from bench.node_wire import Refused, WireClient, create_topic
from headrace.errors import ErrorCode
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch

TOPIC = "transacted"
RECORDS = 10
RECORD_BYTES = 100
TRANSACTION = 1
NEW, OLD = 2, 0
PRODUCE_VERSION = {NEW: 12, OLD: 11}
END_VERSION = {NEW: 5, OLD: 4}
ADD_VERSION = 3
_WAIT_S = 60.0


class TransactionalProducer:
    """One producer on a connection of its own, of the new or of the old kind."""

    def __init__(self, broker: Broker, name: str, partition: int, kind: int) -> None:
        self._client = WireClient(broker.host, broker.port)
        self._name = name
        self._partition = partition
        self._kind = kind
        self._sequence = 0
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        deadline = time.perf_counter() + _WAIT_S
        while (reply := self._client.call(request, InitProducerIdResponse, 4)).error_code:
            if time.perf_counter() > deadline:
                raise Refused("InitProducerId", reply.error_code)
        self._id, self._epoch = reply.producer_id, reply.producer_epoch

    def close(self) -> None:
        self._client.socket.close()

    def send_partition(self) -> None:
        topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=[self._partition])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        self._client.socket.sendall(encode_request(request, ADD_VERSION, 1, "bench"))

    def is_added(self) -> bool:
        _, reply = decode_response(AddPartitionsToTxnResponse, ADD_VERSION, self._client.frame())
        code = reply.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return _is_done("AddPartitionsToTxn", code)

    def send_records(self) -> None:
        records = build_batch(
            [NewRecord(0, None, bytes(RECORD_BYTES))] * RECORDS,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        data = [PartitionProduceData(index=self._partition, records=records)]
        request = ProduceRequest(
            transactional_id=self._name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
        )
        self._client.socket.sendall(encode_request(request, PRODUCE_VERSION[self._kind], 1, "bench"))

    def is_written(self) -> bool:
        _, reply = decode_response(ProduceResponse, PRODUCE_VERSION[self._kind], self._client.frame())
        return _is_done("Produce", reply.responses[0].partition_responses[0].error_code)

    def send_end(self) -> None:
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        self._client.socket.sendall(encode_request(request, END_VERSION[self._kind], 1, "bench"))

    def is_ended(self) -> bool:
        _, reply = decode_response(EndTxnResponse, END_VERSION[self._kind], self._client.frame())
        if not _is_done("EndTxn", reply.error_code):
            return False
        self._sequence += RECORDS
        if self._kind == NEW:
            self._id, self._epoch, self._sequence = reply.producer_id, reply.producer_epoch, 0
        return True


def _is_done(what: str, code: int) -> bool:
    """False if the transaction before is still ending, so that one has to ask again."""
    if code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS):
        return False
    if code:
        raise Refused(what, code)
    return True


def run() -> list[Row]:
    """All rows."""
    seconds = float(os.environ.get(SECONDS_VARIABLE, SECONDS))
    with brokers() as (ours, theirs, reason):
        if theirs is None:
            print(f"Kafka cannot be had, so only our own figures follow: {reason}")
        contest = Contest([ours] if theirs is None else [ours, theirs], seconds)
        for broker in contest.brokers:
            first_start(broker)
            with WireClient(broker.host, broker.port) as client:
                create_topic(client, TOPIC, 8)
                _await_coordinator(client)
        contest.each(lambda broker: _transactions_per_second(broker, 8, NEW, seconds))
        return [
            _row(contest, 1, NEW, "one producer"),
            _row(contest, 8, NEW, "8 producers"),
            _row(contest, 8, OLD, "8 producers, before KIP-890"),
        ]


def _row(contest: Contest, producers: int, kind: int, who: str) -> Row:
    return contest.highest(
        f"transactions of {RECORDS} records, {who}",
        1.0,
        lambda rate: f"{rate:,.0f}/s",
        lambda broker: _transactions_per_second(broker, producers, kind, contest.seconds / 3),
    )


def _await_coordinator(client: WireClient) -> None:
    deadline = time.perf_counter() + _WAIT_S
    request = FindCoordinatorRequest(key="any", key_type=TRANSACTION)
    while client.call(request, FindCoordinatorResponse, 1).error_code:
        if time.perf_counter() > deadline:
            raise Refused("the coordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _transactions_per_second(broker: Broker, producers: int, kind: int, seconds: float) -> float:
    """Every producer waits for its replies; all producers work at once."""
    with ExitStack() as stack:
        working = []
        for number in range(producers):
            producer = TransactionalProducer(broker, f"transacting-{number}", number, kind)
            stack.callback(producer.close)
            working.append(producer)
        count = 0
        started = time.perf_counter()
        while (elapsed := time.perf_counter() - started) < seconds:
            if kind == OLD:
                _until_done(working, TransactionalProducer.send_partition, TransactionalProducer.is_added)
            _until_done(working, TransactionalProducer.send_records, TransactionalProducer.is_written)
            _until_done(working, TransactionalProducer.send_end, TransactionalProducer.is_ended)
            count += producers
        return count / elapsed


def _until_done(
    producers: list[TransactionalProducer],
    send: Callable[[TransactionalProducer], None],
    is_done: Callable[[TransactionalProducer], bool],
) -> None:
    """Have all producers do something, again those that have to wait for the transaction before."""
    while producers:
        for producer in producers:
            send(producer)
        producers = [producer for producer in producers if not is_done(producer)]
