"""A classic group as its record in the log describes it."""

from headrace.groups.classic_group import EMPTY, STABLE, ClassicGroup
from headrace.groups.classic_member import ClassicMember
from headrace.groups.subscriptions import subscribed_topics
from headrace.protocol.disk_records.offsets import GroupMetadataValue
from headrace.protocol.messages.join_group import JoinGroupRequestProtocol

_NONE: int = -1


def replayed_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """A group after a restart: stable if it has members, and empty if not."""
    since_ms = value.current_state_timestamp
    group = ClassicGroup(group_id, None if since_ms == _NONE else since_ms)
    group.state_now = STABLE if value.members else EMPTY
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.leader = value.leader
    group.written = value
    for member in value.members:
        rebalance_timeout_ms = member.rebalance_timeout
        group.add(
            ClassicMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout if rebalance_timeout_ms == _NONE else rebalance_timeout_ms,
                member.session_timeout,
                value.protocol_type,
                [JoinGroupRequestProtocol(name=value.protocol or "", metadata=member.subscription)],
                member.assignment,
            )
        )
    group.topics = subscribed_topics(group)
    return group
