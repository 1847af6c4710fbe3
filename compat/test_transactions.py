"""Kafka's own transactional clients and tools on a node, and transactions that change hands while open."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.support_seat import Seat, Software, chosen_target
from compat.support_tools import PRODUCER_PERFORMANCE, KafkaTools
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.end_txn import EndTxnRequest
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support_answers import Connection
from tests.support_data import batch
from tests.support_e2e import create_topic
from tests.support_exactly_once import committed_values

TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOPIC, GROUP = "changing-hands", "group-changing-hands"
GROUP_KEY, TRANSACTION_KEY = 0, 1
READ_COMMITTED = 1
WHOLE_TIMEOUT_S = 600
PASSING = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
NOT_THERE = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
NOT_YET = {
    *PASSING,
    *NOT_THERE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


@pytest.fixture
def seat(kafka_libs: Path, tmp_path: Path) -> Iterator[Seat]:
    """A place that Kafka and Headrace may take in turn."""
    taken = Seat(tmp_path)
    yield taken
    taken.kill()


class Owner:
    """A producer of the newest kind with an open transaction, that does not mind who its broker is."""

    def __init__(self, seat: Seat, transactional_id: str) -> None:
        self._seat = seat
        self._id = transactional_id
        self._producer = (-1, -1)
        self._sequence = 0

    def begin(self) -> None:
        for kind in (GROUP_KEY, TRANSACTION_KEY):
            self._ask(FindCoordinatorRequest(key=self._id, key_type=kind), 1, lambda reply: reply.error_code)
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=600_000)
        reply = self._ask(request, 4, lambda reply: reply.error_code)
        self._producer = reply.producer_id, reply.producer_epoch

    def write(self, value: bytes) -> None:
        producer_id, epoch = self._producer
        records = batch(
            1, value=value, producer_id=producer_id, epoch=epoch, sequence=self._sequence, transactional=True
        )
        data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(transactional_id=self._id, acks=-1, timeout_ms=5_000, topic_data=[data])
        self._ask(request, 12, lambda reply: reply.responses[0].partition_responses[0].error_code)
        self._sequence += 1

    def commit_offset(self, offset: int) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=GROUP,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
        )
        self._ask(request, 5, lambda reply: reply.topics[0].partitions[0].error_code)

    def end(self, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        reply = self._ask(request, 5, lambda reply: reply.error_code)
        self._producer = reply.producer_id, reply.producer_epoch
        self._sequence = 0

    def _ask(self, request: Message, version: int, code_of: Callable[[Any], int]) -> Any:
        return ask(self._seat, request, version, code_of)


def ask(seat: Seat, request: Message, version: int, code_of: Callable[[Any], int]) -> Any:
    """The reply of whoever has the seat, once there is a good one."""
    host, port = seat.address.split(":")
    with Connection(host, int(port)) as connection:
        while True:
            reply = connection.ask(request, version)
            code = ErrorCode(code_of(reply))
            if code is ErrorCode.NONE:
                return reply
            assert code in NOT_YET, f"{request} was answered by {seat.running} with {code.name}"


def stable_offset(seat: Seat) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[partition])],
    )
    reply = ask(seat, request, 7, lambda reply: reply.topics[0].partitions[0].error_code)
    return int(reply.topics[0].partitions[0].offset)


def committed_offset(seat: Seat) -> int:
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    request = OffsetFetchRequest(group_id=GROUP, topics=topics)
    reply = ask(seat, request, 7, lambda reply: reply.error_code)
    return int(reply.topics[0].partitions[0].committed_offset)


def await_values(seat: Seat, values: list[bytes]) -> None:
    """Wait until consumers see these values, and no others on the way there: markers come a little later."""
    while (seen := committed_values(seat.address, TOPIC)) != values:
        assert seen == values[: len(seen)]


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
@pytest.mark.parametrize(
    ("first", "is_killed"),
    [(Software.KAFKA, True), (Software.HEADRACE, False)],
    ids=["killed", "stopped"],
)
def test_an_open_transaction_changes_hands(seat: Seat, first: Software, is_killed: bool) -> None:
    others = {Software.KAFKA: Software.HEADRACE, Software.HEADRACE: Software.KAFKA}
    seat.format(first)
    seat.start(first)
    create_topic(seat.address, TOPIC)
    owner, rival = Owner(seat, "owner"), Owner(seat, "rival")
    owner.begin()
    rival.begin()
    owner.write(b"one")
    owner.commit_offset(1)
    rival.write(b"aborted")
    for turn, software in enumerate((others[first], first)):
        seat.kill() if is_killed else seat.stop()
        seat.start(software)
        assert stable_offset(seat) == 0
        assert committed_offset(seat) == -1
        owner.write(b"more %d" % turn)
        rival.write(b"aborted %d" % turn)
    owner.commit_offset(3)
    owner.end(commit=True)
    # The rest lies behind the first record of the rival.
    await_values(seat, [b"one"])
    rival.end(commit=False)
    owner.write(b"next")
    seat.kill() if is_killed else seat.stop()
    seat.start(others[first])
    owner.end(commit=True)
    values = [b"one", b"more 0", b"more 1", b"next"]
    await_values(seat, values)
    assert committed_offset(seat) == 3


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_kafkas_tools_see_list_and_abort_transactions(seat: Seat) -> None:
    seat.format(chosen_target())
    seat.start(chosen_target())
    create_topic(seat.address, TOPIC)
    owner = Owner(seat, "owner")
    owner.begin()
    owner.write(b"open")
    server = ("--bootstrap-server", seat.address)
    with KafkaTools() as tools:
        listed = tools.run(TRANSACTIONS, *server, "list").lines
        assert re.fullmatch(r"owner\s+1\s+\d+\s+Ongoing", listed[1]), listed
        described = tools.run(TRANSACTIONS, *server, "describe", "--transactional-id", "owner").lines
        assert re.search(rf"Ongoing\s+600000\s+\d+\s+\d+\s+{TOPIC}-0", described[1]), described
        place = ("--topic", TOPIC, "--partition", "0")
        producers = tools.run(TRANSACTIONS, *server, "describe-producers", *place).lines
        assert re.fullmatch(r"\d+\s+0\s+-1\s+0\s+\d+\s+0", producers[1]), producers
        hanging = tools.run(TRANSACTIONS, *server, "find-hanging", "--broker-id", "1").lines
        assert len(hanging) == 1, hanging
        tools.run(TRANSACTIONS, *server, "abort", *place, "--start-offset", "0")
        assert stable_offset(seat) == 2


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_kafkas_producer_writes_in_transactions_and_its_consumer_reads_what_is_committed(seat: Seat) -> None:
    seat.format(chosen_target())
    seat.start(chosen_target())
    create_topic(seat.address, TOPIC)
    owner = Owner(seat, "owner")
    owner.begin()
    owner.write(b"aborted")
    owner.end(commit=False)
    with KafkaTools() as tools:
        done = tools.run(
            PRODUCER_PERFORMANCE,
            *("--bootstrap-server", seat.address),
            *("--topic", TOPIC, "--num-records", "2000", "--record-size", "10", "--throughput", "-1"),
            *("--transactional-id", "performer", "--transaction-duration-ms", "20"),
        )
        assert "2000 records sent" in done.out
        read = tools.run(
            CONSOLE_CONSUMER,
            *("--bootstrap-server", seat.address, "--topic", TOPIC, "--from-beginning"),
            *("--isolation-level", "read_committed", "--max-messages", "2000"),
        )
    assert len(read.lines) == 2000
    assert "aborted" not in read.out
