"""Assignments, sessions and departures of classic groups."""

import errno

from headrace.errors import ErrorCode
from headrace.protocol.disk_records.offsets import GroupMetadataValue
from tests.support_data import NODE, NOW_MS
from tests.support_groups import REBALANCE_MS, SESSION_MS, TOPIC, GroupContext, serving
from tests.support_log import on_loop


def last_group(context: GroupContext) -> GroupMetadataValue:
    value = [value for _, value in context.written() if isinstance(value, GroupMetadataValue)][-1]
    assert isinstance(value, GroupMetadataValue)
    return value


@on_loop
async def test_everybody_is_told_its_part_when_the_leader_has_decided() -> None:
    async with serving() as context:
        joins = [context.new_member() for _ in range(3)]
        context.pass_time(6_000)
        leader, one, two = sorted(
            (join.result().member_id for join in joins),
            key=lambda member: member != joins[0].result().leader,
        )
        waiting = context.begin_sync(one, 1)
        assert not waiting.done()
        decided = context.begin_sync(leader, 1, {one: b"one", leader: b"leader"})
        assert (waiting.result().assignment, decided.result().assignment) == (b"one", b"leader")
        assert waiting.result().protocol_name == "range"
        assert context.begin_sync(two, 1).result().assignment == b"", "nothing was assigned to it"
        stored = last_group(context)
        assert {member.member_id: member.assignment for member in stored.members} == {
            leader: b"leader",
            one: b"one",
            two: b"",
        }


@on_loop
async def test_an_assignment_is_told_only_when_it_is_committed() -> None:
    async with serving(replicas=(NODE, 2), isr=(NODE, 2)) as context:
        partition = context.node.partition(TOPIC)

        def replicate() -> None:
            partition.on_follower_fetch(2, partition.leader_log.log_end_offset, 0, NOW_MS)

        told = context.begin_join().result().member_id
        replicate()
        join = context.begin_join(told)
        context.pass_time(3_000)
        sync = context.begin_sync(told, join.result().generation_id, {told: b"all"})
        assert not sync.done()
        replicate()
        assert sync.result().assignment == b"all"
        assert context.group().state_name == "Stable"


@on_loop
async def test_an_assignment_that_can_not_be_written_is_not_told_and_members_join_again() -> None:
    async with serving() as context:
        leader, follower = context.stable(2)
        joins = [
            context.begin_join(each.member_id, protocols={"range": b"new"}) for each in (leader, follower)
        ]
        assert {join.result().generation_id for join in joins} == {2}
        waiting = context.begin_sync(follower.member_id, 2)
        context.node.configure({"max.message.bytes": "10"}, TOPIC)
        failed = context.begin_sync(leader.member_id, 2, {leader.member_id: b"all"})
        assert failed.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert waiting.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert context.group().state_name == "PreparingRebalance"
        context.node.configure({}, TOPIC)
        assert last_group(context).generation == 1


@on_loop
async def test_members_that_never_ask_for_their_part_are_dropped() -> None:
    async with serving() as context:
        joins = [context.new_member(session_ms=1_000_000) for _ in range(2)]
        context.pass_time(6_000)
        leader = joins[0].result().leader
        other = next(join.result().member_id for join in joins if join.result().member_id != leader)
        context.begin_sync(leader, 1, {leader: b"all"})
        assert context.group().state_name == "Stable"
        context.pass_time(REBALANCE_MS)
        assert context.group().state_name == "PreparingRebalance"
        assert list(context.group().members) == [leader]
        assert context.heartbeat(other, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_whoever_waits_for_an_assignment_joins_again_when_somebody_comes() -> None:
    async with serving() as context:
        joins = [context.new_member() for _ in range(2)]
        context.pass_time(6_000)
        leader = joins[0].result().leader
        other = next(join.result().member_id for join in joins if join.result().member_id != leader)
        waiting = context.begin_sync(other, 1)
        context.new_member()
        assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
        late = context.begin_sync(leader, 1, {leader: b"late"})
        assert late.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS


@on_loop
async def test_a_member_without_heartbeats_expires_on_time_and_others_do_not() -> None:
    """Promise 19."""
    async with serving() as context:
        one, two = context.stable(2)
        for _ in range(3):
            context.pass_time(SESSION_MS - 1_000)
            assert context.heartbeat(one.member_id, 1) == 0 or context.group().state_name != "Stable"
        assert two.member_id not in context.group().members
        assert context.group().state_name == "PreparingRebalance"
        again = context.begin_join(one.member_id).result()
        assert (again.error_code, again.generation_id) == (0, 2)


@on_loop
async def test_a_commit_is_as_good_as_a_heartbeat() -> None:
    async with serving() as context:
        (member,) = context.stable()
        for offset in range(5):
            context.pass_time(SESSION_MS - 1)
            assert context.commit({0: offset}, member_id=member.member_id, generation=1) == 0
        assert context.group().state_name == "Stable"


@on_loop
async def test_a_member_whose_request_waits_does_not_expire() -> None:
    async with serving() as context:
        one, two = context.stable(2)
        again = context.begin_join(one.member_id, protocols={"range": b"new"})
        context.pass_time(SESSION_MS * 3)
        assert two.member_id not in context.group().members
        assert again.result().generation_id == 2


@on_loop
async def test_when_the_last_member_leaves_the_empty_group_is_written() -> None:
    async with serving() as context:
        one, two = context.stable(2)
        reply = context.leave(one.member_id, "stranger", two.member_id)
        codes = [member.error_code for member in reply.members]
        assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
        stored = last_group(context)
        assert (stored.generation, stored.members, stored.protocol) == (2, [], None)
        assert stored.protocol_type == "consumer"
        assert context.group().state_name == "Empty"


@on_loop
async def test_a_member_that_leaves_while_it_waits_to_join_is_told_so() -> None:
    async with serving() as context:
        one, two = context.stable(2)
        waiting = context.begin_join(one.member_id, protocols={"range": b"new"})
        context.leave(one.member_id)
        assert waiting.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert context.begin_join(two.member_id).result().generation_id == 2


@on_loop
async def test_whoever_waits_when_the_coordinator_moves_is_told_to_look_for_it() -> None:
    async with serving(replicas=(NODE, 2)) as context:
        partition = context.node.partition(TOPIC)
        told = context.begin_join().result().member_id
        partition.on_follower_fetch(2, 1, 0, NOW_MS)
        joining = context.begin_join(told)
        context.node.assign(TOPIC, 0, replicas=(NODE, 2), leader=2, leader_epoch=1, partition_epoch=1)
        assert joining.result().error_code == ErrorCode.NOT_COORDINATOR
        refused = context.begin_join(told).result()
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert context.heartbeat(told, 1) == ErrorCode.NOT_COORDINATOR


@on_loop
async def test_a_failed_disk_is_no_coordinator() -> None:
    async with serving() as context:
        (member,) = context.stable()
        context.node.disk.fail(errno.EIO)
        code = context.commit({0: 1}, member_id=member.member_id, generation=1)
        assert code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR)
        assert context.heartbeat(member.member_id, 1) == ErrorCode.NOT_COORDINATOR
