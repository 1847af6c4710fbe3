"""The groups' topic is compacted while it is used: what it adds up to stays the same."""

import asyncio

from headrace.config.node import NodeConfig
from headrace.replication.housekeeping import Housekeeping
from headrace.system.pace import SystemPace
from headrace.testing.workers import InlineWorkers
from tests.support_data import PROPERTIES, DataNode
from tests.support_groups import TOPIC, serving
from tests.support_log import on_loop

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
DAY_MS = 86_400_000


async def compact(node: DataNode) -> None:
    """Compact everything that was written so far."""
    config = NodeConfig(PROPERTIES)
    keeping = Housekeeping(
        node.replicas, lambda: config, node.clock, node.disk, InlineWorkers(), lambda: node.disk, SystemPace
    )
    log = node.partition(TOPIC).leader_log
    log.roll(node.clock.now_ms())
    before = log.size
    await keeping.compact(node.clock.now_ms())
    assert log.size < before


@on_loop
async def test_groups_and_offsets_survive_compaction_and_a_restart_after_it() -> None:
    async with serving(config=COMPACTED) as context:
        members = context.stable(3)
        for offset in range(50):
            one = members[offset % 3].member_id
            context.commit({0: offset, 1: offset}, member_id=one, generation=1)
            context.commit({0: offset}, group_id="simple")
            context.commit({0: offset}, group_id=f"gone-{offset % 5}")
        await context.coordinator.delete([f"gone-{number}" for number in range(5)])
        await compact(context.node)
        assert not await context.differences()
        before = context.shard.state()
        assert context.commit({0: 99}, group_id="simple") == 0
        after = context.shard.state()
        assert before != after
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.shard.state() == after
        assert {group.group_id for group in again.shard.groups} == {"group", "simple"}


@on_loop
async def test_offsets_of_transactions_survive_compaction() -> None:
    async with serving(config=COMPACTED) as context:
        for number in range(10):
            context.commit_in_transaction(7, {0: number, 1: number})
            context.end_transaction(7, number % 2 == 0)
        # What is not decided yet is not compacted, so it has a segment of its own.
        context.node.partition(TOPIC).leader_log.roll(context.node.clock.now_ms())
        context.commit_in_transaction(8, {2: 5})
        await compact(context.node)
        context.node.clock.advance(DAY_MS * 2)
        assert not await context.differences()
        context.end_transaction(8, True)
        assert context.fetch(0, 1, 2) == [(8, 0), (8, 0), (5, 0)]
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.fetch(0, 1, 2) == [(8, 0), (8, 0), (5, 0)]


@on_loop
async def test_a_load_goes_on_when_compaction_replaces_files_under_it() -> None:
    async with serving(config=COMPACTED) as context:
        for offset in range(500):
            context.commit({0: offset, 1: offset})
        rebuilding = asyncio.ensure_future(context.differences())
        await asyncio.sleep(0)
        await compact(context.node)
        assert not await rebuilding
