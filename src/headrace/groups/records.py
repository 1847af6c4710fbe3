"""Classic groups as records of `__consumer_offsets`, in the version that Kafka writes."""

from typing import TYPE_CHECKING, Any, Final

from headrace.coordinator.shard import CoordinatorRecord
from headrace.protocol.disk_records.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.groups.classic_group import ClassicGroup

GROUP_VERSION: Final = 3


def group_record(
    group: "ClassicGroup", assignments: "Mapping[str, bytes] | None" = None
) -> GroupMetadataValue:
    """A group as it is, with these assignments or those that its members have."""
    protocol = group.protocol
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(protocol or ""),
            assignment=member.assignment if assignments is None else assignments[member.member_id],
        )
        for member in group.members.values()
    ]
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=protocol,
        leader=group.leader,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )


def empty_group_record(group: "ClassicGroup") -> GroupMetadataValue:
    """A group that is new and has not had any generation."""
    return GroupMetadataValue(
        protocol=None,
        leader=None,
        current_state_timestamp=-1 if group.state_since_ms is None else group.state_since_ms,
    )


def group_write(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    """The record that writes a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id), value, GROUP_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that deletes a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id))


def persisted_group(value: GroupMetadataValue) -> Any:
    """What two groups must agree on to be the same after a restart. When a group became stable is not in the
    log; when it became empty is, and offsets grow old from there."""
    members = {
        member.member_id: (
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            bytes(member.subscription),
            bytes(member.assignment),
        )
        for member in value.members
    }
    since_ms = None if members else value.current_state_timestamp
    return value.protocol_type, value.generation, value.protocol, value.leader, since_ms, members
