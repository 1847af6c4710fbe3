"""A node that is killed again and again, at moments of no one's choosing, keeps its word."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Sent, create_topic
from tests.support_node import RunningNode

PARTITIONS = 3
ROUNDS = 5
CREATE_VERSION, DELETE_VERSION, ALTER_VERSION = 7, 6, 1
TOPIC_RESOURCE = 2


class PersistentWriter:
    """Produces numbers without end, over whatever happens to the node."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.failures: list[str] = []
        self._topic = topic
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 10,
                "message.timeout.ms": int(PATIENCE_SECONDS * 1000),
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self._topic, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._on_delivery
                )
                number += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(0)
            # What is outstanding at the end has to be waited for.
            if len(self._producer) > 2000:
                self._producer.poll(0.05)

    def _on_delivery(self, error: Any, message: Any) -> None:
        with self._changed:
            if error is None:
                self.acknowledged[int(message.value())] = (message.partition(), message.offset())
            else:
                self.failures.append(str(error))
            self._changed.notify_all()

    def wait_for_more(self, count: int) -> None:
        """Return once `count` more records are acknowledged."""
        with self._changed:
            wanted = len(self.acknowledged) + count
            assert self._changed.wait_for(
                lambda: len(self.acknowledged) >= wanted or bool(self.failures), PATIENCE_SECONDS
            )

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_moments_lose_nothing_and_double_nothing(
    start_node: Callable[..., RunningNode], seed: int
) -> None:
    rng = random.Random(seed)
    # Rolled segments, checkpoints and snapshots of producers shall be among what is half done.
    node = start_node(
        log_segment_bytes="1048576",
        log_flush_offset_checkpoint_interval_ms="100",
        replica_high_watermark_checkpoint_interval_ms="100",
        log_initial_task_delay_ms="0",
    )
    topic = create_topic(node.bootstrap, "killed", PARTITIONS)
    writer = PersistentWriter(node.bootstrap, topic)
    try:
        for _ in range(ROUNDS):
            writer.wait_for_more(rng.choice((1, 50, 500, 5000)))
            node.restart(hard=True)
    finally:
        writer.finish()
    assert writer.failures == []
    for partition in range(PARTITIONS):
        expected = [
            (offset, number) for number, (where, offset) in writer.acknowledged.items() if where == partition
        ]
        seen = ConfluentClient(node.bootstrap).consume(topic, len(expected), partition=partition)
        assert [(each.offset, int(each.value or b"")) for each in seen] == sorted(expected)
        # Every record came once, in the order in which it was produced.
        assert [number for _, number in sorted(expected)] == sorted(number for _, number in expected)
        assert [offset for offset, _ in sorted(expected)] == list(range(len(expected)))
    assert "Traceback" not in node.output


def test_kills_amid_changes_leave_each_of_them_done_or_undone(start_node: Callable[..., RunningNode]) -> None:
    rng = random.Random(7)
    node = start_node(log_segment_delete_delay_ms="0", log_initial_task_delay_ms="0")
    for number in range(ROUNDS):
        create_topic(node.bootstrap, f"altered-{number}", retention_ms="1")
        create_topic(node.bootstrap, f"deleted-{number}", PARTITIONS)
        ConfluentClient(node.bootstrap).produce(f"deleted-{number}", [Sent(b"v")])
    for number in range(ROUNDS):
        answered = change_and_kill(node, number, rng.randint(0, 3))
        node.start()
        topics = topics_of(node)
        is_created, is_altered, is_deleted = (
            f"created-{number}" in topics,
            retention_of(node, f"altered-{number}") == "2000",
            f"deleted-{number}" not in topics,
        )
        assert (is_created, is_altered, is_deleted)[:answered] == (True,) * answered
        if is_created:
            assert retention_of(node, f"created-{number}") == "3000"
            ConfluentClient(node.bootstrap).produce(f"created-{number}", [Sent(b"v")])
        if is_deleted:
            wait_until_gone(node, f"deleted-{number}")
        else:
            assert ConfluentClient(node.bootstrap).consume(f"deleted-{number}", 1)[0].value == b"v"
    assert "Traceback" not in node.output


def change_and_kill(node: RunningNode, number: int, answers: int) -> int:
    """Ask for three changes at once, and kill the node after so many answers."""
    changes: list[tuple[Message, int, Any]] = [
        (creation(f"created-{number}"), CREATE_VERSION, CreateTopicsResponse),
        (alteration(f"altered-{number}"), ALTER_VERSION, IncrementalAlterConfigsResponse),
        (deletion(f"deleted-{number}"), DELETE_VERSION, DeleteTopicsResponse),
    ]
    with node.connect() as client:
        sent = [client.send(request, version) for request, version, _ in changes]
        for correlation_id, (_, version, response) in list(zip(sent, changes, strict=True))[:answers]:
            reply = client.receive(response, version, correlation_id)
            (result,) = reply.topics if response is CreateTopicsResponse else reply.responses
            assert result.error_code == 0, result
        node.kill()
    return answers


def creation(name: str) -> CreateTopicsRequest:
    config = CreatableTopicConfig(name="retention.ms", value="3000")
    topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1, configs=[config])
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def alteration(name: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="retention.ms", config_operation=0, value="2000")
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def deletion(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)


def topics_of(node: RunningNode) -> set[str]:
    return set(
        AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=PATIENCE_SECONDS).topics
    )


def retention_of(node: RunningNode, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    (described,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    value: str = described.result(PATIENCE_SECONDS)["retention.ms"].value
    return value


def wait_until_gone(node: RunningNode, topic: str, kept: frozenset[str] = frozenset()) -> None:
    """Wait until nothing of a topic is on disk but `kept`, and what a start has set aside.

    A directory that the kill left as it was is a stray at the next start, as it is to Kafka: it is renamed,
    so that it is not in the way, and an operator may look at it."""
    pause = threading.Event()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := {path.name for path in node.data_dir.glob(f"{topic}[-.]*")} - kept:
        if all(name.endswith("-stray") for name in left):
            break
        assert time.monotonic() < deadline, left
        pause.wait(0.02)


@pytest.mark.parametrize("delay_ms", ["0", "1500"])
def test_a_deletion_that_a_kill_interrupts_is_completed(
    start_node: Callable[..., RunningNode], delay_ms: str
) -> None:
    node = start_node(log_segment_delete_delay_ms=delay_ms, log_initial_task_delay_ms="0")
    client = ConfluentClient(node.bootstrap)
    create_topic(node.bootstrap, "half-way", 20)
    client.produce("half-way", [Sent(b"old", partition=each) for each in range(20)])
    with node.connect() as raw:
        answered = raw.ask(deletion("half-way"), DELETE_VERSION, DeleteTopicsResponse)
        node.kill()
    assert answered.responses[0].error_code == 0
    node.start()
    # The name is free at once, and what is left of the old topic is none of the new one's.
    create_topic(node.bootstrap, "half-way", 2)
    assert client.produce("half-way", [Sent(b"new", partition=1)]) == [0]
    assert [each.value for each in client.consume("half-way", 1, partition=1)] == [b"new"]
    node.restart(hard=True)
    wait_until_gone(node, "half-way", frozenset(f"half-way-{each}" for each in range(2)))
    assert [each.value for each in client.consume("half-way", 1, partition=1)] == [b"new"]
    assert "Traceback" not in node.output
