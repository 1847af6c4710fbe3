"""Static members of consumer groups: a place is kept for them, under whichever member id they come back."""

from headrace.errors import ErrorCode
from tests.support_consumer_groups import (
    ASSIGNMENT_INTERVAL_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    Client,
    consumer_groups,
)
from tests.support_log import on_loop


@on_loop
async def test_a_static_member_finds_its_partitions_again() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one = Client(context, "one", "topic", instance="i").join()
        two = Client(context, "two", "topic").join()
        context.settle(one, two)
        had, epoch = one.partitions, context.group.epoch
        reply = one.leave(-2)
        assert (reply.member_id, reply.member_epoch) == ("one", -2)
        assert context.group.members["one"].epoch == -2
        two.beat()
        assert len(two.partitions) == 2, "its place is kept"
        again = Client(context, "one-again", "topic", instance="i").join()
        assert again.partitions == had
        assert (again.epoch, context.group.epoch) == (epoch, epoch), "nothing has changed for the others"
        assert set(context.group.members) == {"one-again", "two"}


@on_loop
async def test_an_instance_id_is_not_given_to_two() -> None:
    async with consumer_groups() as context:
        one = Client(context, "one", instance="i").join()
        code, text = context.refusal(
            member_id="two",
            instance_id="i",
            rebalance_timeout_ms=1,
            subscribed_topic_names=[],
            topic_partitions=[],
        )
        assert code == ErrorCode.UNRELEASED_INSTANCE_ID
        assert text == (
            "Static member two with instance id i cannot join the group because the instance id is owned by "
            "one member."
        )
        assert context.refusal(member_id="two", instance_id="i", member_epoch=one.epoch) == (
            ErrorCode.FENCED_INSTANCE_ID,
            "Static member two with instance id i was fenced by member one.",
        )
        assert context.refusal(member_id="one", instance_id="j", member_epoch=one.epoch) == (
            ErrorCode.UNKNOWN_MEMBER_ID,
            "Instance id j is unknown.",
        )
        assert context.refusal(member_id="two", instance_id="i", member_epoch=-2)[0] == (
            ErrorCode.FENCED_INSTANCE_ID
        )


@on_loop
async def test_the_place_is_kept_for_a_session_only() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic", instance="i").join()
        two = Client(context, "two", "topic").join()
        context.settle(one, two)
        one.leave(-2)
        for _ in range(SESSION_MS // HEARTBEAT_MS):
            context.pass_time(HEARTBEAT_MS)
            two.beat()
        assert set(context.group.members) == {"two"}
        two.beat()
        assert len(two.partitions) == 2


@on_loop
async def test_a_static_member_that_leaves_for_good_is_taken_out_at_once() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic", instance="i").join()
        two = Client(context, "two", "topic").join()
        context.settle(one, two)
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        one.leave(-1)
        two.beat()
        assert len(two.partitions) == 2
        assert context.group.static_members == {}


@on_loop
async def test_commits_of_a_static_member_that_was_replaced_do_not_count() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 1)
        one = Client(context, "one", "topic", instance="i").join()
        one.leave(-2)
        Client(context, "again", "topic", instance="i").join()
        assert context.commit(0, member_id="one", epoch=2) == ErrorCode.UNKNOWN_MEMBER_ID
        assert context.commit(0, member_id="again", epoch=2) == ErrorCode.NONE


@on_loop
async def test_a_static_member_may_come_back_with_other_wishes() -> None:
    async with consumer_groups() as context:
        context.create_topic("a", 2)
        context.create_topic("b", 2)
        one = Client(context, "one", "a", instance="i").join()
        one.leave(-2)
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        again = Client(context, "again", "b", instance="i").join()
        context.settle(again)
        assert again.owned == {"b": {0, 1}}
