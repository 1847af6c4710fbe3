"""Groups: which there are, what they are at, and who is in them."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.admin.outcomes import Answer, Answers, Outcomes, request_ms, settle
from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused, UnsupportedByBroker
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode
from headrace.protocol.codec import decode_prefix
from headrace.protocol.disk_records.consumer_protocol import ConsumerProtocolAssignment
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    Member,
)
from headrace.protocol.messages.delete_groups import DeleteGroupsRequest
from headrace.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from headrace.protocol.messages.list_groups import ListGroupsRequest
from headrace.types import TopicPartition

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
_CONSUMER_PROTOCOL: Final = "consumer"
_DEAD: Final = "Dead"
_VERSION_BYTES: Final = 2
_LOADING: Final = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})
#: Whoever is sent to by `send_coordinator` has been waited for already.
_NONE: Final[frozenset[ErrorCode]] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in short. `kind` is classic, consumer, share or streams, or empty where it is not told."""

    group: str
    kind: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group and the partitions that it has; `target` are those that it is to have."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group in full. `assignor` is how partitions are shared out, the protocol in a classic group."""

    group: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[GroupMember, ...]
    epoch: int | None = None

    @property
    def is_simple(self) -> bool:
        """Whether offsets were committed to the group by somebody who is not a member of it."""
        return self.kind == CLASSIC and not self.protocol_type


async def list_groups(
    cluster: Cluster,
    *,
    states: Iterable[str] = (),
    kinds: Iterable[str] = (),
    timeout_ms: int | None = None,
) -> list[GroupListing]:
    """The groups of all brokers by name; only those in one of `states` and of one of `kinds`, if given."""
    patience = cluster.patience(timeout_ms)
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))

    async def ask_node(node_id: int) -> Answer[list[GroupListing]]:
        reply = await cluster.send(node_id, request, timeout_ms=request_ms(cluster.config, patience))
        found = [
            GroupListing(each.group_id, each.group_type.lower(), each.protocol_type, each.group_state)
            for each in reply.groups
        ]
        return Answer(reply.error_code, None, found)

    async def ask(nodes: Mapping[int, None]) -> Answers[int, list[GroupListing]]:
        return Answers(dict(zip(nodes, await asyncio.gather(*map(ask_node, nodes)), strict=True)))

    brokers = dict.fromkeys((await cluster.refresh()).brokers)
    outcomes = await settle(
        brokers,
        ask,
        patience=patience,
        retried=_LOADING,
        where=lambda node: f"listing groups of broker {node}",
    )
    # A group may move from one broker to another meanwhile, and is listed once all the same.
    found = {each.group: each for listed in outcomes.all().values() for each in listed}
    return [found[group] for group in sorted(found)]


async def describe_groups(
    cluster: Cluster, groups: Iterable[str], *, timeout_ms: int | None = None
) -> Outcomes[str, GroupDescription]:
    """Describe groups of either protocol. Those that are not there are refused with GROUP_ID_NOT_FOUND."""
    patience = cluster.patience(timeout_ms)

    async def ask(wanted: Mapping[str, None]) -> Answers[str, GroupDescription | None]:
        answers = await asyncio.gather(*(_describe(cluster, group, patience) for group in wanted))
        return Answers(dict(zip(wanted, answers, strict=True)))

    outcomes = await settle(dict.fromkeys(groups), ask, patience=patience, retried=_NONE, where=group_name)
    return Outcomes({group: found for group, found in outcomes.done.items() if found}, outcomes.refused)


async def delete_groups(
    cluster: Cluster, groups: Iterable[str], *, timeout_ms: int | None = None
) -> Outcomes[str, None]:
    """Delete groups that have no members, with their committed offsets."""
    patience = cluster.patience(timeout_ms)

    async def ask_one(group: str) -> Answer[None]:
        request = DeleteGroupsRequest(groups_names=[group])
        reply = await cluster.send_coordinator(group, request, patience=patience)
        return Answer(reply.results[0].error_code, None, None)

    async def ask(wanted: Mapping[str, None]) -> Answers[str, None]:
        return Answers(dict(zip(wanted, await asyncio.gather(*map(ask_one, wanted)), strict=True)))

    return await settle(dict.fromkeys(groups), ask, patience=patience, retried=_NONE, where=group_name)


def group_name(group: str) -> str:
    """How messages name a group."""
    return f"group {group!r}"


async def _describe(cluster: Cluster, group: str, patience: Patience) -> Answer[GroupDescription | None]:
    """By the new protocol if the group is of that kind, otherwise by the classic one."""
    try:
        answer = await _describe_consumer(cluster, group, patience)
    except UnsupportedByBroker:
        answer = None
    if answer is not None and answer.code not in (
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNSUPPORTED_VERSION,
    ):
        return answer
    return await _describe_classic(cluster, group, patience, None if answer is None else answer.message)


async def _describe_consumer(
    cluster: Cluster, group: str, patience: Patience
) -> Answer[GroupDescription | None]:
    request = ConsumerGroupDescribeRequest(group_ids=[group])
    reply = await cluster.send_coordinator(group, request, patience=patience)
    (found,) = reply.groups
    described = GroupDescription(
        group=group,
        kind=CONSUMER,
        state=found.group_state,
        protocol_type=_CONSUMER_PROTOCOL,
        assignor=found.assignor_name,
        members=tuple(map(_consumer_member, found.members)),
        epoch=found.group_epoch,
    )
    return Answer(found.error_code, found.error_message, described)


async def _describe_classic(
    cluster: Cluster, group: str, patience: Patience, reason: str | None
) -> Answer[GroupDescription | None]:
    request = DescribeGroupsRequest(groups=[group])
    reply = await cluster.send_coordinator(group, request, patience=patience)
    (found,) = reply.groups
    if found.error_code == ErrorCode.NONE and found.group_state == _DEAD:
        # Brokers before 4.0 describe a group that is not there as one that is dead.
        return Answer(ErrorCode.GROUP_ID_NOT_FOUND, reason, None)
    is_of_consumers = found.protocol_type in ("", _CONSUMER_PROTOCOL)
    described = GroupDescription(
        group=group,
        kind=CLASSIC,
        state=found.group_state,
        protocol_type=found.protocol_type,
        assignor=found.protocol_data,
        members=tuple(_classic_member(member, is_of_consumers) for member in found.members),
    )
    return Answer(found.error_code, reason or found.error_message, described)


def _consumer_member(member: Member) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target=_partitions(member.target_assignment),
        epoch=member.member_epoch,
    )


def _partitions(assignment: Assignment) -> tuple[TopicPartition, ...]:
    found = (
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )
    return tuple(sorted(found))


def _classic_member(member: DescribedGroupMember, is_of_consumers: bool) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_classic_assignment(member.member_assignment) if is_of_consumers else (),
    )


def _classic_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """What members of a classic group told each other; the broker never looks into it."""
    if not data:
        return ()
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    known = min(version, ConsumerProtocolAssignment.VERSION_MAX)
    try:
        found, _ = decode_prefix(ConsumerProtocolAssignment, known, data, _VERSION_BYTES)
    except MalformedMessage as error:
        raise BrokerRefused(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error), "reading a member's assignment"
        ) from error
    return tuple(
        sorted(
            TopicPartition(topic.topic, partition)
            for topic in found.assigned_partitions
            for partition in topic.partitions
        )
    )
