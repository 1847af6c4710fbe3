"""Replicas: partitions come, go and change as the metadata says; a failing directory takes only its own."""

import asyncio
import logging
from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_reads import Isolation
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.log_directories import SamePartitionTwice, directory_path
from headrace.replication.turns import STEPS_PER_TURN
from headrace.testing.memory_disk import Loss, MemoryDisk, Operation
from headrace.types import TopicPartition
from tests.support_data import (
    FIRST_DIRECTORY,
    IDS,
    NODE,
    NOW_MS,
    SECOND_DIRECTORY,
    TOPIC,
    DataNode,
    start_node,
    topic_id_of,
)
from tests.support_log import content, on_loop

BOTH = (FIRST_DIRECTORY, SECOND_DIRECTORY)


def names_in(node: DataNode, path: str = FIRST_DIRECTORY) -> list[str]:
    """Directories of partitions."""
    return [name for name in node.disk.list_directory(path) if node.disk.is_directory(f"{path}/{name}")]


def home(node: DataNode, index: int = 0) -> str:
    return directory_path(node.partition(TOPIC, index).leader_log)


# Coming and going


@on_loop
async def test_a_new_partition_gets_a_directory_and_leads() -> None:
    node = await start_node()
    node.assign()
    assert names_in(node) == ["topic-0"]
    assert node.partition().is_leader
    assert node.replicas.find(TOPIC, 0) is node.partition()


@on_loop
async def test_new_partitions_go_where_the_fewest_are_and_the_controller_learns_where() -> None:
    node = await start_node(directories=BOTH)
    for index in range(4):
        node.assign(partition=index)
    assert [home(node, index) for index in range(4)] == [*BOTH, *BOTH]
    assert node.events.assigned == [(topic_id_of(TOPIC), index, IDS[BOTH[index % 2]]) for index in range(4)]


def hosted(node: DataNode) -> list[int]:
    found = node.replicas.topics.get(TOPIC)
    return [] if found is None else list(found.partitions)


@on_loop
async def test_many_new_partitions_are_made_over_several_turns_of_the_loop() -> None:
    node = await start_node()
    for index in range(3 * STEPS_PER_TURN):
        node.assign(partition=index)
    assert hosted(node) == list(range(STEPS_PER_TURN))
    with pytest.raises(KafkaError) as refusal:
        node.replicas.find(TOPIC, STEPS_PER_TURN)
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(0)
    assert hosted(node) == list(range(2 * STEPS_PER_TURN))
    await asyncio.sleep(0)
    assert hosted(node) == list(range(3 * STEPS_PER_TURN))
    await asyncio.sleep(0)
    node.assign("late")
    assert node.partition("late").is_leader


@on_loop
async def test_a_partition_that_waits_to_be_made_is_made_as_the_metadata_says_by_then() -> None:
    node = await start_node()
    for index in range(STEPS_PER_TURN + 3):
        node.assign(partition=index)
    node.assign(partition=STEPS_PER_TURN, leader_epoch=4, partition_epoch=1)
    node.assign(partition=STEPS_PER_TURN + 1, replicas=(NODE + 1,), leader=NODE + 1, partition_epoch=1)
    await asyncio.sleep(0)
    assert node.partition(TOPIC, STEPS_PER_TURN).leader_epoch == 4
    assert hosted(node) == [*range(STEPS_PER_TURN + 1), STEPS_PER_TURN + 2]


@on_loop
async def test_a_topic_deleted_before_it_was_made_is_not_made() -> None:
    node = await start_node()
    for index in range(STEPS_PER_TURN + 3):
        node.assign(partition=index)
    node.delete_topic()
    for _ in range(3):
        await asyncio.sleep(0)
    assert hosted(node) == []
    assert all(name.endswith("-delete") for name in names_in(node))


@on_loop
async def test_an_assigned_directory_is_kept_to_and_not_told_again() -> None:
    node = await start_node(directories=BOTH)
    for index in range(3):
        node.assign(partition=index, directory=IDS[SECOND_DIRECTORY])
    assert {home(node, index) for index in range(3)} == {SECOND_DIRECTORY}
    assert node.events.assigned == []


@on_loop
async def test_a_deleted_topic_is_renamed_at_once_and_removed_later() -> None:
    """Promise 26."""
    node = await start_node()
    node.assign()
    node.assign(partition=1)
    node.append(3)
    node.delete_topic()
    assert all(name.endswith("-delete") for name in names_in(node))
    with pytest.raises(KafkaError) as refusal:
        node.replicas.find(TOPIC, 0)
    assert refusal.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (directory,) = node.replicas.directories
    await directory.delete_due(NOW_MS + 59_999)
    assert len(names_in(node)) == 2
    await directory.delete_due(NOW_MS + 60_000)
    assert names_in(node) == []


@pytest.mark.parametrize("seen", [True, False])
@on_loop
async def test_a_topic_made_anew_starts_empty(seen: bool) -> None:
    """Promise 10: also if the deletion of the old one was not seen by itself."""
    node = await start_node()
    node.assign()
    node.append(3)
    old = node.partition()
    if seen:
        node.delete_topic()
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    assert node.partition() is not old
    assert old.is_deleted
    assert node.partition().leader_log.log_end_offset == 0
    assert node.partition().leader_log.topic_id == topic_id_of(TOPIC, 1)


@on_loop
async def test_a_deletion_that_a_restart_interrupts_is_finished() -> None:
    """Promise 26."""
    node = await start_node()
    node.assign()
    node.append(1)
    node.delete_topic()
    node = await node.restart()
    (directory,) = node.replicas.directories
    assert names_in(node)
    await directory.delete_due(NOW_MS + 120_000)
    assert names_in(node) == []


@on_loop
async def test_a_partition_that_moves_to_other_brokers_is_removed_here() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2))
    node.assign(replicas=(2, 3), leader=2, leader_epoch=1, partition_epoch=1)
    assert node.replicas.get(TOPIC, 0) is None
    with pytest.raises(KafkaError) as refusal:
        node.replicas.find(TOPIC, 0)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Starting


@pytest.mark.parametrize("cleanly", [True, False])
@on_loop
async def test_everything_is_there_after_a_restart(cleanly: bool) -> None:
    node = await start_node()
    node.assign()
    node.append(5)
    before = content(node.partition().leader_log)
    await node.partition().leader_log.flush(NOW_MS)
    if not cleanly:
        node.disk.crash(Loss.EVERYTHING)
    node = await node.restart(cleanly=cleanly)
    log = node.partition().leader_log
    assert content(log, Isolation.HIGH_WATERMARK) == before
    assert node.append(1) == 5


@on_loop
async def test_strays_are_set_aside_and_kept(caplog: pytest.LogCaptureFixture) -> None:
    node = await start_node()
    node.assign()
    node.append(1)
    node.assign("other")
    node.append(1, "other")
    del node.cluster.assignments[TopicPartition(TOPIC, 0)]
    with caplog.at_level(logging.WARNING):
        node = await node.restart()
    (stray,) = [name for name in names_in(node) if name.startswith("topic-0")]
    assert stray.endswith("-stray")
    assert "topic-0 in /logs/a is not a partition of this node" in caplog.text
    assert node.partition("other").leader_log.log_end_offset == 1
    again = await node.restart()
    assert stray in names_in(again)


@on_loop
async def test_a_log_of_another_topic_of_that_name_is_a_stray() -> None:
    """Promise 10."""
    node = await start_node()
    node.assign()
    node.append(1)
    own = node.cluster.assignments[TopicPartition(TOPIC, 0)]
    node.cluster.assignments[own.partition] = PartitionAssignment(
        own.partition, topic_id_of(TOPIC, 1), (NODE,), (NODE,), NODE, 0
    )
    node = await node.restart()
    assert node.partition().leader_log.log_end_offset == 0
    assert any(name.endswith("-stray") for name in names_in(node))


@on_loop
async def test_a_partition_in_two_directories_stops_the_start() -> None:
    node = await start_node(directories=BOTH)
    node.assign(directory=IDS[FIRST_DIRECTORY])
    node.append(1)
    await node.replicas.close(NOW_MS)
    copied = f"{SECOND_DIRECTORY}/topic-0"
    node.disk.make_directory(copied)
    for name in node.disk.list_directory(f"{FIRST_DIRECTORY}/topic-0"):
        node.disk.replace(f"{copied}/{name}", node.disk.read(f"{FIRST_DIRECTORY}/topic-0/{name}"))
    with pytest.raises(SamePartitionTwice, match="topic-0 is in /logs/a and in /logs/b"):
        await start_node(node.disk, node.clock, node.cluster, directories=BOTH)


# Configuration


@on_loop
async def test_a_changed_configuration_takes_effect_at_once() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), isr=(NODE,))
    node.configure({"max.message.bytes": "100", "min.insync.replicas": "2", "cleanup.policy": "compact"})
    partition = node.partition()
    assert partition.leader_log.settings.max_message_bytes == 100
    assert partition.leader_log.settings.cleanup_compact
    assert partition.is_under_min_isr
    with pytest.raises(KafkaError) as refusal:
        node.append(1, value=bytes(200))
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


@on_loop
async def test_changed_defaults_of_the_broker_reach_every_topic() -> None:
    node = await start_node()
    node.assign()
    node.assign("other", config={"retention.ms": "5"})
    node.cluster.defaults["retention.ms"] = 1234
    node.replicas.reconfigure_all()
    found = [node.partition(topic).leader_log.settings.retention_ms for topic in (TOPIC, "other")]
    assert found == [1234, 5]


# Directories that fail (promise 30)


def fails_in(node: DataNode, path: str) -> None:
    def concerns(operation: Operation) -> bool:
        return operation.kind == "append" and operation.path.startswith(path)

    node.disk.fail(5, when=concerns)


@on_loop
async def test_a_failing_directory_takes_only_its_own_partitions() -> None:
    node = await start_node(directories=BOTH)
    for index in range(2):
        node.assign(partition=index, directory=IDS[BOTH[index]])
    fails_in(node, FIRST_DIRECTORY)
    with pytest.raises(KafkaError) as refusal:
        node.append(1)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    await asyncio.sleep(0)
    assert node.partition().is_offline
    assert node.append(1, index=1) == 0
    assert (node.events.failed, node.events.fatal) == ([FIRST_DIRECTORY], [])
    with pytest.raises(KafkaError) as refusal:
        node.replicas.find(TOPIC, 0)
    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


@on_loop
async def test_without_any_directory_the_node_is_told_to_stop() -> None:
    node = await start_node()
    node.assign()
    fails_in(node, FIRST_DIRECTORY)
    with pytest.raises(KafkaError):
        node.append(1)
    assert node.events.fatal == ["all log directories are offline: /logs/a"]


@on_loop
async def test_new_partitions_go_to_the_directories_that_are_left() -> None:
    node = await start_node(directories=BOTH)
    node.replicas.directories.fail(FIRST_DIRECTORY, "pulled out")
    node.assign(partition=5)
    assert home(node, 5) == SECOND_DIRECTORY


@on_loop
async def test_a_partition_that_may_be_in_an_offline_directory_is_not_made_anew() -> None:
    node = await start_node(directories=BOTH)
    node.assign(directory=IDS[FIRST_DIRECTORY])
    node.append(3)
    await node.replicas.close(NOW_MS)

    def concerns(operation: Operation) -> bool:
        return operation.path.startswith(FIRST_DIRECTORY)

    node.disk.fail(5, times=1, when=concerns)
    node = await start_node(node.disk, node.clock, node.cluster, directories=BOTH)
    assert list(node.replicas.directories.offline) == [FIRST_DIRECTORY]
    assert node.partition().is_offline
    assert names_in(node, SECOND_DIRECTORY) == []


@on_loop
async def test_closing_leaves_a_failed_directory_unclean_and_the_others_clean() -> None:
    node = await start_node(directories=BOTH)
    for index in range(2):
        node.assign(partition=index, directory=IDS[BOTH[index]])
        node.append(1, index=index)
    node.disk.fail(5, when=lambda operation: operation.kind == "sync" and "/logs/a/" in operation.path)
    await node.replicas.close(NOW_MS)
    assert not node.disk.exists(f"{FIRST_DIRECTORY}/.kafka_cleanshutdown")
    assert node.disk.exists(f"{SECOND_DIRECTORY}/.kafka_cleanshutdown")


@on_loop
async def test_an_unknown_assigned_directory_counts_as_none() -> None:
    node = await start_node()
    node.assign(directory=UUID(int=77_777))
    assert home(node) == FIRST_DIRECTORY
    assert node.events.assigned == [(topic_id_of(TOPIC), 0, IDS[FIRST_DIRECTORY])]


@on_loop
async def test_a_flipped_bit_on_disk_is_not_served() -> None:
    """Promise 27 as a reader sees it: an error that names the place, and nothing of the damaged batch."""
    node = await start_node(MemoryDisk())
    node.assign()
    node.append(1, value=b"x" * 100)
    node = await node.restart()
    node.disk.flip_bit("/logs/a/topic-0/00000000000000000000.log", 100)
    with pytest.raises(KafkaError) as refusal:
        node.partition().leader_log.read(0, 1_000, Isolation.HIGH_WATERMARK)
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
