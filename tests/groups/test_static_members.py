"""Static members keep their part across restarts, and shut out others with their name."""

from headrace.errors import ErrorCode
from headrace.protocol.disk_records.offsets import GroupMetadataValue
from tests.support_groups import INITIAL_DELAY_MS, REBALANCE_MS, SESSION_MS, TOPIC, GroupContext, serving
from tests.support_log import on_loop


def static_group(context: GroupContext, *names: str) -> dict[str, str]:
    """Member ids by instance id, of a stable group; the first leads."""
    joins = {name: context.begin_join(instance=name) for name in names}
    context.pass_time(INITIAL_DELAY_MS * 2)
    ids = {name: join.result().member_id for name, join in joins.items()}
    for name, member_id in ids.items():
        parts = {each: each.encode() for each in ids.values()} if name == names[0] else None
        context.begin_sync(member_id, 1, parts, instance=name)
    assert context.group().state_name == "Stable"
    return ids


@on_loop
async def test_a_static_member_needs_no_id_and_comes_back_to_its_part_without_a_rebalance() -> None:
    async with serving() as context:
        ids = static_group(context, "one", "two")
        assert ids["one"].startswith("one-")
        back = context.begin_join(instance="two").result()
        assert (back.error_code, back.generation_id) == (0, 1)
        assert back.member_id != ids["two"]
        assert context.group().state_name == "Stable"
        part = context.begin_sync(back.member_id, 1, instance="two").result()
        assert part.assignment == ids["two"].encode()


@on_loop
async def test_the_former_process_with_the_name_is_fenced() -> None:
    async with serving() as context:
        ids = static_group(context, "one", "two")
        context.begin_join(instance="two")
        assert context.heartbeat(ids["two"], 1, instance="two") == ErrorCode.FENCED_INSTANCE_ID
        assert context.heartbeat(ids["two"], 1) == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_requests_of_the_former_process_that_wait_are_fenced_too() -> None:
    async with serving() as context:
        static_group(context, "one", "two")
        newcomer = context.begin_join(instance="three")
        assert not newcomer.done()
        other = context.begin_join(instance="three")
        assert newcomer.result().error_code == ErrorCode.FENCED_INSTANCE_ID
        assert not other.done()


@on_loop
async def test_a_leader_that_comes_back_leaves_the_assignment_as_it_is() -> None:
    async with serving() as context:
        static_group(context, "one", "two")
        back = context.begin_join(instance="one").result()
        assert back.skip_assignment
        assert back.leader == back.member_id
        assert len(back.members) == 2
        older = context.begin_join(instance="one", version=8).result()
        assert not older.skip_assignment
        assert older.leader == back.member_id != older.member_id
        assert older.members == []


@on_loop
async def test_static_members_that_stay_away_keep_their_place_until_their_session_ends() -> None:
    async with serving() as context:
        ids = static_group(context, "one", "two")
        joins = [context.begin_join(ids["one"], instance="one", protocols={"range": b"new"})]
        context.pass_time(SESSION_MS - 1)
        assert not joins[0].done()
        context.pass_time(1)
        assert joins[0].result().generation_id == 2
        assert "two" not in context.group().static_members


@on_loop
async def test_a_rebalance_goes_on_with_static_members_that_have_not_joined_again() -> None:
    async with serving() as context:
        joins = {name: context.begin_join(instance=name, session_ms=1_000_000) for name in ("one", "two")}
        context.pass_time(INITIAL_DELAY_MS * 2)
        ids = {name: join.result().member_id for name, join in joins.items()}
        context.begin_sync(ids["one"], 1, {}, instance="one")
        context.begin_sync(ids["two"], 1, instance="two")
        again = context.begin_join(ids["one"], instance="one", session_ms=1_000_000)
        context.pass_time(REBALANCE_MS)
        assert again.result().generation_id == 2
        assert set(context.group().members) == set(ids.values())


@on_loop
async def test_another_protocol_than_the_chosen_one_makes_for_a_rebalance() -> None:
    async with serving() as context:
        static_group(context, "one")
        back = context.begin_join(instance="one", protocols={"sticky": b"", "range": b""})
        assert back.result().generation_id == 2, "nobody else is there to be waited for"
        assert context.group().protocol == "sticky"


@on_loop
async def test_a_return_that_can_not_be_written_did_not_happen() -> None:
    async with serving() as context:
        ids = static_group(context, "one", "two")
        context.node.configure({"max.message.bytes": "10"}, TOPIC)
        failed = context.begin_join(instance="two").result()
        assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        context.node.configure({}, TOPIC)
        assert context.group().static_members["two"] == ids["two"]
        assert context.heartbeat(ids["two"], 1, instance="two") == 0


@on_loop
async def test_the_new_member_id_is_written() -> None:
    async with serving() as context:
        static_group(context, "one")
        back = context.begin_join(instance="one").result()
        values = [value for _, value in context.written() if isinstance(value, GroupMetadataValue)]
        assert [member.member_id for member in values[-1].members] == [back.member_id]
        assert [member.group_instance_id for member in values[-1].members] == ["one"]
