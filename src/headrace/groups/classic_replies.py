"""What members of classic groups are answered."""

from headrace.errors import ErrorCode
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.classic_member import ClassicMember, JoinFuture, SyncFuture, answer
from headrace.protocol.messages.join_group import JoinGroupResponse
from headrace.protocol.messages.sync_group import SyncGroupResponse


def refuse_join(future: JoinFuture, member_id: str, code: ErrorCode) -> None:
    """Answer a JoinGroup that leads nowhere."""
    answer(future, JoinGroupResponse(member_id=member_id, error_code=code))


def refuse_sync(future: SyncFuture, code: ErrorCode) -> None:
    """Answer a SyncGroup that leads nowhere."""
    answer(future, SyncGroupResponse(error_code=code))


def joined(
    group: ClassicGroup, member_id: str, *, tells_members: bool, skips_assignment: bool = False
) -> JoinGroupResponse:
    """A member is in the present generation; the leader is told who else is."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skips_assignment,
        member_id=member_id,
        members=group.joined_members() if tells_members else [],
    )


def answer_join(group: ClassicGroup, member: ClassicMember, reply: JoinGroupResponse) -> None:
    """Answer the JoinGroup of a member, if one waits."""
    future, member.awaiting_join = member.awaiting_join, None
    if answer(future, reply):
        group.awaiting_join_count -= 1


def answer_sync(member: ClassicMember, reply: SyncGroupResponse) -> bool:
    """Answer the SyncGroup of a member; false if none waits."""
    future, member.awaiting_sync = member.awaiting_sync, None
    return answer(future, reply)


def fence(member: ClassicMember) -> None:
    """Answer whatever waits of a member whose instance id is somebody else's now."""
    answer(
        member.awaiting_join,
        JoinGroupResponse(
            member_id=member.member_id, protocol_name=None, error_code=ErrorCode.FENCED_INSTANCE_ID
        ),
    )
    answer(member.awaiting_sync, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    member.awaiting_join = member.awaiting_sync = None
