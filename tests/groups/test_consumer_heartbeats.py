"""Joining, changing and leaving consumer groups: replies, epochs, and the records that are written."""

import pytest

from headrace.errors import ErrorCode
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.metadata_hash import group_hash
from headrace.protocol.disk_records import consumer_groups as records
from tests.support_consumer_groups import (
    ASSIGNMENT_INTERVAL_MS,
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    Client,
    ConsumerContext,
    consumer_groups,
)
from tests.support_groups import GROUP
from tests.support_log import on_loop


def kinds(context: ConsumerContext, since: int = 0) -> list[str]:
    """The kinds of records that were written, tombstones marked."""
    names = []
    for key, value in context.groups.written()[since:]:
        name = type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        names.append(name if value is not None else f"no {name}")
    return names


@on_loop
async def test_the_first_member_gets_everything_at_once() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 3)
        client = Client(context, "one", "topic")
        reply = client.beat()
        assert (reply.member_id, reply.member_epoch, reply.heartbeat_interval_ms) == ("one", 2, HEARTBEAT_MS)
        assert client.owned == {"topic": {0, 1, 2}}
        assert kinds(context) == [
            "MemberMetadata",
            "Metadata",
            "TargetAssignmentMember",
            "TargetAssignmentMetadata",
            "CurrentMemberAssignment",
        ]
        assert context.group.state_name == "Stable"
        assert context.group.metadata_hash not in (0, group_hash({}))


@on_loop
async def test_a_heartbeat_that_changes_nothing_writes_and_tells_nothing() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic")
        client = Client(context, "one", "topic").join()
        written = len(context.groups.written())
        reply = client.beat()
        assert (reply.member_epoch, reply.assignment) == (2, None)
        assert len(context.groups.written()) == written
        assert client.beat(topic_partitions=None).assignment is None


@on_loop
async def test_a_member_that_says_everything_anew_is_told_its_assignment() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic")
        client = Client(context, "one", "topic").join()
        client.subscribe("topic")
        again = client.beat(
            rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["topic"], topic_partitions=[]
        )
        assert again.assignment is not None
        assert context.names(again.assignment.topic_partitions) == {"topic": {0, 1, 2}}


@on_loop
async def test_members_without_an_id_are_given_one_in_the_first_version() -> None:
    async with consumer_groups() as context:
        reply = context.send(
            version=0, rebalance_timeout_ms=1000, subscribed_topic_names=[], topic_partitions=[]
        )
        assert reply.error_code == ErrorCode.NONE
        assert len(reply.member_id or "") == 22


@on_loop
async def test_a_second_member_gets_its_share_once_the_first_has_given_it_back() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one = Client(context, "one", "topic").join()
        one.holds_on = True
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        two = Client(context, "two", "topic").join()
        assert two.owned == {}
        assert two.epoch == 3
        one.beat()
        assert (one.epoch, len(one.partitions)) == (2, 4)
        two.beat()
        assert two.owned == {}, "the first one still has it"
        one.beat(topic_partitions=None)
        assert one.epoch == 2, "it did not say what it has"
        one.holds_on = False
        one.beat()
        assert (one.epoch, len(one.partitions)) == (3, 2)
        two.beat()
        assert len(two.partitions) == 2
        assert one.partitions.isdisjoint(two.partitions)
        assert context.group.state_name == "Stable"


@on_loop
async def test_assignments_are_not_worked_out_more_often_than_configured() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one = Client(context, "one", "topic").join()
        context.pass_time(ASSIGNMENT_INTERVAL_MS - 1)
        two = Client(context, "two", "topic").join()
        assert (context.group.epoch, context.group.target_epoch, two.epoch) == (3, 2, 2)
        assert context.group.state_name == "Assigning"
        context.pass_time(1)
        one.beat()
        assert context.group.target_epoch == 3
        context.settle(one, two)
        context.configure(consumer_assignment_interval_ms="0")
        Client(context, "three", "topic").join()
        assert context.group.target_epoch == context.group.epoch == 4


@on_loop
async def test_a_group_is_configured_by_itself() -> None:
    async with consumer_groups() as context:
        context.configure(consumer_heartbeat_interval_ms="7000", consumer_session_timeout_ms="50000")
        client = Client(context, "one").join()
        assert client.beat().heartbeat_interval_ms == 7000
        context.pass_time(49_000)
        assert "one" in context.group.members
        context.pass_time(1_000)
        assert context.group.is_empty


@on_loop
async def test_a_member_whose_session_ends_is_taken_out_and_its_partitions_handed_on() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one, two = Client(context, "one", "topic").join(), Client(context, "two", "topic").join()
        context.settle(one, two)
        written = len(context.groups.written())
        for _ in range(SESSION_MS // HEARTBEAT_MS):
            one.beat()
            context.pass_time(HEARTBEAT_MS)
        assert set(context.group.members) == {"one"}
        assert kinds(context, written)[:4] == [
            "no CurrentMemberAssignment",
            "no TargetAssignmentMember",
            "no MemberMetadata",
            "Metadata",
        ]
        one.beat()
        assert len(one.partitions) == 4
        assert two.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


@on_loop
async def test_a_member_that_does_not_give_back_in_time_is_taken_out() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one = Client(context, "one", "topic", rebalance_ms=10_000).join()
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        two = Client(context, "two", "topic").join()
        one.holds_on = True
        for _ in range(11):
            one.beat()
            two.beat()
            context.pass_time(1_000)
        assert set(context.group.members) == {"two"}
        two.beat()
        assert len(two.partitions) == 4


@on_loop
async def test_leaving_writes_tombstones_and_hands_on_at_once() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one, two = Client(context, "one", "topic").join(), Client(context, "two", "topic").join()
        context.settle(one, two)
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        reply = one.leave()
        assert (reply.member_id, reply.member_epoch) == ("one", -1)
        two.beat()
        assert len(two.partitions) == 4
        two.leave()
        assert context.group.state_name == "Empty"
        assert (context.group.members, context.group.targets) == ({}, {})


@on_loop
async def test_subscriptions_may_change() -> None:
    async with consumer_groups() as context:
        context.create_topic("a", 2)
        context.create_topic("b", 2)
        one, two = Client(context, "one", "a").join(), Client(context, "two", "a", "b").join()
        context.settle(one, two)
        assert "b" not in one.owned
        assert two.owned["b"] == {0, 1}
        two.subscribe("b")
        context.settle(one, two)
        assert one.owned == {"a": {0, 1}}
        assert two.owned == {"b": {0, 1}}
        two.subscribe()
        context.settle(one, two)
        assert two.owned == {}


@on_loop
async def test_groups_follow_their_topics() -> None:
    async with consumer_groups() as context:
        client = Client(context, "one", "topic").join()
        assert client.owned == {}
        context.create_topic("topic", 2)
        context.settle(client)
        assert client.owned == {"topic": {0, 1}}
        epoch = context.group.epoch
        context.create_topic("another")
        client.beat()
        assert context.group.epoch == epoch, "nobody is subscribed to that"
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        context.add_partition("topic")
        client.beat()
        assert client.owned == {"topic": {0, 1, 2}}
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        context.delete_topic("topic")
        client.beat()
        client.owned = {}
        client.beat()
        assert context.group.members["one"].assigned == {}
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        context.create_topic("topic", 1)
        client.beat()
        assert client.owned == {"topic": {0}}


@on_loop
async def test_the_assignor_that_most_members_name_is_used() -> None:
    async with consumer_groups() as context:
        for name in ("a", "b"):
            context.create_topic(name, 3)
        one = Client(context, "one", "a", "b").join()
        two = Client(context, "two", "a", "b", assignor="range").join()
        context.settle(one, two)
        assert context.described().assignor_name == "range"
        assert sorted(map(len, one.owned.values())) == [2, 2], "the first ones get more of every topic"
        three = Client(context, "three", "a", "b", assignor="uniform").join()
        four = Client(context, "four", "a", "b", assignor="uniform").join()
        context.settle(one, two, three, four)
        assert context.described().assignor_name == "uniform"
        assert sorted(len(each.partitions) for each in (one, two, three, four)) == [1, 1, 2, 2]


@on_loop
async def test_a_lost_reply_is_forgiven_and_other_epochs_are_fenced() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        Client(context, "one", "topic").join()
        forgiven = context.send(member_id="one", member_epoch=0, topic_partitions=[])
        assert forgiven.error_code == ErrorCode.INVALID_REQUEST, "joining says everything"
        code, text = context.refusal(member_id="one", member_epoch=3)
        assert code == ErrorCode.FENCED_MEMBER_EPOCH
        assert text == (
            "The consumer group member has a greater member epoch (3) than the one known by the group "
            "coordinator (2). The member must abandon all its partitions and rejoin."
        )
        assert context.refusal(member_id="one", member_epoch=1)[0] == ErrorCode.FENCED_MEMBER_EPOCH
        context.add_partition("topic")
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        assert context.send(member_id="one", member_epoch=2, topic_partitions=[]).member_epoch == 3
        assert context.send(member_id="one", member_epoch=2, topic_partitions=[]).member_epoch == 3
        assert context.refusal(member_id="one", member_epoch=2)[0] == ErrorCode.FENCED_MEMBER_EPOCH


@on_loop
async def test_a_full_group_lets_nobody_in() -> None:
    async with consumer_groups(ConsumerSettings(size_max=1)) as context:
        one = Client(context, "one").join()
        code, text = context.refusal(
            member_id="two", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[]
        )
        assert code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert text == "The consumer group has reached its maximum capacity of 1 members."
        assert one.beat().error_code == ErrorCode.NONE


@on_loop
async def test_whoever_is_unknown_is_refused() -> None:
    async with consumer_groups() as context:
        assert context.refusal(member_id="one", member_epoch=1) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Consumer group {GROUP} not found.",
        )
        assert context.refusal(member_id="one", member_epoch=-1) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Group {GROUP} not found.",
        )
        Client(context, "one").join()
        assert context.refusal(member_id="two", member_epoch=1) == (
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member two is not a member of group {GROUP}.",
        )


JOINING = {"member_id": "m", "rebalance_timeout_ms": 1, "subscribed_topic_names": [], "topic_partitions": []}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
@on_loop
async def test_requests_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    async with consumer_groups() as context:
        assert context.refusal(**(JOINING | fields)) == (ErrorCode.INVALID_REQUEST, message)


@on_loop
async def test_an_assignor_that_there_is_not_is_refused() -> None:
    async with consumer_groups() as context:
        assert context.refusal(**JOINING, server_assignor="sticky") == (
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
        )


@on_loop
async def test_members_commit_with_their_epoch_or_for_what_they_had_then() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic").join()
        commit = context.commit
        assert commit(0, member_id="one", epoch=2) == ErrorCode.NONE
        assert commit(0, member_id="one", epoch=3) == ErrorCode.STALE_MEMBER_EPOCH
        assert commit(0, member_id="two", epoch=2) == ErrorCode.UNKNOWN_MEMBER_ID
        assert commit(0, member_id="one", epoch=2, version=8) == ErrorCode.UNSUPPORTED_VERSION
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        context.add_partition("topic")
        one.beat()
        assert one.epoch == 3
        assert commit(0, member_id="one", epoch=2) == ErrorCode.NONE
        assert commit(2, member_id="one", epoch=2) == ErrorCode.STALE_MEMBER_EPOCH


@on_loop
async def test_a_group_is_described() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        one = Client(context, "one", "topic").join()
        described = context.described()
        assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
        (member,) = described.members
        assert (member.member_id, member.member_epoch, member.member_type) == ("one", one.epoch, 1)
        assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
        assert member.subscribed_topic_names == ["topic"]
        for assignment in (member.assignment, member.target_assignment):
            (topic,) = assignment.topic_partitions
            assert (topic.topic_name, topic.partitions) == ("topic", [0, 1])
        missing = context.groups.shard.consumers.describe(["nothing"])[0]
        assert (missing.error_code, missing.error_message) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "Group nothing not found.",
        )


@on_loop
async def test_only_empty_groups_are_deleted() -> None:
    async with consumer_groups() as context:
        client = Client(context, "one").join()

        def delete() -> int:
            deleted = context.groups.runtime.write(0, lambda shard, now_ms: shard.delete_groups([GROUP]))
            return deleted.result()[0].error_code

        assert delete() == ErrorCode.NON_EMPTY_GROUP
        client.leave()
        assert delete() == ErrorCode.NONE
        assert context.groups.shard.groups.find(GROUP) is None
        keys = [type(key) for key, value in context.groups.written() if value is None]
        assert records.ConsumerGroupMetadataKey in keys
