"""Members of consumer groups that do as they should, and many that do not."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headrace.config.alteration import ResourceType
from headrace.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from headrace.protocol.messages.delete_groups import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups import DescribeGroupsRequest
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.list_groups import ListGroupsRequest
from tests.answers.group_requests import (
    await_groups,
    commit,
    fetch_offsets,
    heartbeat,
    join,
    leave,
    stable,
    subscription,
    sync,
)
from tests.answers.requests import await_config, create_topic, versions
from tests.answers.session import Session

KEYS = (68, 69)
LATEST = 1
#: The version of JoinGroup that takes members under any id.
_JOIN_AS_SAID = 3


def beat(group: str, member: str = "one", epoch: int = 0, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; one that joins says everything."""
    says: dict[str, Any] = {"group_id": group, "member_id": member, "member_epoch": epoch}
    if epoch == 0:
        says |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [], "topic_partitions": []}
    return ConsumerGroupHeartbeatRequest(**(says | fields))


def owned(topic_id: UUID, *partitions: int) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=list(partitions))]


def described(*groups: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=operations)


def assign_at_once(session: Session, *groups: str) -> None:
    """Have groups get new assignments as soon as they need them; nothing of this is written down."""
    key = "consumer.assignment.interval.ms"
    for group in groups:
        config = AlterableConfig(name=key, value="0")
        resource = AlterConfigsResource(
            resource_type=ResourceType.GROUP, resource_name=group, configs=[config]
        )
        session.settle(
            IncrementalAlterConfigsRequest(resources=[resource]),
            1,
            lambda reply: not reply.responses[0].error_code,
        )
        await_config(session, ResourceType.GROUP, group, key, "0")


def heartbeat_refusals(session: Session) -> None:
    await_groups(session)
    group = "consumer-refusals"
    refused: Sequence[tuple[str, dict[str, Any]]] = (
        ("no group", {"group": ""}),
        ("an empty instance id", {"instance_id": ""}),
        ("an empty rack", {"rack_id": ""}),
        ("joining without a time-out", {"rebalance_timeout_ms": -1}),
        ("joining with partitions", {"topic_partitions": owned(UUID(int=7), 0)}),
        ("joining without saying what it has", {"topic_partitions": None}),
        ("joining without wishes", {"subscribed_topic_names": None}),
        ("leaving for a while without an instance id", {"epoch": -2}),
        ("an epoch that means nothing", {"epoch": -3}),
        ("an unknown assignor", {"server_assignor": "sticky"}),
        ("an unknown assignor and no time-out", {"server_assignor": "", "rebalance_timeout_ms": -1}),
        ("an unknown group", {"epoch": 1}),
        ("leaving an unknown group", {"epoch": -1}),
        ("leaving an unknown group for a while", {"epoch": -2, "instance_id": "i"}),
    )
    for version in versions(ConsumerGroupHeartbeatRequest):
        for about, fields in refused:
            session.ask(about, beat(**({"group": group} | fields)), version)
    session.ask("no member id", beat(group, ""), LATEST)
    session.ask("no member id with an epoch", beat(group, "", 1), 0)
    session.ask("no member id when leaving", beat(group, "", -1), 0)


def epochs(session: Session) -> None:
    await_groups(session)
    group, topic = "consumer-epochs", "consumer-epochs"
    topic_id = session.named(create_topic(session, topic, 2))
    assign_at_once(session, group)
    session.ask("joining", beat(group, subscribed_topic_names=[topic, "nothing"]), LATEST)
    session.ask("staying", beat(group, epoch=2), LATEST)
    session.ask("saying what it has", beat(group, epoch=2, topic_partitions=owned(topic_id, 0, 1)), 0)
    session.ask("joining again", beat(group, subscribed_topic_names=[topic]), LATEST)
    session.ask("too new an epoch", beat(group, epoch=9), LATEST)
    session.ask("too old an epoch", beat(group, epoch=1), LATEST)
    session.ask("an unknown member", beat(group, "two", 3), LATEST)
    session.ask("leaving as an unknown member", beat(group, "two", -1), LATEST)
    session.ask("an instance id that is not known", beat(group, epoch=3, instance_id="i"), LATEST)
    session.ask("wanting nothing", beat(group, epoch=3, subscribed_topic_names=[]), LATEST)
    session.ask("giving back", beat(group, epoch=3, topic_partitions=[]), LATEST)
    session.ask("the epoch before", beat(group, epoch=3, topic_partitions=[]), LATEST)
    session.ask(
        "the epoch before with partitions", beat(group, epoch=3, topic_partitions=owned(topic_id, 0)), 1
    )
    for version in versions(ConsumerGroupDescribeRequest):
        session.ask("how it is", described(group, operations=True), version)
    session.ask("leaving", beat(group, epoch=-1), LATEST)
    session.ask("leaving twice", beat(group, epoch=-1), LATEST)
    session.ask("how it is without members", described(group), LATEST)


def expressions(session: Session) -> None:
    await_groups(session)
    wrong = (
        "[",
        "(",
        "a**",
        "(?P<x",
        "*",
        "a{1001}",
        "[z-a]",
        "(?=x)",
        "\\8",
        "x)",
        "a\\",
        "\\p{Foo}",
        "a{2,1}",
    )
    for regex in wrong:
        request = beat("expressions", subscribed_topic_names=None, subscribed_topic_regex=regex)
        session.ask("an expression that is none", request, LATEST)
    request = beat("expressions", subscribed_topic_names=None, subscribed_topic_regex="")
    session.ask("an empty expression", request, LATEST)
    request = beat("expressions", epoch=1, subscribed_topic_regex="(")
    session.ask("changing to one that is none", request, LATEST)
    session.ask("how it is", described("expressions"), LATEST)


def static_members(session: Session) -> None:
    await_groups(session)
    group = "consumer-static"
    create_topic(session, group)
    assign_at_once(session, group)
    static: dict[str, Any] = {"instance_id": "i", "subscribed_topic_names": [group]}
    session.ask("joining", beat(group, **static), LATEST)
    session.ask("another one with its instance id", beat(group, "two", **static), LATEST)
    session.ask("the same one once more", beat(group, **static), LATEST)
    session.ask("as another one", beat(group, "two", 2, instance_id="i"), LATEST)
    session.ask("under another instance id", beat(group, "one", 2, instance_id="j"), LATEST)
    session.ask("another one leaves for a while", beat(group, "two", -2, instance_id="i"), LATEST)
    session.ask("an unknown instance id leaves", beat(group, "one", -2, instance_id="j"), LATEST)
    session.ask("leaving for a while", beat(group, "one", -2, instance_id="i"), LATEST)
    session.ask("how it is meanwhile", described(group), LATEST)
    session.ask("back under another id", beat(group, "two", **static), LATEST)
    session.ask("the former id", beat(group, "one", 2, instance_id="i"), LATEST)
    session.ask("how it is", described(group), LATEST)
    session.ask("leaving", beat(group, "two", -1, instance_id="i"), LATEST)


def unknown_groups(session: Session) -> None:
    await_groups(session)
    stable(session, "classic-here", "a")
    for version in versions(ConsumerGroupDescribeRequest):
        session.ask("unknown groups", described("unknown", "", "classic-here", operations=True), version)
        session.ask("no groups", described(), version)
    session.ask("joining a group of another protocol", beat("workers-here"), LATEST)
    stable(session, "connect-here", "b", protocol_type="connect", protocols={"v1": b""})
    session.ask("joining workers", beat("connect-here"), LATEST)
    session.ask("a heartbeat to a classic group", beat("classic-here", epoch=1), LATEST)
    session.ask("leaving a classic group", beat("classic-here", epoch=-1), LATEST)
    session.ask("joining what can't be read", beat("classic-here"), LATEST)


def offsets_and_administration(session: Session) -> None:
    await_groups(session)
    group = "consumer-offsets"
    topic_id = session.named(create_topic(session, group))
    session.ask("joining", beat(group, subscribed_topic_names=[group]), LATEST)
    committed = {group: {0: 1}}
    for version in (8, 9):
        for member, epoch in (("one", 2), ("one", 3), ("one", 1), ("two", 2), ("", -1)):
            request = commit(group, committed, member=member, generation=epoch)
            session.ask("a commit", request, version)
    for asking, epoch in (("one", 2), ("one", 3), ("one", 1), ("two", 2), (None, -1), ("", 2)):
        question = fetch_offsets(group, {group: [0]}, 9)
        question.groups[0].member_id, question.groups[0].member_epoch = asking, epoch
        session.ask("a fetch", question, 9)
    session.ask("described as a classic one", DescribeGroupsRequest(groups=[group]), 6)
    session.ask("described as a classic one before", DescribeGroupsRequest(groups=[group]), 5)
    session.ask("deleting it", DeleteGroupsRequest(groups_names=[group]), 2)
    session.ask("leaving", beat(group, epoch=-1), LATEST)
    session.ask("a commit to the empty group", commit(group, committed), 9)
    session.ask("deleting it when it is empty", DeleteGroupsRequest(groups_names=[group]), 2)
    session.ask("leaving what is gone", beat(group, epoch=-1), LATEST)
    assert topic_id


def classic_members(session: Session) -> None:
    """JoinGroup and its like to a consumer group."""
    await_groups(session)
    group = "consumer-mixed"
    create_topic(session, group)
    assign_at_once(session, group)
    session.ask("joining", beat(group, subscribed_topic_names=[group]), LATEST)
    told = {"range": subscription(group)}
    session.ask("of another type", join(group, "c", protocol_type="connect"), _JOIN_AS_SAID)
    session.ask("without protocols", join(group, "c", protocols={}), _JOIN_AS_SAID)
    session.ask("classic joins", join(group, "c", protocols=told), _JOIN_AS_SAID)
    other = {"other": subscription(group)}
    session.ask("with another protocol", join(group, "d", protocols=other), _JOIN_AS_SAID)
    session.ask("how it is", described(group), LATEST)
    session.ask("a heartbeat", heartbeat(group, "c", 3), 4)
    session.ask("a wrong generation", heartbeat(group, "c", 2), 4)
    session.ask("of the other protocol", heartbeat(group, "one", 2), 4)
    session.ask("of nobody", heartbeat(group, "d", 2), 4)
    session.ask("asking", sync(group, "c", 3), 5)
    session.ask("asking with a wrong generation", sync(group, "c", 2), 5)
    session.ask("asking with another type", sync(group, "c", 3, protocol_type="connect"), 5)
    session.ask("asking with another protocol", sync(group, "c", 3, protocol="other"), 5)
    session.ask("asking as the other one", sync(group, "one", 2), 5)
    session.ask("asking as nobody", sync(group, "d", 3), 5)
    session.ask("a commit", commit(group, {group: {0: 1}}, member="c", generation=3), 8)
    session.ask("a late commit", commit(group, {group: {0: 1}}, member="c", generation=9), 8)
    session.ask("leaving", leave(group, "c", "d", version=5), 5)
    session.ask("the other one leaves", leave(group, "one", version=5), 5)
    session.ask("how it is without members", described(group), LATEST)


def listing(session: Session) -> None:
    await_groups(session)
    session.ask("joining", beat("listed"), LATEST)
    session.ask("a simple group", commit("simple", {"nothing": {0: 1}}), 8)
    for version in versions(ListGroupsRequest):
        session.ask("all", ListGroupsRequest(), version)
    session.ask("consumers", ListGroupsRequest(types_filter=["Consumer"]), 5)
    session.ask("others", ListGroupsRequest(types_filter=["classic"]), 5)
    session.ask("stable ones", ListGroupsRequest(states_filter=["stable"]), 5)
    session.ask("leaving", beat("listed", epoch=-1), LATEST)
    session.ask("empty ones", ListGroupsRequest(states_filter=["Empty"]), 5)


SCENARIOS = (
    heartbeat_refusals,
    epochs,
    expressions,
    static_members,
    unknown_groups,
    offsets_and_administration,
    classic_members,
)
ALONE = (listing,)
