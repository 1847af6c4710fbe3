"""Heartbeat and LeaveGroup of classic groups: who is still there, and who goes."""

import logging
from typing import Final

from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_group import (
    COMPLETING,
    DEAD,
    EMPTY,
    NO_MEMBER_ID,
    PREPARING,
    STABLE,
    ClassicGroup,
)
from headrace.groups.classic_rebalance import Outcome, Rebalances, nothing
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse

logger: Final = logging.getLogger("headrace.groups")


class Presence:
    """Decides on Heartbeat and LeaveGroup requests."""

    __slots__ = ("_rebalances",)

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
        """A member is alive; it is told if it has to join again."""
        if group.state_now is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state_now is EMPTY:
            return Decision((), HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        member = group.members[request.member_id]
        self._rebalances.put_off(group, member, member.session_timeout_ms)
        joins_again = group.state_now is PREPARING
        code = ErrorCode.REBALANCE_IN_PROGRESS if joins_again else ErrorCode.NONE
        return Decision((), HeartbeatResponse(error_code=code))

    def leave(
        self, group: ClassicGroup, members: list[MemberIdentity], now_ms: int
    ) -> Decision[LeaveGroupResponse]:
        """Take out every member that is named rightly; the others rebalance."""
        if group.state_now is DEAD:
            return Decision((), LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        responses = [
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=self._take_out(group, member),
            )
            for member in members
        ]
        gone = [response.member_id for response in responses if not response.error_code]
        outcome = self._go_on_without(group, gone, now_ms) if gone else nothing()
        return Decision(
            outcome.records,
            LeaveGroupResponse(members=responses),
            is_replayed=outcome.is_replayed,
            on_done=outcome.on_done,
        )

    def _go_on_without(self, group: ClassicGroup, gone: list[str], now_ms: int) -> Outcome:
        if group.state_now in (STABLE, COMPLETING):
            return self._rebalances.rebalance_or_complete(group, f"{', '.join(gone)} left", now_ms)
        if group.state_now is PREPARING:
            return self._rebalances.complete_if_all_joined(group, now_ms)
        return nothing()

    def _take_out(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if member_id == NO_MEMBER_ID:
            # An administrator removes static members by their instance ids alone.
            known = None if instance_id is None else group.static_members.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = known
        elif member_id in group.pending_joins:
            group.remove(member_id)
            self._rebalances.timers.cancel(("heartbeat", group.group_id, member_id))
            return ErrorCode.NONE
        else:
            try:
                group.check_member(member_id, instance_id)
            except KafkaError as error:
                return error.code
        logger.info(
            "member %s leaves group %s; client reason: %s",
            member_id,
            group.group_id,
            identity.reason or "not provided",
        )
        self._rebalances.timers.cancel(("heartbeat", group.group_id, member_id))
        self._rebalances.drop_member(group, group.members[member_id])
        return ErrorCode.NONE
