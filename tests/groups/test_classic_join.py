"""Joining classic groups: who is waited for and how long, who is let in, and what members agree on."""

import pytest

from headrace.errors import ErrorCode
from headrace.groups.settings import GroupSettings
from tests.support_groups import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, GroupContext, serving
from tests.support_log import on_loop


def join_all(context: GroupContext, *member_ids: str) -> list[int]:
    """Have members join again; the generations they are told."""
    joins = [context.begin_join(member_id) for member_id in member_ids]
    return [join.result().generation_id for join in joins]


@on_loop
async def test_the_first_rebalance_waits_for_more_members() -> None:
    async with serving() as context:
        first = context.new_member()
        context.pass_time(INITIAL_DELAY_MS - 1)
        assert not first.done()
        second = context.new_member()
        context.pass_time(INITIAL_DELAY_MS)
        assert not first.done(), "somebody came, so it waits once more"
        context.pass_time(INITIAL_DELAY_MS)
        assert first.result().generation_id == second.result().generation_id == 1
        assert first.result().leader == first.result().member_id
        assert len(first.result().members) == 2
        assert second.result().members == []


@on_loop
async def test_waiting_for_more_members_ends_with_the_rebalance_time_out() -> None:
    async with serving() as context:
        joins = []
        for _ in range(4):
            joins.append(context.new_member(rebalance_ms=7_000))
            context.pass_time(2_900)
        assert joins[0].done()
        assert {join.result().generation_id for join in joins if join.done()} == {1}


@on_loop
async def test_an_id_is_told_before_a_member_is_let_in_and_forgotten_if_it_stays_away() -> None:
    async with serving() as context:
        told = context.begin_join().result()
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert told.member_id.startswith("client-")
        assert context.group().pending_joins == {told.member_id}
        context.pass_time(SESSION_MS)
        assert context.group().pending_joins == set()
        refused = context.begin_join(told.member_id).result()
        assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_a_group_waits_for_whoever_was_told_an_id() -> None:
    async with serving() as context:
        (one,) = context.stable(session_ms=REBALANCE_MS * 2)
        told = context.begin_join().result()
        again = context.begin_join(one.member_id, session_ms=REBALANCE_MS * 2)
        assert not again.done()
        context.pass_time(SESSION_MS)
        assert again.result().generation_id == 2
        assert told.member_id not in context.group().members


@on_loop
async def test_members_that_do_not_join_again_in_time_are_left_behind() -> None:
    async with serving() as context:
        one, two = context.stable(2, session_ms=1_000_000)
        newcomer = context.new_member(session_ms=1_000_000)
        again = context.begin_join(one.member_id, session_ms=1_000_000)
        context.pass_time(REBALANCE_MS - 1)
        assert not again.done()
        context.pass_time(1)
        assert again.result().generation_id == newcomer.result().generation_id == 2
        assert two.member_id not in context.group().members
        assert context.heartbeat(two.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_another_member_leads_if_the_leader_does_not_join_again() -> None:
    async with serving() as context:
        leader, follower = context.stable(2, session_ms=1_000_000)
        again = context.begin_join(follower.member_id, session_ms=1_000_000, protocols={"range": b"other"})
        context.pass_time(REBALANCE_MS)
        assert again.result().leader == follower.member_id
        assert len(again.result().members) == 1
        assert leader.member_id not in context.group().members


@on_loop
async def test_the_leader_can_have_everybody_join_again_and_others_can_not() -> None:
    async with serving() as context:
        leader, follower = context.stable(2)
        unchanged = context.begin_join(follower.member_id).result()
        assert (unchanged.generation_id, context.group().state_name) == (1, "Stable")
        context.begin_join(leader.member_id)
        assert context.group().state_name == "PreparingRebalance"
        assert context.heartbeat(follower.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS


@on_loop
async def test_a_member_that_says_something_else_has_everybody_join_again() -> None:
    async with serving() as context:
        _, follower = context.stable(2)
        context.begin_join(follower.member_id, protocols={"range": b"changed"})
        assert context.group().state_name == "PreparingRebalance"


@on_loop
async def test_a_group_has_no_more_members_than_it_may_have() -> None:
    async with serving(settings=GroupSettings(size_max=2)) as context:
        one, two = context.stable(2)
        refused = context.begin_join().result()
        assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert refused.member_id == ""
        assert context.begin_join(two.member_id).result().error_code == 0
        assert join_all(context, one.member_id, two.member_id) == [2, 2]


@on_loop
async def test_of_those_that_join_at_once_no_more_are_let_in_than_there_is_room_for() -> None:
    async with serving(settings=GroupSettings(size_max=2)) as context:
        told = [context.begin_join().result().member_id for _ in range(3)]
        joins = [context.begin_join(member_id) for member_id in told]
        context.pass_time(REBALANCE_MS)
        codes = [join.result().error_code for join in joins]
        assert codes == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]


@pytest.mark.parametrize(
    ("ballots", "chosen"),
    [
        ((["range"], ["range", "sticky"]), "range"),
        ((["a", "b"], ["b", "a"], ["b", "a"]), "b"),
        ((["b", "c", "a"], ["c", "a"], ["c", "b", "a"]), "c"),
        # The rest is even: Kafka has it decided by Java's order of hashes.
        ((["range", "roundrobin"], ["roundrobin", "range"]), "range"),
        ((["cooperative-sticky", "range"], ["range", "cooperative-sticky"]), "range"),
    ],
)
@on_loop
async def test_members_vote_for_a_protocol_that_all_have(ballots: tuple[list[str], ...], chosen: str) -> None:
    async with serving() as context:
        joins = [context.new_member(protocols={name: name.encode() for name in ballot}) for ballot in ballots]
        context.pass_time(REBALANCE_MS)
        assert {join.result().protocol_name for join in joins} == {chosen}
        leader = next(join.result() for join in joins if join.result().members)
        assert [member.metadata for member in leader.members] == [chosen.encode()] * len(ballots)


@on_loop
async def test_a_new_member_that_is_never_taken_in_is_forgotten() -> None:
    async with serving() as context:
        context.stable(session_ms=1_800_000, rebalance_ms=1_800_000)
        waiting = context.new_member(session_ms=1_800_000, rebalance_ms=1_800_000)
        context.pass_time(300_000)
        assert waiting.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert len(context.group().members) == 1


@on_loop
async def test_a_client_that_hangs_up_while_it_waits_keeps_nobody_from_going_on() -> None:
    async with serving() as context:
        gone, there = context.new_member(), context.new_member()
        gone.cancel()
        context.pass_time(REBALANCE_MS)
        assert there.result().generation_id == 1
        context.pass_time(SESSION_MS)
        assert len(context.group().members) == 0


@on_loop
async def test_members_of_old_clients_are_let_in_at_once() -> None:
    async with serving() as context:
        join = context.begin_join(version=3)
        context.pass_time(INITIAL_DELAY_MS)
        assert join.result().member_id.startswith("client-")
        assert join.result().generation_id == 1


@on_loop
async def test_hundreds_of_members_settle_in_one_rebalance() -> None:
    async with serving() as context:
        replies = context.stable(300)
        newcomer = context.new_member()
        joins = [context.begin_join(reply.member_id) for reply in replies]
        assert {join.result().generation_id for join in (*joins, newcomer)} == {2}
        assert context.counters.completed_rebalances == 1
