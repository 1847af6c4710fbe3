"""Consumer groups as clients see them: members of the new protocol come, go, die and return under load.

Nothing is lost, and offsets never go back. At the end every shard is what its log says."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient

from headrace.coordinator.rebuild import Rebuilding, differences
from headrace.coordinator.shard import ShardContext
from headrace.groups.shard import GroupShard
from headrace.protocol.prefixed import GROUP_LOG
from headrace.server.node import Node
from headrace.testing.entropy import SeededEntropy
from tests.support_consumer_load import consumer_member, settings_of
from tests.support_e2e import create_topic
from tests.support_group_load import (
    GROUP,
    PARTITIONS,
    TOPIC,
    Member,
    Notes,
    Producing,
    Watching,
    confluent_member,
    doomed_member,
)
from tests.support_log import on_loop
from tests.support_server import inner_node

SETTINGS = {
    "group_initial_rebalance_delay_ms": "100",
    "group_min_session_timeout_ms": "500",
    "group_consumer_session_timeout_ms": "1500",
    "group_consumer_min_session_timeout_ms": "500",
    "group_consumer_heartbeat_interval_ms": "200",
    "group_consumer_min_heartbeat_interval_ms": "100",
    "group_consumer_assignment_interval_ms": "100",
    "offsets_topic_num_partitions": "3",
}
STEP_RECORDS = 400

Join = Callable[[str, Notes], Member]


class Life:
    """A group's life: records keep coming, and its offsets are watched."""

    def __init__(self, bootstrap: str, host: str, port: int) -> None:
        self.bootstrap = bootstrap
        self.notes = Notes()
        self.members: list[Member] = []
        self._producing = Producing(bootstrap)
        self._watching = Watching(host, port)

    def __enter__(self) -> "Life":
        self._producing.__enter__()
        self._watching.__enter__()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._producing.stop()
        ends = dict(self._producing.ends)
        if kind is None:
            self.notes.wait_for(lambda found: not found.missing(ends), "consuming everything")
        for member in self.members:
            member.leave()
        self._watching.__exit__()
        assert kind is not None or not self._watching.steps_back

    def join(self, join: Join = consumer_member) -> None:
        self.members.append(join(self.bootstrap, self.notes))

    def leave_first(self) -> None:
        self.members.pop(0).leave()

    def go_on(self) -> None:
        target = self.notes.count() + STEP_RECORDS
        self.notes.wait_for(lambda found: found.count() >= target, f"consuming {STEP_RECORDS} more records")


def come_and_go(life: Life) -> None:
    life.join()
    life.go_on()
    life.join()
    life.go_on()
    life.join()
    life.leave_first()
    life.go_on()
    life.join()
    life.go_on()


def static_members(life: Life) -> None:
    def static(name: str) -> Join:
        return lambda bootstrap, notes: consumer_member(bootstrap, notes, group_instance_id=name)

    life.join(static("a"))
    life.join(static("b"))
    life.go_on()
    life.leave_first()
    life.join(static("a"))
    life.go_on()


def die_and_return(life: Life) -> None:
    """Members that are killed are noticed, and what they had is consumed by others."""
    for _ in range(2):
        with doomed_member(life.bootstrap, life.notes, "tests.support_consumer_load"):
            life.go_on()
    life.join()


def by_expression(life: Life) -> None:
    def expressed(bootstrap: str, notes: Notes) -> Member:
        return consumer_member(bootstrap, notes, f"^{TOPIC[:2]}.*")

    life.join(expressed)
    life.join(expressed)
    life.go_on()
    life.leave_first()
    life.go_on()


def both_protocols(life: Life) -> None:
    """A classic group becomes a consumer group when the first such member joins, and the other way round."""
    life.join(confluent_cooperative)
    life.join(confluent_cooperative)
    life.go_on()
    life.join(consumer_member)
    life.go_on()
    life.leave_first()
    life.join(consumer_member)
    life.go_on()
    life.leave_first()
    life.go_on()
    life.join(confluent_cooperative)
    life.go_on()
    life.leave_first()
    life.leave_first()
    life.go_on()


def confluent_cooperative(bootstrap: str, notes: Notes) -> Member:
    return confluent_member(bootstrap, notes, "cooperative-sticky")


@pytest.mark.parametrize(
    "story", [come_and_go, static_members, die_and_return, by_expression, both_protocols]
)
def test_every_record_is_consumed_and_offsets_never_go_back(
    story: Callable[[Life], None], tmp_path: Path
) -> None:
    def live(bootstrap: str, host: str, port: int) -> None:
        with Life(bootstrap, host, port) as life:
            story(life)

    run_on_node(tmp_path, live)


@on_loop
async def run_on_node(tmp_path: Path, story: Callable[[str, str, int], None]) -> None:
    async with inner_node(tmp_path, **SETTINGS) as node:
        endpoint = node.endpoints[0]
        host = endpoint.host or "localhost"
        bootstrap = f"{host}:{endpoint.port}"
        await asyncio.to_thread(create_topic, bootstrap, TOPIC, PARTITIONS)
        await asyncio.to_thread(story, bootstrap, host, endpoint.port)
        await compare_with_log(node)


async def compare_with_log(node: Node) -> None:
    """Every shard is what its log says."""
    groups = node.services.groups
    assert groups is not None

    def make_shard(context: ShardContext) -> GroupShard:
        return GroupShard(context, groups.settings, SeededEntropy(), groups.counters, groups.configs)

    image, clock = node.services.image, node.services.clock
    assert not await differences(groups.runtime, Rebuilding(make_shard, GROUP_LOG, image, clock))


def test_a_group_is_listed_and_described(tmp_path: Path) -> None:
    def describe(bootstrap: str, host: str, port: int) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        consumer = Consumer(settings_of(bootstrap, client_id="me"))
        assigned: list[int] = []
        consumer.subscribe([TOPIC], on_assign=lambda _, parts: assigned.extend(p.partition for p in parts))
        while not assigned:
            consumer.poll(0.1)
        listed = {each.group_id: each for each in admin.list_consumer_groups().result().valid}
        assert listed[GROUP].type is ConsumerGroupType.CONSUMER
        described = admin.describe_consumer_groups([GROUP])[GROUP].result()
        assert described.state is ConsumerGroupState.STABLE
        (member,) = described.members
        assert (member.client_id, member.host) == ("me", "/127.0.0.1")
        assert sorted(part.partition for part in member.assignment.topic_partitions) == sorted(assigned)
        consumer.close()
        assert admin.describe_consumer_groups([GROUP])[GROUP].result().state is ConsumerGroupState.EMPTY
        admin.delete_consumer_groups([GROUP])[GROUP].result()
        assert GROUP not in {each.group_id for each in admin.list_consumer_groups().result().valid}

    run_on_node(tmp_path, describe)
