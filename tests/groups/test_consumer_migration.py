"""Groups whose members speak both protocols: upgrades, downgrades, and classic members in consumer groups."""

from typing import Any

import pytest

from headrace.errors import ErrorCode
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.embedded_protocol import read_assignment
from headrace.protocol.disk_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from headrace.protocol.messages.join_group import JoinGroupResponse
from headrace.protocol.messages.leave_group import MemberIdentity
from headrace.protocol.prefixed import encode_versioned
from tests.support_consumer_groups import ASSIGNMENT_INTERVAL_MS, Client, ConsumerContext, consumer_groups
from tests.support_groups import GROUP, SESSION_MS
from tests.support_log import on_loop

NO_UPGRADE = f"Cannot upgrade classic group {GROUP} to consumer group because"


def subscription(*topics: str, owned: set[int] | None = None) -> bytes:
    partitions = [ConsumerProtocolSubscriptionTopicPartition(topic="topic", partitions=sorted(owned or ()))]
    message = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=partitions if owned else [])
    return encode_versioned(message, 2)


def assignment(*partitions: int, user_data: bytes | None = None) -> bytes:
    topics = [ConsumerProtocolAssignmentTopicPartition(topic="topic", partitions=list(partitions))]
    message = ConsumerProtocolAssignment(assigned_partitions=topics, user_data=user_data)
    return encode_versioned(message, 2)


class Classic:
    """A member of the classic protocol that does as it is told."""

    def __init__(self, context: ConsumerContext, *, instance: str | None = None) -> None:
        self.context = context
        self.member_id = ""
        self.instance = instance
        self.generation = -1
        self.owned: set[int] = set()

    def join(self, **fields: Any) -> JoinGroupResponse:
        given = {
            "instance": self.instance,
            "protocols": {"range": subscription("topic", owned=self.owned)},
        } | fields
        reply = self.context.groups.begin_join(self.member_id, **given).result()
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            return self.join(**fields)
        if reply.error_code == ErrorCode.NONE:
            self.member_id, self.generation = reply.member_id, reply.generation_id
        return reply

    def sync(self) -> int:
        reply = self.context.groups.begin_sync(
            self.member_id, self.generation, instance=self.instance
        ).result()
        if reply.error_code == ErrorCode.NONE:
            assigned = read_assignment(reply.assignment).assigned_partitions
            self.owned = set(assigned[0].partitions) if assigned else set()
        return reply.error_code

    def beat(self) -> int:
        """A heartbeat; if it is told to, the member joins again."""
        code = self.context.groups.heartbeat(self.member_id, self.generation, instance=self.instance)
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            assert self.join().error_code == ErrorCode.NONE
            self.sync()
        return code


def classic_group(context: ConsumerContext, *assignments: bytes, **fields: Any) -> list[Classic]:
    """A stable classic group whose members have these assignments."""
    groups = context.groups
    fields = {"protocols": {"range": subscription("topic")}} | fields
    joins = [groups.new_member(**fields) for _ in assignments]
    while not all(join.done() for join in joins):
        groups.pass_time(500)
    replies = [join.result() for join in joins]
    given = dict(zip((reply.member_id for reply in replies), assignments, strict=True))
    for reply in sorted(replies, key=lambda each: each.member_id != each.leader):
        is_leader = reply.member_id == reply.leader
        groups.begin_sync(reply.member_id, reply.generation_id, given if is_leader else None)
    members = []
    for reply in replies:
        member = Classic(context)
        member.member_id, member.generation = reply.member_id, reply.generation_id
        members.append(member)
    return members


def kind_of(context: ConsumerContext) -> type:
    return type(context.groups.shard.groups.get(GROUP))


@on_loop
async def test_an_empty_classic_group_gives_way_and_keeps_its_offsets() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic")
        context.groups.commit({0: 7})
        assert kind_of(context) is ClassicGroup
        client = Client(context, "one", "topic").join()
        assert kind_of(context) is ConsumerGroup
        assert context.groups.fetch(0) == [(7, 0)]
        client.leave()
        context.groups.new_member()
        assert kind_of(context) is ClassicGroup
        assert context.groups.fetch(0) == [(7, 0)]


@on_loop
async def test_a_classic_group_becomes_a_consumer_group_and_everybody_gets_a_share() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 6)
        one, two = classic_group(context, assignment(0, 1, 2), assignment(3, 4, 5))
        one.owned, two.owned = {0, 1, 2}, {3, 4, 5}
        new = Client(context, "new", "topic").join()
        assert kind_of(context) is ConsumerGroup
        assert (context.group.epoch, new.owned) == (2, {}), "what the others have is not given away"
        for _ in range(3):
            one.beat()
            two.beat()
            new.beat()
        assert one.owned | two.owned | new.owned["topic"] == set(range(6))
        assert len(one.owned) == len(two.owned) == len(new.partitions) == 2
        assert context.group.state_name == "Stable"
        assert [member.member_type for member in context.described().members] == [0, 0, 1]


@on_loop
async def test_the_last_member_of_the_new_protocol_leaves_a_classic_group_behind() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 4)
        one, two = classic_group(context, assignment(0, 1), assignment(2, 3))
        new = Client(context, "new", "topic").join()
        for _ in range(3):
            one.beat()
            two.beat()
            new.beat()
        new.leave()
        assert kind_of(context) is ClassicGroup
        group = context.groups.group()
        assert group.state_name == "PreparingRebalance"
        assert set(group.members) == {one.member_id, two.member_id}
        assert {each.name for each in group.members[one.member_id].protocols} == {"range"}
        joins = [
            context.groups.begin_join(each.member_id, protocols={"range": subscription("topic")})
            for each in (one, two)
        ]
        assert {join.result().generation_id for join in joins} == {group.generation}


@on_loop
async def test_the_group_becomes_classic_also_when_a_session_ends() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        (one,) = classic_group(context, assignment(0, 1), session_ms=100_000)
        new = Client(context, "new", "topic").join()
        one.join(session_ms=100_000)
        one.sync()
        for _ in range(9):
            one.beat()
            context.pass_time(5_000)
        assert new.member_id == "new"
        assert kind_of(context) is ClassicGroup


@on_loop
async def test_a_static_member_may_come_back_with_the_classic_protocol() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        new = Client(context, "new", "topic", instance="i").join()
        assert new.owned == {"topic": {0, 1}}
        back = Classic(context, instance="i")
        assert back.join().error_code == ErrorCode.NONE
        assert kind_of(context) is ClassicGroup
        assert (back.generation, context.groups.group().state_name) == (2, "Stable")
        assert back.sync() == ErrorCode.NONE
        assert back.owned == {0, 1}
        assert context.refusal(member_id="new", member_epoch=2)[0] == ErrorCode.GROUP_ID_NOT_FOUND


@on_loop
async def test_a_static_member_with_other_wishes_makes_the_classic_group_rebalance() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        context.create_topic("other", 2)
        Client(context, "new", "other", instance="i").join()
        back = Classic(context, instance="i")
        assert back.join().error_code == ErrorCode.NONE
        assert context.groups.group().state_name == "PreparingRebalance"


@on_loop
async def test_a_static_member_may_come_back_with_the_new_protocol() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        other = Client(context, "other", "topic").join()
        classic = Classic(context, instance="i")
        classic.join()
        assert classic.member_id in context.group.members
        back = Client(context, "back", "topic", instance="i").join()
        context.settle(other, back)
        assert set(context.group.members) == {"other", "back"}
        assert context.group.classic_members == 0


@on_loop
async def test_classic_members_of_a_consumer_group_are_held_to_their_generation() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        Client(context, "new", "topic").join()
        classic = Classic(context)
        assert classic.join().error_code == ErrorCode.NONE
        groups, member_id = context.groups, classic.member_id
        assert groups.heartbeat(member_id, classic.generation + 1) == ErrorCode.ILLEGAL_GENERATION
        assert groups.heartbeat("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.heartbeat("new", 2) == ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
        assert groups.heartbeat(member_id, 2, instance="i") == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.begin_sync(member_id, 9).result().error_code == ErrorCode.ILLEGAL_GENERATION
        assert context.commit(0, member_id=member_id, epoch=9, version=8) == ErrorCode.ILLEGAL_GENERATION
        assert classic.join(protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert Classic(context).join(protocols={}).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        other = {"other": subscription("topic")}
        assert Classic(context).join(protocols=other).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        Client(context, "third", "topic").join()
        assert groups.begin_sync(member_id, classic.generation).result().error_code == (
            ErrorCode.REBALANCE_IN_PROGRESS
        )


@on_loop
async def test_classic_members_that_do_not_come_are_taken_out() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        new = Client(context, "new", "topic").join()
        silent = Classic(context)
        silent.join(session_ms=SESSION_MS)
        never_syncs = Classic(context)
        never_syncs.join(session_ms=100_000, rebalance_ms=20_000)
        assert len(context.group.members) == 3
        context.pass_time(SESSION_MS)
        new.beat()
        assert silent.member_id not in context.group.members
        context.pass_time(10_000)
        assert set(context.group.members) == {"new"}


@on_loop
async def test_classic_members_that_do_not_join_again_are_taken_out() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        new = Client(context, "new", "topic").join()
        classic = Classic(context)
        classic.join(session_ms=100_000, rebalance_ms=20_000)
        new.beat()
        assert classic.sync() in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        Client(context, "third", "topic").join()
        for _ in range(21):
            new.beat()
            context.groups.heartbeat(classic.member_id, classic.generation)
            context.pass_time(1_000)
        assert classic.member_id not in context.group.members


@on_loop
async def test_members_of_either_protocol_can_be_removed_by_an_administrator() -> None:
    async with consumer_groups() as context:
        Client(context, "one").join()
        Client(context, "two", instance="i").join()
        Client(context, "three").join()
        identities = [
            MemberIdentity(member_id="one"),
            MemberIdentity(member_id="", group_instance_id="i"),
            MemberIdentity(member_id="nobody"),
            MemberIdentity(member_id="", group_instance_id="j"),
            MemberIdentity(member_id="three", group_instance_id="i"),
        ]
        reply = context.groups.coordinator.leave(GROUP, identities).result()
        assert [each.error_code for each in reply.members] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        ]
        assert set(context.group.members) == {"three"}


@pytest.mark.parametrize(
    ("assigned", "fields", "settings", "reason"),
    [
        (assignment(0), {}, ConsumerSettings(can_upgrade=False), "online upgrade is disabled."),
        (
            b"of somebody",
            {"protocol_type": "connect"},
            ConsumerSettings(),
            "the group does not use the consumer embedded protocol.",
        ),
        (
            assignment(0),
            {},
            ConsumerSettings(size_max=0),
            "the group size exceeds the consumer group maximum size.",
        ),
        (b"?", {}, ConsumerSettings(), "the embedded consumer protocol is malformed."),
        (
            assignment(0, user_data=b"mine"),
            {},
            ConsumerSettings(),
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
            "default assignor before re-attempting the upgrade.",
        ),
    ],
)
@on_loop
async def test_some_classic_groups_stay_what_they_are(
    assigned: bytes, fields: dict[str, Any], settings: ConsumerSettings, reason: str
) -> None:
    async with consumer_groups(settings) as context:
        context.create_topic("topic")
        classic_group(context, assigned, **fields)
        assert context.refusal(
            member_id="new", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[]
        ) == (ErrorCode.GROUP_ID_NOT_FOUND, f"{NO_UPGRADE} {reason}")
        assert kind_of(context) is ClassicGroup
        assert context.refusal(member_id="new", member_epoch=1) == (
            ErrorCode.GROUP_ID_NOT_FOUND,
            f"Group {GROUP} is not a consumer group.",
        )


@on_loop
async def test_without_migration_classic_members_can_t_join_a_consumer_group() -> None:
    async with consumer_groups(ConsumerSettings(can_upgrade=False, can_downgrade=False)) as context:
        Client(context, "new").join()
        assert Classic(context).join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@on_loop
async def test_without_downgrades_a_consumer_group_stays_one() -> None:
    async with consumer_groups(ConsumerSettings(can_downgrade=False)) as context:
        context.create_topic("topic", 2)
        new = Client(context, "new", "topic").join()
        classic = Classic(context)
        classic.join()
        new.leave()
        assert kind_of(context) is ConsumerGroup
        context.pass_time(ASSIGNMENT_INTERVAL_MS)
        classic.join()
        assert classic.sync() == ErrorCode.NONE
        assert classic.owned == {0, 1}


@on_loop
async def test_whoever_waits_in_a_classic_group_that_is_upgraded_is_sent_back() -> None:
    async with consumer_groups() as context:
        context.create_topic("topic", 2)
        (one,) = classic_group(context, assignment(0, 1))
        told = context.groups.begin_join(protocols={"range": subscription("topic")}).result().member_id
        waiting = context.groups.begin_join(told, protocols={"range": subscription("topic")})
        assert not waiting.done()
        Client(context, "new", "topic").join()
        assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert set(context.group.members) == {one.member_id, told, "new"}
