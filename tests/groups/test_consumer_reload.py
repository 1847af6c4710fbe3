"""Consumer groups after a restart: all is as before, and sessions begin anew."""

from headrace.errors import ErrorCode
from tests.support_consumer_groups import (
    ASSIGNMENT_INTERVAL_MS,
    SESSION_MS,
    Client,
    consumer_groups,
)
from tests.support_log import on_loop


@on_loop
async def test_members_go_on_after_a_restart_without_noticing() -> None:
    async with consumer_groups() as context:
        context.create_topic("foo", 4)
        one = Client(context, "one", "foo").join()
        two = Client(context, "two", regex="fo+", instance="i").join()
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        context.settle(one, two)
        before, written = context.group.state(), len(context.groups.written())
        context.groups.runtime._reload(context.groups.runtime.shards[0])
        await context.groups.loaded()
        assert context.group.state() == before
        for client in (one, two):
            reply = client.beat()
            assert (reply.error_code, reply.assignment) == (ErrorCode.NONE, None)
        context.groups.runtime.timers.fire_due()
        assert len(context.groups.written()) == written


@on_loop
async def test_sessions_begin_with_the_load() -> None:
    async with consumer_groups() as context:
        Client(context, "one").join()
        context.pass_time(SESSION_MS - 1_000)
        context.groups.runtime._reload(context.groups.runtime.shards[0])
        await context.groups.loaded()
        context.pass_time(SESSION_MS - 1_000)
        assert "one" in context.group.members
        context.pass_time(1_000)
        assert context.group.is_empty


@on_loop
async def test_the_time_to_give_back_begins_with_the_load() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic", rebalance_ms=5_000).join()
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        Client(context, "two", "topic").join()
        one.holds_on = True
        one.beat()
        context.groups.runtime._reload(context.groups.runtime.shards[0])
        await context.groups.loaded()
        context.pass_time(5_000)
        assert set(context.group.members) == {"two"}


@on_loop
async def test_a_lost_append_leaves_no_trace() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic").join()
        before = context.group.state()
        hosted = context.groups.runtime.shards[0]
        end, hosted.end_offset = hosted.end_offset, -1
        context.add_partition("topic")
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        reply = context.send(member_id="one", member_epoch=2, topic_partitions=[])
        assert (end, reply.error_code) == (hosted.partition.leader_log.log_end_offset, 16)
        await context.groups.loaded()
        assert context.group.state() == before
        one.beat()
        assert len(one.partitions) == 3


@on_loop
async def test_a_member_with_many_partitions_is_found_again() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 300)
        client = Client(context, "one", "topic").join()
        assert len(client.partitions) == 300
        before = context.group.state()
        context.groups.runtime._reload(context.groups.runtime.shards[0])
        await context.groups.loaded()
        assert context.group.state() == before
