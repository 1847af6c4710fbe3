"""Thousands of partitions come and go without holding up the loop."""

import asyncio

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.replication.turns import STEPS_PER_TURN, TURN_MS, Turns
from headrace.testing.clock import ManualClock
from headrace.testing.memory_disk import Loss
from headrace.types import TopicPartition
from tests.support_data import FIRST_DIRECTORY, TOPIC, DataNode, start_node, topic_id_of
from tests.support_log import on_loop

MANY = 3 * STEPS_PER_TURN


def names_in(node: DataNode, ending: str) -> list[str]:
    """Directories of partitions whose names end so."""
    names = node.disk.list_directory(FIRST_DIRECTORY)
    return [each for each in names if each.startswith(TOPIC) and each.endswith(ending)]


async def node_with(count: int = MANY) -> DataNode:
    node = await start_node()
    for index in range(count):
        node.assign(partition=index)
    for _ in range(count // STEPS_PER_TURN + 1):
        await asyncio.sleep(0)
    assert len(node.replicas.logs) == count
    return node


@on_loop
async def test_a_turn_ends_with_its_time_and_the_next_goes_on() -> None:
    clock, done = ManualClock(), list[int]()

    def step() -> None:
        done.append(len(done))
        clock.advance(1)

    work = Turns(clock, lambda: len(done) < 7, step)
    assert work.take()
    seen = []
    for _ in range(5):
        await asyncio.sleep(0)
        seen.append(len(done))
    assert seen == [TURN_MS, 2 * TURN_MS, 3 * TURN_MS, 7, 7]


@on_loop
async def test_a_deleted_topic_is_gone_at_once_and_its_directories_over_several_turns() -> None:
    node = await node_with()
    parked = node.partition(TOPIC, 0)
    node.delete_topic()
    for index in (0, MANY - 1):
        with pytest.raises(KafkaError) as refusal:
            node.replicas.find(TOPIC, index)
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(names_in(node, "-delete")) == STEPS_PER_TURN
    await asyncio.sleep(0)
    assert len(names_in(node, "-delete")) == 2 * STEPS_PER_TURN
    await asyncio.sleep(0)
    assert len(names_in(node, "-delete")) == MANY
    assert parked.is_deleted
    assert node.replicas.logs == {}


@on_loop
async def test_a_topic_of_the_same_name_does_not_wait_and_is_not_mixed_up_with_it() -> None:
    """Promise 10."""
    node = await node_with()
    last = MANY - 1
    for index in (0, last):
        node.append(3, index=index)
    node.delete_topic()
    for index in (0, last):
        node.assign(partition=index, topic_id=topic_id_of(TOPIC, 1))
    for _ in range(4):
        await asyncio.sleep(0)
    for index in (0, last):
        log = node.partition(TOPIC, index).leader_log
        assert (log.topic_id, log.log_end_offset) == (topic_id_of(TOPIC, 1), 0)
    assert len(names_in(node, "-delete")) == MANY
    assert len(node.replicas.logs) == 2
    assert node.partition(TOPIC, 0).log is node.replicas.logs[TopicPartition(TOPIC, 0)]


@on_loop
async def test_a_stop_amid_a_deletion_finishes_it() -> None:
    """Promise 26."""
    node = await node_with()
    node.append(1, index=0)
    node.delete_topic()
    node = await node.restart()
    assert len(names_in(node, "-delete")) == MANY
    assert names_in(node, "-stray") == []
    (directory,) = node.replicas.directories
    await directory.delete_due(node.clock.now_ms() + 120_000)
    assert names_in(node, "") == []


@on_loop
async def test_a_crash_amid_a_deletion_leaves_nothing_in_the_way() -> None:
    """Promise 26: what was not renamed yet is set aside, as Kafka does it, if there is anything in it."""
    node = await node_with()
    for index in (0, MANY - 1):
        node.append(1, index=index)
        await node.partition(TOPIC, index).leader_log.flush(0)
    node.delete_topic()
    # A process that has crashed does nothing more.
    node.replicas._leaving.clear()
    node.disk.crash(Loss.NOTHING)
    node = await node.restart(cleanly=False)
    assert len(names_in(node, "-stray")) == 1
    assert len(names_in(node, "-delete")) == MANY - 1
    node.assign(partition=0, topic_id=topic_id_of(TOPIC, 1))
    assert node.append(1) == 0


@on_loop
async def test_partitions_that_were_never_written_to_are_not_set_aside_after_a_crash() -> None:
    node = await start_node()
    for index in range(3):
        node.assign(partition=index)
    node.append(1, index=0)
    await node.partition(TOPIC, 0).leader_log.flush(0)
    node.disk.crash(Loss.NOTHING)
    node = await node.restart(cleanly=False)
    assert names_in(node, "") == ["topic-0", "topic-1", "topic-2"]
    assert [node.append(1, index=index) for index in range(3)] == [1, 0, 0]


@on_loop
async def test_a_directory_that_fails_amid_a_deletion_is_left_alone() -> None:
    node = await node_with()
    node.delete_topic()
    (directory,) = node.replicas.directories
    directory.health.fail("testing", OSError("gone"))
    for _ in range(4):
        await asyncio.sleep(0)
    assert len(names_in(node, "-delete")) == STEPS_PER_TURN
    assert node.events.failed == [FIRST_DIRECTORY]


@on_loop
async def test_a_small_topic_does_not_wait_for_a_large_one() -> None:
    node = await start_node()
    for index in range(MANY):
        node.assign(partition=index)
    node.assign("small")
    await asyncio.sleep(0)
    assert node.partition("small").is_leader
    assert len(node.replicas.logs) < MANY
