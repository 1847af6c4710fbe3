"""No client can harm a node or what other clients have in it."""

import random
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headrace.protocol.frame import encode_request
from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from tests.support_e2e import PATIENCE_SECONDS, create_topic
from tests.support_hostile import TOPICS, Lingerers, assault
from tests.support_node import RawClient, RunningNode, latest_version

SEED = 20_260_115
REQUESTS = 100_000
REQUESTS_AT_FIRST = 20_000
GROWTH_KB_MAX = 10 * 1024
IDLE_CONNECTIONS = 1_000
PARTITIONS = 3
ROUND_RECORDS = 300
PAUSE_SECONDS = 0.2
CHECKED = "checked"
RETENTION_MS = "86400000"


class CheckedWorkload:
    """Produces, consumes and asks, round after round, and compares everything with what it must be."""

    def __init__(self, bootstrap: str) -> None:
        self.rounds = 0
        self.failures: list[str] = []
        self._ends = [0] * PARTITIONS
        self._produced = 0
        common = {"bootstrap.servers": bootstrap, "error_cb": self._on_error}
        self._producer = Producer({**common, "enable.idempotence": True, "linger.ms": 1})
        self._consumer = Consumer({**common, "group.id": "not-used", "auto.offset.reset": "error"})
        self._consumer.assign([TopicPartition(CHECKED, each, 0) for each in range(PARTITIONS)])
        self._admin = AdminClient(common)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _on_error(self, error: Any) -> None:
        self.failures.append(f"the client met {error}")

    def _run(self) -> None:
        try:
            # A pause leaves the machine to the attack.
            while not self._stop.wait(PAUSE_SECONDS):
                self._round()
                self.rounds += 1
        except Exception as error:  # noqa: BLE001 the test's own thread looks at it
            self.failures.append(repr(error))

    def _round(self) -> None:
        for number in range(self._produced, self._produced + ROUND_RECORDS):
            self._producer.produce(
                CHECKED, value_of(number), partition=number % PARTITIONS, on_delivery=self._on_delivery
            )
        self._produced += ROUND_RECORDS
        assert self._producer.flush(PATIENCE_SECONDS) == 0
        for message in self._consumer.consume(ROUND_RECORDS, PATIENCE_SECONDS):
            self._check(message)
        topics = self._admin.list_topics(CHECKED, PATIENCE_SECONDS).topics
        assert len(topics[CHECKED].partitions) == PARTITIONS
        (described,) = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, CHECKED)]).values()
        assert described.result(PATIENCE_SECONDS)["retention.ms"].value == RETENTION_MS

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(f"{message.value()!r} was not delivered: {error}")

    def _check(self, message: Any) -> None:
        assert message.error() is None, message.error()
        partition, offset = message.partition(), message.offset()
        assert offset == self._ends[partition], (partition, offset)
        assert message.value() == value_of(offset * PARTITIONS + partition), (partition, offset)
        self._ends[partition] += 1

    def finish(self) -> None:
        """Stop, and read to the end what was produced last."""
        self._stop.set()
        self._thread.join()
        while not self.failures and sum(self._ends) < self._produced:
            messages = self._consumer.consume(ROUND_RECORDS, PATIENCE_SECONDS)
            assert messages, f"{sum(self._ends)} of {self._produced} records came"
            for message in messages:
                self._check(message)
        self._consumer.close()


def value_of(number: int) -> bytes:
    return b"%d:" % number + random.Random(number).randbytes(100)


def resident_kb(node: RunningNode) -> int:
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(node.pid)]))


def test_a_hundred_thousand_hostile_requests_harm_nobody(start_node: Callable[..., RunningNode]) -> None:
    sys.stdout.write(f"seed {SEED}\n")
    # Topics that mutated names would bring about take memory that is well spent.
    node = start_node(auto_create_topics_enable="false")
    create_topic(node.bootstrap, CHECKED, PARTITIONS, retention_ms=RETENTION_MS)
    with ExitStack() as stack:
        lingerers = Lingerers(node, IDLE_CONNECTIONS, stack)
        workload = CheckedWorkload(node.bootstrap)
        stack.callback(workload.finish)
        attack = stack.enter_context(assault(node, SEED))
        attack.run(REQUESTS_AT_FIRST)
        kb_at_first = resident_kb(node)
        attack.run(REQUESTS)
        kb_at_last = resident_kb(node)
        assert lingerers.finish() == IDLE_CONNECTIONS
    assert workload.failures == []
    assert workload.rounds > 0
    sys.stdout.write(
        f"{kb_at_first} kB after {REQUESTS_AT_FIRST} requests, {kb_at_last} kB after {REQUESTS}\n"
    )
    sys.stdout.write(f"{workload.rounds} rounds of the checked workload\n")
    assert kb_at_last - kb_at_first <= GROWTH_KB_MAX
    assert [line for line in node.lines if not LINE.match(line)] == []
    taken = consume_all(node)
    sys.stdout.write(f"{taken} records of the attackers' were taken\n")
    assert taken > 0
    assert node.stop() == 0, node.output[-2000:]


def consume_all(node: RunningNode) -> int:
    """Read everything that the attackers got stored, since nothing may be there that a consumer chokes on."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "not-used",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    topics = consumer.list_topics(timeout=PATIENCE_SECONDS).topics
    places = [
        TopicPartition(name, partition, 0)
        for name in TOPICS
        if name in topics
        for partition in topics[name].partitions
    ]
    consumer.assign(places)
    count = ends = 0
    while ends < len(places):
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None
        error = message.error()
        assert error is None or error.code() == KafkaError._PARTITION_EOF, error
        ends += error is not None
        count += error is None
    consumer.close()
    return count


#: Every line is of its own, and none tells of a failure of the node's.
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (INFO|WARNING) .* \(headrace[\w.]*\)$")


def test_a_size_beyond_the_bound_is_refused_before_it_is_read(start_node: Callable[..., RunningNode]) -> None:
    node = start_node(socket_request_max_bytes="10000")
    for size in (10_001, 2**31 - 1, -1, -(2**31)):
        with node.connect() as client:
            client.socket.sendall(struct.pack(">i", size))
            assert client.is_closed_by_peer()
        node.wait_for(rf"closing connection of 127\.0\.0\.1:\d+ .*\b{abs(size)}\b")


def test_an_api_or_version_that_is_not_offered_closes_with_its_reason(headrace_node: RunningNode) -> None:
    for key, version, reason in ((3, 99, r"Metadata \(API key 3\) version 99"), (999, 0, "API key 999")):
        with headrace_node.connect() as client:
            body = struct.pack(">hhih", key, version, 7, -1)
            client.socket.sendall(struct.pack(">i", len(body)) + body)
            assert client.is_closed_by_peer()
        headrace_node.wait_for(rf"closing connection of .*{reason}")


def test_a_request_that_comes_byte_by_byte_is_answered_while_others_are(headrace_node: RunningNode) -> None:
    frame = encode_request(ApiVersionsRequest(), 0, 1, "slow")
    with headrace_node.connect() as slow, headrace_node.connect() as other:
        for position in range(len(frame)):
            slow.socket.sendall(frame[position : position + 1])
            assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        assert slow.receive(ApiVersionsResponse, 0, 1).error_code == 0


def test_announced_bytes_are_not_memory_until_they_come(headrace_node: RunningNode) -> None:
    before = resident_kb(headrace_node)
    with ExitStack() as stack:
        announcement = struct.pack(">i", 100_000_000) + b"\x00" * 100
        clients = [stack.enter_context(headrace_node.connect()) for _ in range(20)]
        for client in clients:
            client.socket.sendall(announcement)
        with headrace_node.connect() as other:
            assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
        assert resident_kb(headrace_node) - before < 20_000


def test_unacknowledged_produce_requests_never_shift_replies(headrace_node: RunningNode) -> None:
    topic = create_topic(headrace_node.bootstrap, "acks-0")
    version = 12
    with headrace_node.connect() as client:
        expected: list[tuple[int, Any, int]] = []
        for number in range(100):
            client.send(produce_request(topic, number, acks=0), version)
            if number % 5 == 0:
                expected.append((client.send(ApiVersionsRequest(), 0), ApiVersionsResponse, 0))
                asked = client.send(produce_request(topic, number, acks=-1), version)
                expected.append((asked, ProduceResponse, version))
        receive_in_order(client, expected)


def test_an_unacknowledged_produce_request_that_fails_closes_its_connection_only(
    headrace_node: RunningNode,
) -> None:
    with headrace_node.connect() as client, headrace_node.connect() as other:
        client.send(produce_request("no-such-topic", 1, acks=0), 12)
        assert client.is_closed_by_peer()
        assert other.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def receive_in_order(client: RawClient, expected: list[tuple[int, Any, int]]) -> None:
    offsets = []
    for correlation_id, response, version in expected:
        reply = client.receive(response, version, correlation_id)
        if response is ProduceResponse:
            (partition,) = reply.responses[0].partition_responses
            assert partition.error_code == 0
            offsets.append(partition.base_offset)
    assert offsets == sorted(set(offsets))


def produce_request(topic: str, number: int, acks: int) -> ProduceRequest:
    batch = build_batch([NewRecord(1_700_000_000_000, b"key", b"%d" % number, ())])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])


def test_nothing_of_a_malformed_batch_is_stored(headrace_node: RunningNode) -> None:
    topic = create_topic(headrace_node.bootstrap, "poison")
    rng = random.Random(SEED)
    good = build_batch([NewRecord(1_700_000_000_000, b"key", b"value", ())])
    version = latest_version(ProduceRequest) - 1
    refused = 0
    with headrace_node.connect() as client:
        for _ in range(300):
            bad = bytearray(good)
            # The base offset and the leader epoch are the node's to write; all else is under a checksum.
            position = rng.choice([*range(8, 12), *range(16, len(bad))])
            bad[position] ^= 1 << rng.randrange(8)
            data = TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=bytes(bad))]
            )
            reply = client.ask(ProduceRequest(acks=-1, topic_data=[data]), version, ProduceResponse)
            (partition,) = reply.responses[0].partition_responses
            refused += partition.error_code != 0 and partition.base_offset == -1
        stored = client.ask(produce_request(topic, 1, acks=-1), version, ProduceResponse)
    assert refused == 300
    assert stored.responses[0].partition_responses[0].base_offset == 0
