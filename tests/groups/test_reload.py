"""After a restart groups are what they were: state is what records add up to, whoever wrote them."""

import pytest

from headrace.errors import ErrorCode
from headrace.groups.classic_replay import replayed_group
from headrace.groups.settings import GroupSettings
from headrace.groups.subscriptions import topics_of
from headrace.protocol.disk_records.offsets import GroupMetadataValue, MemberMetadata
from tests.answers.group_requests import subscription
from tests.support_groups import GROUP, SESSION_MS, TOPIC, serving
from tests.support_log import on_loop


@on_loop
async def test_members_go_on_after_a_restart_and_have_a_session_from_then_on() -> None:
    async with serving() as context:
        one, two = context.stable(2)
        context.commit({0: 5}, member_id=one.member_id, generation=1)
        before = context.shard.state()
    node = await context.node.restart(cleanly=False)
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.shard.state() == before
        assert again.heartbeat(one.member_id, 1) == 0
        assert again.fetch(0) == [(5, 0)]
        again.pass_time(SESSION_MS - 1)
        assert again.heartbeat(one.member_id, 1) == 0
        again.pass_time(1_000)
        assert two.member_id not in again.group().members
        assert again.heartbeat(one.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS


@on_loop
async def test_a_generation_that_was_not_assigned_is_forgotten() -> None:
    async with serving() as context:
        one, two = context.stable(2)
        context.begin_join(one.member_id, protocols={"range": b"new"})
        context.begin_join(two.member_id)
        assert context.group().generation == 2
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.group().generation == 1
        assert again.group().state_name == "Stable"
        assert again.heartbeat(one.member_id, 2) == ErrorCode.ILLEGAL_GENERATION


@on_loop
async def test_a_deleted_group_stays_deleted() -> None:
    async with serving() as context:
        context.commit({0: 5})
        await context.coordinator.delete([GROUP])
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert len(again.shard.groups) == 0


@on_loop
async def test_a_group_that_has_grown_too_large_rebalances_when_it_is_loaded() -> None:
    async with serving() as context:
        context.stable(3)
    node = await context.node.restart()
    async with serving(node, GroupSettings(size_max=2), leader_epoch=1, partition_epoch=1) as again:
        assert again.group().state_name == "PreparingRebalance"


@on_loop
async def test_open_transactions_are_found_again() -> None:
    async with serving() as context:
        context.commit_in_transaction(7, {0: 10})
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.fetch(0, stable=True) == [(-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
        again.end_transaction(7, True)
        assert again.fetch(0, stable=True) == [(10, 0)]


@on_loop
async def test_what_nobody_knows_is_passed_over() -> None:
    async with serving() as context:
        context.commit({0: 5})
        context.node.append(1, TOPIC, 0, keys=[b"\x00\x64whatever"])
    node = await context.node.restart()
    async with serving(node, leader_epoch=1, partition_epoch=1) as again:
        assert again.fetch(0) == [(5, 0)]


def test_a_group_of_an_old_release_has_the_session_time_out_for_rebalances() -> None:
    member = MemberMetadata(member_id="m", session_timeout=4_000, rebalance_timeout=-1)
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    group = replayed_group("old", value)
    assert group.members["m"].rebalance_timeout_ms == 4_000
    assert group.state_since_ms is None
    assert group.topics is None, "its subscription can't be read"


@pytest.mark.parametrize("version", range(4))
def test_topics_are_found_in_subscriptions_of_any_version(version: int) -> None:
    data = version.to_bytes(2, "big") + subscription("one", "two")[2:] + b"whatever comes later"
    assert topics_of(data) == ["one", "two"]
