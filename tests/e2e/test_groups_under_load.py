"""Consumers that join, leave, die and return under load: nothing is lost, and offsets never go back.

The node runs in this process, so that its shards can be rebuilt from their logs and compared at the end."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.coordinator.rebuild import Rebuilding, differences
from headrace.coordinator.shard import ShardContext
from headrace.groups.shard import GroupShard
from headrace.protocol.prefixed import GROUP_LOG
from headrace.server.node import Node
from headrace.testing.entropy import SeededEntropy
from tests.support_e2e import create_topic
from tests.support_group_load import (
    GROUP,
    PARTITIONS,
    TOPIC,
    Member,
    Notes,
    Producing,
    Watching,
    aiokafka_member,
    confluent_member,
    doomed_member,
    kafka_python_member,
)
from tests.support_log import on_loop
from tests.support_server import inner_node

SETTINGS = {
    "group_initial_rebalance_delay_ms": "100",
    "group_min_session_timeout_ms": "500",
    "offsets_topic_num_partitions": "3",
}
MEMBERS: dict[str, Callable[[str, Notes], Member]] = {
    "confluent-range": confluent_member,
    "confluent-cooperative": lambda bootstrap, notes: confluent_member(
        bootstrap, notes, "cooperative-sticky"
    ),
    "kafka-python": kafka_python_member,
    "aiokafka": aiokafka_member,
}
STEP_RECORDS = 400


def live_through(bootstrap: str, host: str, port: int, join: Callable[[str, Notes], Member]) -> None:
    """The life of a group."""
    notes = Notes()

    def more() -> None:
        target = notes.count() + STEP_RECORDS
        notes.wait_for(lambda found: found.count() >= target, f"consuming {STEP_RECORDS} more records")

    with Producing(bootstrap) as producing, Watching(host, port) as watching:
        members = [join(bootstrap, notes)]
        more()
        members.append(join(bootstrap, notes))
        more()
        members.append(join(bootstrap, notes))
        members.pop(0).leave()
        more()
        members.append(join(bootstrap, notes))
        producing.stop()
        ends = dict(producing.ends)
        notes.wait_for(lambda found: not found.missing(ends), "consuming everything")
        for member in members:
            member.leave()
    assert not notes.missing(ends)
    assert not watching.steps_back
    assert set(watching.committed) == set(range(PARTITIONS))


def die_and_return(bootstrap: str, host: str, port: int) -> None:
    """Members that are killed are noticed, and what they had is consumed by others."""
    notes = Notes()
    with Producing(bootstrap) as producing, Watching(host, port) as watching:
        for _ in range(2):
            target = notes.count() + STEP_RECORDS
            with doomed_member(bootstrap, notes):
                notes.wait_for(lambda found, least=target: found.count() >= least, "consuming before the end")  # type: ignore[misc]
        survivor = confluent_member(bootstrap, notes)
        producing.stop()
        ends = dict(producing.ends)
        notes.wait_for(lambda found: not found.missing(ends), "consuming everything")
        survivor.leave()
    assert not watching.steps_back


async def compare_with_log(node: Node) -> None:
    """Every shard is what its log says."""
    groups = node.services.groups
    assert groups is not None

    def make_shard(context: ShardContext) -> GroupShard:
        return GroupShard(context, groups.settings, SeededEntropy(), groups.counters, groups.configs)

    image, clock = node.services.image, node.services.clock
    assert not await differences(groups.runtime, Rebuilding(make_shard, GROUP_LOG, image, clock))
    assert [group.group_id for shard in groups.runtime.active_shards() for group in shard.groups] == [GROUP]


@pytest.mark.parametrize("kind", MEMBERS)
def test_members_come_and_go_and_every_record_is_consumed(kind: str, tmp_path: Path) -> None:
    join = MEMBERS[kind]
    run_on_node(tmp_path, lambda bootstrap, host, port: live_through(bootstrap, host, port, join))


def test_members_die_and_return_and_every_record_is_consumed(tmp_path: Path) -> None:
    run_on_node(tmp_path, die_and_return)


@on_loop
async def run_on_node(tmp_path: Path, story: Callable[[str, str, int], None]) -> None:
    async with inner_node(tmp_path, **SETTINGS) as node:
        endpoint = node.endpoints[0]
        host = endpoint.host or "localhost"
        bootstrap = f"{host}:{endpoint.port}"
        await asyncio.to_thread(create_topic, bootstrap, TOPIC, PARTITIONS)
        await asyncio.to_thread(story, bootstrap, host, endpoint.port)
        await compare_with_log(node)
