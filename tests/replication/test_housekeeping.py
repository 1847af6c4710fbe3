"""Housekeeping: every task does its part, in slices, and a failing directory does not end it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headrace.config.node import NodeConfig
from headrace.log.checkpoints import read_offsets
from headrace.replication.housekeeping import Housekeeping
from headrace.system.pace import SystemPace
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_data import (
    FIRST_DIRECTORY,
    IDS,
    NOW_MS,
    PROPERTIES,
    SECOND_DIRECTORY,
    TOPIC,
    DataNode,
    start_node,
)
from tests.support_log import on_loop

DAY_MS = 86_400_000
TOPIC_PARTITION = TopicPartition(TOPIC, 0)
BOTH = (FIRST_DIRECTORY, SECOND_DIRECTORY)


def keeper(node: DataNode, properties: dict[str, str] | None = None) -> Housekeeping:
    config = NodeConfig(PROPERTIES | (properties or {}))
    return Housekeeping(
        node.replicas, lambda: config, node.clock, node.disk, InlineWorkers(), lambda: node.disk, SystemPace
    )


async def rolled(segments: int, config: dict[str, str], **fields: Any) -> DataNode:
    """A partition with some full segments and an empty active one."""
    node = await start_node(**fields)
    node.assign(config=config, directory=IDS[FIRST_DIRECTORY])
    for _ in range(segments):
        node.append(5)
        node.partition().leader_log.roll(NOW_MS)
    return node


@on_loop
async def test_old_segments_go_and_readers_who_wait_are_told() -> None:
    node = await rolled(3, {"retention.ms": "1000"})
    assert await keeper(node).apply_retention(NOW_MS + 2_000) == 3
    assert node.partition().leader_log.log_start_offset == 15


@on_loop
async def test_retention_leaves_compacted_logs_to_the_cleaner() -> None:
    node = await rolled(3, {"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    keeping = keeper(node)
    assert await keeping.apply_retention(NOW_MS + 2_000) == 0
    await keeping.compact(NOW_MS + 2_000)
    assert node.partition().leader_log.log_start_offset == 15


@on_loop
async def test_compaction_keeps_the_last_value_of_each_key() -> None:
    """Promise 11, as the node runs it."""
    node = await start_node()
    node.assign(config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"})
    for number in range(4):
        node.append(keys=[b"a", b"b"], value=b"%d" % number)
    log = node.partition().leader_log
    log.roll(NOW_MS)
    before = log.size
    await keeper(node).compact(NOW_MS)
    assert 0 < log.size < before
    assert log.log_end_offset == 8
    assert read_offsets(node.disk, f"{FIRST_DIRECTORY}/cleaner-offset-checkpoint") == {TOPIC_PARTITION: 8}


@on_loop
async def test_a_deleted_partition_is_forgotten_by_the_cleaner() -> None:
    node = await start_node()
    node.assign(config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"})
    node.append(3)
    node.partition().leader_log.roll(NOW_MS)
    await keeper(node).compact(NOW_MS)
    node.delete_topic()
    await node.replicas.background.wait()
    assert read_offsets(node.disk, f"{FIRST_DIRECTORY}/cleaner-offset-checkpoint") == {}


@on_loop
async def test_without_the_cleaner_retention_sees_to_compacted_logs() -> None:
    node = await rolled(2, {"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    keeping = keeper(node, {"log.cleaner.enable": "false"})
    assert keeping.cleaner is None
    assert await keeping.apply_retention(NOW_MS + 2_000) == 2
    assert all(task.name != "compaction" for task in keeping.schedule())


@on_loop
async def test_flush_ms_and_rolls_lead_to_syncs() -> None:
    node = await start_node()
    node.assign(config={"flush.ms": "500"})
    keeping = keeper(node)
    node.append(2)
    await keeping.flush(NOW_MS + 499)
    assert node.partition().leader_log.recovery_point == 0
    await keeping.flush(NOW_MS + 500)
    assert node.partition().leader_log.recovery_point == 2
    node.append(1)
    node.partition().leader_log.roll(NOW_MS)
    await keeping.flush_rolled(NOW_MS)
    assert node.partition().leader_log.recovery_point == 3


@on_loop
async def test_checkpoints_say_what_a_restart_needs() -> None:
    node = await start_node()
    node.assign()
    node.append(6)
    node.partition().delete_records(2)
    await node.partition().leader_log.flush(NOW_MS)
    keeping = keeper(node)
    await keeping.write_recovery_points(NOW_MS)
    await keeping.write_log_starts(NOW_MS)
    await keeping.write_high_watermarks(NOW_MS)
    found = {
        name: read_offsets(node.disk, f"{FIRST_DIRECTORY}/{name}-checkpoint")[TOPIC_PARTITION]
        for name in ("recovery-point-offset", "log-start-offset", "replication-offset")
    }
    assert found == {"recovery-point-offset": 6, "log-start-offset": 2, "replication-offset": 6}


@on_loop
async def test_silent_producers_are_forgotten() -> None:
    node = await start_node()
    node.assign()
    node.append(1, producer_id=7, epoch=0, sequence=0)
    keeping = keeper(node)
    await keeping.expire_producers(NOW_MS + DAY_MS - 1)
    assert list(node.partition().leader_log.producers.entries) == [7]
    await keeping.expire_producers(NOW_MS + DAY_MS + 1)
    assert not node.partition().leader_log.producers.entries


@on_loop
async def test_how_long_silent_producers_are_remembered_changes_without_a_restart() -> None:
    node = await start_node()
    node.assign()
    node.append(1, producer_id=7, epoch=0, sequence=0)
    await keeper(node, {"producer.id.expiration.ms": "5000"}).expire_producers(NOW_MS + 4_999)
    assert list(node.partition().leader_log.producers.entries) == [7]
    await keeper(node, {"producer.id.expiration.ms": "4000"}).expire_producers(NOW_MS + 4_999)
    assert not node.partition().leader_log.producers.entries


@on_loop
async def test_deleted_files_go_after_their_delay() -> None:
    node = await rolled(1, {"retention.ms": "1000"})
    keeping = keeper(node)
    await keeping.apply_retention(NOW_MS + 2_000)
    path = f"{FIRST_DIRECTORY}/{TOPIC}-0"
    assert any(name.endswith(".deleted") for name in node.disk.list_directory(path))
    await keeping.delete_files(NOW_MS + 63_000)
    assert not any(name.endswith(".deleted") for name in node.disk.list_directory(path))


@pytest.mark.parametrize(
    "task", ["apply_retention", "flush", "write_high_watermarks", "write_recovery_points", "delete_files"]
)
@on_loop
async def test_a_failing_directory_does_not_keep_the_others_from_their_turn(task: str) -> None:
    """Promise 30."""
    node = await rolled(2, {"retention.ms": "1000", "flush.ms": "1"}, directories=BOTH)
    node.assign(partition=1, directory=IDS[SECOND_DIRECTORY])
    node.append(2, index=1)
    node.disk.fail(5, times=10**6, when=lambda operation: operation.path.startswith(FIRST_DIRECTORY))
    run: Callable[[int], Any] = getattr(keeper(node), task)
    await run(NOW_MS + 2_000)
    await run(NOW_MS + 10**6)
    assert not node.partition(TOPIC, 1).is_offline
    assert node.append(1, index=1) == 2


@on_loop
async def test_many_logs_leave_room_for_requests_in_between() -> None:
    node = await start_node()
    for index in range(100):
        node.assign(partition=index)
        await asyncio.sleep(0)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count_turns())
    await keeper(node).apply_retention(NOW_MS)
    counting.cancel()
    assert turns > 5


@on_loop
async def test_the_schedule_follows_the_configuration() -> None:
    node = await start_node()
    configs = [NodeConfig(PROPERTIES), NodeConfig(PROPERTIES | {"log.retention.check.interval.ms": "77"})]
    keeping = Housekeeping(
        node.replicas,
        lambda: configs[0],
        node.clock,
        node.disk,
        InlineWorkers(),
        lambda: node.disk,
        SystemPace,
    )
    tasks = {task.name: task for task in keeping.schedule()}
    assert len(tasks) == 11
    assert tasks["log retention"].interval_ms() == 300_000
    assert tasks["compaction"].interval_ms() == 15_000
    configs.pop(0)
    assert tasks["log retention"].interval_ms() == 77


@on_loop
async def test_a_directory_that_fails_at_the_start_of_compaction_goes_offline_alone() -> None:
    """Promise 30."""
    node = await start_node(directories=BOTH)
    node.disk.fail(5, when=lambda operation: operation.path.endswith("/a/cleaner-offset-checkpoint"))
    assert keeper(node).cleaner is not None
    assert list(node.replicas.directories.online) == [SECOND_DIRECTORY]
