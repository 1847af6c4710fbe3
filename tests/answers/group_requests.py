"""Short ways to write requests of group members, and to get groups into the states that scenarios need."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from headrace.protocol.disk_records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest
from headrace.protocol.messages.heartbeat import HeartbeatRequest
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.protocol.messages.list_groups import ListGroupsRequest
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from headrace.protocol.prefixed import encode_versioned
from headrace.types import ZERO_UUID
from tests.answers.session import Session

LATEST_JOIN, LATEST_SYNC, LATEST_HEARTBEAT, LATEST_LEAVE = 9, 5, 4, 5
NO_GENERATION = -1


def subscription(*topics: str) -> bytes:
    """What a consumer says about itself."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 1)


def join(
    group: str,
    member: str = "",
    *,
    instance: str | None = None,
    protocols: Mapping[str, bytes] | None = None,
    protocol_type: str = "consumer",
    session_ms: int = 30_000,
    rebalance_ms: int = 5_000,
) -> JoinGroupRequest:
    given = {"range": subscription("nothing")} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in given.items()],
    )


def sync(
    group: str,
    member: str,
    generation: int,
    *,
    instance: str | None = None,
    protocol_type: str | None = "consumer",
    protocol: str | None = "range",
    assignments: Mapping[str, bytes] | None = None,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=data)
            for name, data in (assignments or {}).items()
        ],
    )


def heartbeat(group: str, member: str, generation: int, instance: str | None = None) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group, generation_id=generation, member_id=member, group_instance_id=instance
    )


def leave(
    group: str, *members: str | tuple[str, str | None], version: int = LATEST_LEAVE
) -> LeaveGroupRequest:
    """Members by id, or by id and instance id; early versions know one only."""
    pairs = [(each, None) if isinstance(each, str) else each for each in members]
    if version < 3:
        return LeaveGroupRequest(group_id=group, member_id=pairs[0][0])
    return LeaveGroupRequest(
        group_id=group,
        members=[MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in pairs],
    )


def find(*keys: str, version: int, kind: int = 0) -> FindCoordinatorRequest:
    """Where the state of keys is; early versions know one key only."""
    if version < 4:
        return FindCoordinatorRequest(key=keys[0], key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=kind)


def commit(
    group: str,
    offsets: Mapping[str, Mapping[int, int]],
    *,
    member: str = "",
    generation: int = NO_GENERATION,
    instance: str | None = None,
    metadata: str | None = "",
    ids: Mapping[str, UUID] | None = None,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    """Offsets by topic and partition, by name and id at once: each version takes what it knows."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=(ids or {}).get(topic, ZERO_UUID),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=0,
                        committed_metadata=metadata,
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
    )


def fetch_offsets(
    group: str,
    topics: Mapping[str, Sequence[int]] | None,
    version: int,
    *,
    ids: Mapping[str, UUID] | None = None,
    stable: bool = False,
) -> OffsetFetchRequest:
    """Offsets of one group, in the form of a version."""
    if version < 8:
        named = None
        if topics is not None:
            named = [
                OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes))
                for name, indexes in topics.items()
            ]
        return OffsetFetchRequest(group_id=group, topics=named, require_stable=stable)
    return OffsetFetchRequest(groups=[group_offsets(group, topics, ids=ids)], require_stable=stable)


def group_offsets(
    group: str,
    topics: Mapping[str, Sequence[int]] | None,
    *,
    ids: Mapping[str, UUID] | None = None,
) -> OffsetFetchRequestGroup:
    """One of several groups whose offsets are asked for."""
    named = None
    if topics is not None:
        named = [
            OffsetFetchRequestTopics(
                name=name, topic_id=(ids or {}).get(name, ZERO_UUID), partition_indexes=list(indexes)
            )
            for name, indexes in topics.items()
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=named)


def delete_offsets(group: str, topics: Mapping[str, Sequence[int]]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
            )
            for name, indexes in topics.items()
        ],
    )


def await_groups(session: Session) -> None:
    """Have the groups' topic made, and wait until all of it is served; nothing of this is written down."""
    session.settle(FindCoordinatorRequest(key="any"), 1, lambda reply: reply.error_code == 0)
    session.settle(ListGroupsRequest(), 4, lambda reply: reply.error_code == 0)
    session.settle(fetch_offsets("await-groups", {"nothing": [0]}, 5), 5, lambda reply: reply.error_code == 0)
    session.settle(heartbeat("await-groups", "nobody", 0), 4, lambda reply: reply.error_code == 25)


def member_id(session: Session, group: str, **fields: Any) -> str:
    """The id that a new member is told to come back with; nothing of this is written down."""
    reply = session.settle(join(group, **fields), LATEST_JOIN, lambda reply: reply.error_code == 79)
    found: str = reply.member_id
    return found


def joined(session: Session, group: str, *connections: str, **fields: Any) -> list[Any]:
    """Members of a new group that have joined, the leader first; nothing of this is written down."""
    members = [member_id(session, group, **fields) for _ in connections]
    written = len(session.exchanges)
    sent = [
        session.begin("joining", join(group, member, **fields), LATEST_JOIN, connection)
        for member, connection in zip(members, connections, strict=True)
    ]
    replies = [session.finish(each) for each in sent]
    del session.exchanges[written:]
    for reply in replies:
        if reply.error_code:
            raise AssertionError(f"{group} was not joined: {reply}")
    return sorted(replies, key=lambda reply: reply.member_id != reply.leader)


def stable(session: Session, group: str, *connections: str, **fields: Any) -> list[Any]:
    """Likewise, with an assignment for everybody."""
    replies = joined(session, group, *connections, **fields)
    written = len(session.exchanges)
    leader = replies[0]
    assignments = {reply.member_id: b"part of " + group.encode() for reply in replies}
    sent = [
        session.begin(
            "syncing",
            sync(
                group,
                reply.member_id,
                leader.generation_id,
                protocol_type=leader.protocol_type,
                protocol=leader.protocol_name,
                assignments=assignments if reply is leader else None,
            ),
            LATEST_SYNC,
            connection,
        )
        for reply, connection in zip(replies, connections, strict=True)
    ]
    for each in sent:
        if session.finish(each).error_code:
            raise AssertionError(f"{group} is not stable")
    del session.exchanges[written:]
    return replies
