"""What was acknowledged is there after every kind of end."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Seen, Sent, create_topic
from tests.support_node import NodeDied, RawClient, RunningNode, headrace

PRODUCE_VERSION = 12
FETCH_VERSION = 12


class Writer:
    """Produces numbers until told to stop, and notes which were acknowledged at which offset."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[int, int] = {}
        self._topic = topic
        self._stop = threading.Event()
        self._has_some = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 100,
                "message.timeout.ms": int(PATIENCE_SECONDS * 1000),
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                self._producer.produce(self._topic, b"%d" % number, on_delivery=self._on_delivery)
                number += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged[int(message.value())] = message.offset()
            if len(self.acknowledged) >= 2000:
                self._has_some.set()

    def wait_for_some(self) -> None:
        """Return once a good many records have been acknowledged since the last call."""
        assert self._has_some.wait(PATIENCE_SECONDS)

    def finish(self) -> None:
        """Stop producing, and wait until everything is acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("hard", [False, True], ids=["stopped", "killed"])
def test_nothing_acknowledged_is_lost_or_written_twice_under_load(
    headrace_node: RunningNode, hard: bool
) -> None:
    topic = create_topic(headrace_node.bootstrap, "load")
    writer = Writer(headrace_node.bootstrap, topic)
    writer.wait_for_some()
    headrace_node.restart(hard=hard)
    writer.finish()
    acknowledged = writer.acknowledged
    seen = ConfluentClient(headrace_node.bootstrap).consume(topic, len(acknowledged))
    assert [int(record.value or b"") for record in seen] == sorted(acknowledged)
    assert all(acknowledged[int(record.value or b"")] == record.offset for record in seen)


def test_topics_configurations_and_records_outlive_both_kinds_of_end(headrace_node: RunningNode) -> None:
    client = ConfluentClient(headrace_node.bootstrap)
    topic = create_topic(headrace_node.bootstrap, "kept", 2, retention_ms="-1", segment_bytes="1048576")
    expected = []
    for round_number, hard in enumerate([False, True, True, False]):
        client.produce(topic, [Sent(b"round %d" % round_number, b"key", codec_header(round_number))])
        expected.append(Seen(round_number, b"round %d" % round_number, b"key", codec_header(round_number)))
        headrace_node.restart(hard=hard)
        assert client.consume(topic, len(expected)) == expected
    assert config_of(headrace_node, topic, "retention.ms") == "-1"


def codec_header(number: int) -> tuple[tuple[str, bytes], ...]:
    return (("round", b"%d" % number),)


def config_of(node: RunningNode, topic: str, key: str) -> str:
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    value: str = described.result(PATIENCE_SECONDS)[key].value
    return value


@pytest.mark.parametrize("hard", [False, True], ids=["stopped", "killed"])
def test_a_retried_batch_is_known_after_a_restart(headrace_node: RunningNode, hard: bool) -> None:
    topic = create_topic(headrace_node.bootstrap, "retried")
    with headrace_node.connect() as client:
        producer_id = client.ask(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
            4,
            InitProducerIdResponse,
        ).producer_id
        offsets = [produce(client, topic, producer_id, sequence) for sequence in range(3)]
    headrace_node.restart(hard=hard)
    with headrace_node.connect() as client:
        retried = [produce(client, topic, producer_id, sequence) for sequence in range(3)]
        assert produce(client, topic, producer_id, 3) == 3
    assert offsets == retried == [0, 1, 2]
    assert len(ConfluentClient(headrace_node.bootstrap).consume(topic, 4)) == 4


def now_ms() -> int:
    """The present: producers whose last batch is from long ago are forgotten."""
    return time.time_ns() // 1_000_000


def produce(client: RawClient, topic: str, producer_id: int, sequence: int) -> int:
    batch = build_batch(
        [NewRecord(now_ms(), b"key", b"%d" % sequence, ())],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        ],
    )
    reply = client.ask(request, PRODUCE_VERSION, ProduceResponse)
    (partition,) = reply.responses[0].partition_responses
    assert partition.error_code == 0, partition
    return partition.base_offset


def test_producer_ids_are_never_given_out_twice(headrace_node: RunningNode) -> None:
    seen = set()
    for _ in range(3):
        with headrace_node.connect() as client:
            for _ in range(5):
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
                seen.add(client.ask(request, 4, InitProducerIdResponse).producer_id)
        headrace_node.restart(hard=True)
    assert len(seen) == 15


def test_a_clean_stop_leaves_word_of_it_and_a_start_takes_it_back(headrace_node: RunningNode) -> None:
    mark = headrace_node.data_dir / ".kafka_cleanshutdown"
    assert not mark.exists()
    assert headrace_node.stop() == 0
    assert '"brokerEpoch":' in mark.read_text()
    headrace_node.start()
    assert not mark.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_every_polite_signal_stops_the_node_cleanly(
    headrace_node: RunningNode, number: signal.Signals
) -> None:
    headrace_node.send(number)
    assert headrace_node.wait() == 0
    assert f"stopping on {number.name}" in headrace_node.output
    assert (headrace_node.data_dir / ".kafka_cleanshutdown").exists()


def test_a_second_interrupt_ends_the_process_as_it_is(headrace_node: RunningNode) -> None:
    with headrace_node.connect() as client:
        # A client that does not take its replies keeps a clean stop waiting for a while.
        topic = create_topic(headrace_node.bootstrap, "unread", max_message_bytes="20000000")
        fill(headrace_node, topic)
        for _ in range(50):
            client.send(fetch(topic), FETCH_VERSION)
        headrace_node.send(signal.SIGINT)
        headrace_node.wait_for("stopping on SIGINT")
        headrace_node.send(signal.SIGINT)
        assert headrace_node.wait() == 1
    assert "stopping at once on the second SIGINT" in headrace_node.output
    assert not (headrace_node.data_dir / ".kafka_cleanshutdown").exists()


def fill(node: RunningNode, topic: str) -> None:
    ConfluentClient(node.bootstrap).produce(topic, [Sent(bytes(900_000)) for _ in range(20)])


def fetch(topic: str) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=20_000_000)
    return FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=20_000_000,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def test_a_second_process_on_the_same_directory_is_refused(headrace_node: RunningNode) -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
    second = headrace("server", str(headrace_node.properties_path), "--override", f"listeners={listeners}")
    assert second.returncode == 1
    assert "is in use by another process" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    ConfluentClient(headrace_node.bootstrap).produce("still-served", [Sent(b"v")])


def test_a_port_that_is_taken_is_named(
    headrace_node: RunningNode, start_node: Callable[..., RunningNode]
) -> None:
    taken = f"PLAINTEXT://127.0.0.1:{headrace_node.port},CONTROLLER://127.0.0.1:0"
    with pytest.raises(NodeDied, match=rf"port {headrace_node.port}: .*in use"):
        start_node(listeners=taken)


def test_deleted_topics_stay_deleted(headrace_node: RunningNode) -> None:
    from confluent_kafka.admin import AdminClient

    client = ConfluentClient(headrace_node.bootstrap)
    for name in ("goes", "stays"):
        create_topic(headrace_node.bootstrap, name)
        client.produce(name, [Sent(b"v")])
    admin = AdminClient({"bootstrap.servers": headrace_node.bootstrap})
    admin.delete_topics(["goes"])["goes"].result(PATIENCE_SECONDS)
    headrace_node.restart(hard=True)
    assert set(admin.list_topics(timeout=PATIENCE_SECONDS).topics) == {"stays"}
    assert not list(Path(headrace_node.data_dir).glob("goes-0"))
