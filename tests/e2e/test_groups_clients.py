"""Groups as clients see them: positions that are found again, administration, and directories of Kafka's."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.errors import ErrorCode
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tests.support_cli import unpack_fixture
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Sent, create_topic
from tests.support_node import RunningNode


def consumer_of(bootstrap: str, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
        | {name.replace("_", "."): value for name, value in settings.items()}
    )


def consumed(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None, f"only {len(found)} of {count} records came"
        assert message.error() is None, message.error()
        found.append(message.value())
    return found


@pytest.fixture
def quick_node(start_node: Callable[..., RunningNode]) -> RunningNode:
    """A node whose groups do not wait for more members."""
    return start_node(group_initial_rebalance_delay_ms="0", group_min_session_timeout_ms="500")


@pytest.fixture
def group() -> str:
    return f"g-{uuid4()}"


def test_a_group_goes_on_where_it_was_also_after_a_kill(quick_node: RunningNode, group: str) -> None:
    topic = create_topic(quick_node.bootstrap, "t", 1)
    ConfluentClient(quick_node.bootstrap).produce(topic, [Sent(b"one"), Sent(b"two"), Sent(b"three")])
    consumer = consumer_of(quick_node.bootstrap, group, session_timeout_ms=1000, heartbeat_interval_ms=100)
    consumer.subscribe([topic])
    assert consumed(consumer, 2) == [b"one", b"two"]
    consumer.commit(offsets=[TopicPartition(topic, 0, 2, "a note")], asynchronous=False)
    quick_node.kill()
    quick_node.start()
    # It would find its group again and, since nobody polls it, keep the others waiting.
    consumer.close()
    again = consumer_of(quick_node.bootstrap, group)
    (committed,) = again.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
    assert (committed.offset, committed.metadata) == (2, "a note")
    again.subscribe([topic])
    assert consumed(again, 1) == [b"three"]
    again.close()


def test_groups_are_listed_described_and_deleted(
    shared_node: RunningNode, new_topic: Callable[..., str], group: str
) -> None:
    """Promise 22."""
    topic = new_topic(3)
    admin = AdminClient({"bootstrap.servers": shared_node.bootstrap})
    consumer = consumer_of(shared_node.bootstrap, group, client_id="me")
    assigned: list[int] = []
    consumer.subscribe([topic], on_assign=lambda _, parts: assigned.extend(p.partition for p in parts))
    while not assigned:
        consumer.poll(0.1)
    described = admin.describe_consumer_groups([group])[group].result()
    assert described.state is ConsumerGroupState.STABLE
    (member,) = described.members
    assert (member.client_id, member.host) == ("me", "/127.0.0.1")
    assert sorted(part.partition for part in member.assignment.topic_partitions) == [0, 1, 2]
    listed = {each.group_id: each for each in admin.list_consumer_groups().result().valid}
    assert listed[group].state is ConsumerGroupState.STABLE
    consumer.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    consumer.close()
    assert admin.describe_consumer_groups([group])[group].result().state is ConsumerGroupState.EMPTY
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    assert [(part.partition, part.offset) for part in offsets.topic_partitions] == [(0, 7)]
    admin.delete_consumer_groups([group])[group].result()
    assert group not in {each.group_id for each in admin.list_consumer_groups().result().valid}


def test_offsets_can_be_set_by_an_administrator(
    shared_node: RunningNode, new_topic: Callable[..., str], group: str
) -> None:
    topic = new_topic()
    admin = AdminClient({"bootstrap.servers": shared_node.bootstrap})
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 42)])
    altered = admin.alter_consumer_group_offsets([wanted])[group].result()
    assert [part.error for part in altered.topic_partitions] == [None]
    consumer = consumer_of(shared_node.bootstrap, group)
    (committed,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
    assert committed.offset == 42
    consumer.close()


def test_the_topic_of_groups_is_made_when_it_is_first_wanted(quick_node: RunningNode) -> None:
    admin = AdminClient({"bootstrap.servers": quick_node.bootstrap})
    assert "__consumer_offsets" not in admin.list_topics(timeout=PATIENCE_SECONDS).topics
    with quick_node.connect() as wire:
        found = wire.ask(FindCoordinatorRequest(key="any"), 1, FindCoordinatorResponse)
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    consumer = consumer_of(quick_node.bootstrap, "any")
    consumer.committed([TopicPartition("nothing", 0)], PATIENCE_SECONDS)
    consumer.close()
    topic = admin.list_topics(timeout=PATIENCE_SECONDS).topics["__consumer_offsets"]
    assert len(topic.partitions) == 50


def test_with_too_few_brokers_for_its_replicas_there_is_no_coordinator(
    start_node: Callable[..., RunningNode],
) -> None:
    node = start_node(offsets_topic_replication_factor="3")
    with node.connect() as wire:
        for _ in range(3):
            found = wire.ask(FindCoordinatorRequest(key="any"), 1, FindCoordinatorResponse)
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    node.wait_for("auto-creation of topic __consumer_offsets failed")


@pytest.fixture(params=["clean-shutdown", "killed"])
def kafkas_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningNode]:
    """A node on a directory that a Kafka 4.3.1 has left."""
    data = unpack_fixture(request.param, tmp_path / "unpacked")
    (tmp_path / "node").mkdir()
    data.rename(tmp_path / "node" / "data")
    node = RunningNode(tmp_path / "node", is_formatted=True)
    yield node.start()
    node.kill()


def test_groups_that_kafka_has_left_are_there(kafkas_node: RunningNode) -> None:
    """Promise 28."""
    consumer = consumer_of(kafkas_node.bootstrap, "classic-group")
    wanted = [TopicPartition("plain", index) for index in range(2)]
    committed = consumer.committed(wanted, PATIENCE_SECONDS)
    assert [(part.offset, part.metadata) for part in committed] == [(15, "note"), (20, None)]
    consumer.close()
    admin = AdminClient({"bootstrap.servers": kafkas_node.bootstrap})
    described = admin.describe_consumer_groups(["classic-group"])["classic-group"].result()
    assert described.state is ConsumerGroupState.EMPTY
