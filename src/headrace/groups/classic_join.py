"""JoinGroup of classic groups: new members, pending ones, static ones that come back, and everybody else.

The reply goes to a future, since it may be due only when others have joined or records are committed."""

import logging
from typing import Final
from uuid import UUID

from headrace.coordinator.refusals import told
from headrace.coordinator.shard import CoordinatorRecord, Decision
from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.groups.classic_group import (
    COMPLETING,
    DEAD,
    EMPTY,
    NO_MEMBER_ID,
    PREPARING,
    STABLE,
    ClassicGroup,
)
from headrace.groups.classic_member import ClassicMember, JoinFuture, answer
from headrace.groups.classic_rebalance import Outcome, Rebalances, nothing
from headrace.groups.classic_replies import answer_join, fence, joined, refuse_join
from headrace.groups.client import GroupClient
from headrace.groups.records import empty_group_record, group_record, group_write
from headrace.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from headrace.ports import Entropy
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

#: From here on, a member is told its id before it is taken in.
_KNOWN_ID_SINCE: Final = 4
#: From here on, a static leader that comes back can be told to leave the assignment as it is.
_SKIPPING_SINCE: Final = 9

logger: Final = logging.getLogger("headrace.groups")


class Joins:
    """Decides on JoinGroup requests."""

    __slots__ = ("_entropy", "_groups", "_rebalances", "_settings", "_timers")

    def __init__(self, rebalances: Rebalances, entropy: Entropy) -> None:
        self._rebalances = rebalances
        self._groups = rebalances.groups
        self._timers = rebalances.timers
        self._settings = rebalances.settings
        self._entropy = entropy

    def join(
        self,
        client: GroupClient,
        request: JoinGroupRequest,
        future: JoinFuture,
        now_ms: int,
        conversion: list[CoordinatorRecord],
    ) -> Outcome:
        """Decide on a request to a classic group, or to none. `conversion` deletes an empty group of another
        kind that has given way."""
        group_id, member_id = request.group_id, request.member_id
        is_new_member = member_id == NO_MEMBER_ID
        group = self._groups.find_classic(group_id)
        is_new_group = group is None
        if group is None:
            if not is_new_member:
                refuse_join(future, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
                return nothing()
            group = self._groups.new_classic(group_id, now_ms)
        if not self._has_room(group, member_id):
            group.remove(member_id)
            refuse_join(future, NO_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
            outcome = nothing()
        elif is_new_member:
            outcome = self._join_new(group, client, request, future, now_ms)
        else:
            outcome = self._join_known(group, client, request, future, now_ms)
        if is_new_group and not outcome.records:
            return self._write_new_group(group, future, conversion)
        return outcome

    def _write_new_group(
        self, group: ClassicGroup, future: JoinFuture, conversion: list[CoordinatorRecord]
    ) -> Outcome:
        value = empty_group_record(group)

        def on_done(error: BaseException | None) -> None:
            if error is None:
                if group.written is None:
                    group.written = value
                return
            logger.warning("the new group %s was not written: %s", group.group_id, error)
            if self._groups.find(group.group_id) is group:
                self._groups.remove(group.group_id)
            answer(future, JoinGroupResponse(error_code=told(error).code))

        records = [*conversion, group_write(group.group_id, value)]
        return Decision(records, None, is_replayed=False, on_done=on_done)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Those who rejoin are counted while the group prepares, so that the last ones can be turned away."""
        state, size_max = group.state_now, self._settings.size_max
        if state in (EMPTY, DEAD):
            return True
        member = group.members.get(member_id)
        if state is PREPARING:
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.awaiting_join_count < size_max
        return member is not None or len(group.members) < size_max

    # Whoever has no member id yet

    def _join_new(
        self,
        group: ClassicGroup,
        client: GroupClient,
        request: JoinGroupRequest,
        future: JoinFuture,
        now_ms: int,
    ) -> Outcome:
        if not self._fits(group, request, future, NO_MEMBER_ID):
            return nothing()
        instance_id = request.group_instance_id
        if instance_id is not None:
            member_id = f"{instance_id}-{self._new_uuid()}"
            known = group.static_members.get(instance_id)
            if known is not None:
                return self._replace_static(group, client, request, known, member_id, future, now_ms)
            return self._add(group, client, request, member_id, future, now_ms)
        name = "null" if client.client_id is None else client.client_id
        member_id = f"{name}-{self._new_uuid()}"
        if client.version < _KNOWN_ID_SINCE:
            return self._add(group, client, request, member_id, future, now_ms)
        group.pending_joins.add(member_id)
        self._timers.schedule(
            ("heartbeat", group.group_id, member_id),
            request.session_timeout_ms,
            lambda now: self._rebalances.expire_member(group.group_id, member_id, now),
            retry=False,
        )
        refuse_join(future, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return nothing()

    def _fits(
        self, group: ClassicGroup, request: JoinGroupRequest, future: JoinFuture, member_id: str
    ) -> bool:
        if group.state_now is DEAD:
            refuse_join(future, member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return False
        names = [protocol.name for protocol in request.protocols]
        if not group.supports(request.protocol_type, names):
            refuse_join(future, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            return False
        return True

    def _new_uuid(self) -> UUID:
        return UUID(bytes=self._entropy.random_bytes(16), version=4)

    def _add(
        self,
        group: ClassicGroup,
        client: GroupClient,
        request: JoinGroupRequest,
        member_id: str,
        future: JoinFuture,
        now_ms: int,
    ) -> Outcome:
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            client.client_id or "",
            client.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
        )
        member.is_new = True
        member.awaiting_join = future
        if group.state_now is PREPARING and group.previous_state is EMPTY:
            group.has_new_member = True
        group.add(member)
        self._rebalances.put_off(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return self._rebalances.rebalance_or_complete(group, _reason(f"{member_id} joins", request), now_ms)

    # Whoever says that it is a member

    def _join_known(
        self,
        group: ClassicGroup,
        client: GroupClient,
        request: JoinGroupRequest,
        future: JoinFuture,
        now_ms: int,
    ) -> Outcome:
        member_id = request.member_id
        if not self._fits(group, request, future, member_id):
            return nothing()
        if member_id in group.pending_joins:
            if request.group_instance_id is not None:
                raise HeadraceError(f"{member_id} is about to join, and has become static meanwhile")
            return self._add(group, client, request, member_id, future, now_ms)
        try:
            group.check_member(member_id, request.group_instance_id)
        except KafkaError as error:
            reply = JoinGroupResponse(member_id=member_id, protocol_name=None, error_code=error.code)
            answer(future, reply)
            return nothing()
        return self._rejoin(group, group.members[member_id], request, future, now_ms)

    def _rejoin(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        request: JoinGroupRequest,
        future: JoinFuture,
        now_ms: int,
    ) -> Outcome:
        state, member_id = group.state_now, member.member_id
        if state is EMPTY:
            refuse_join(future, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            return nothing()
        is_leader = group.leader == member_id
        changes = (
            state is PREPARING or not member.matches(request.protocols) or (state is STABLE and is_leader)
        )
        if changes:
            self._update(group, member, request, future)
            reason = _reason(f"{member_id} joins again", request)
            return self._rebalances.rebalance_or_complete(group, reason, now_ms)
        # It has not heard the reply to its former request, or asks without need.
        answer(future, joined(group, member_id, tells_members=is_leader and state is COMPLETING))
        return nothing()

    def _update(
        self, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest, future: JoinFuture
    ) -> None:
        group.update_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        group.awaiting_join_count += member.awaiting_join is None
        member.awaiting_join = future

    # Static members that come back

    def _replace_static(
        self,
        group: ClassicGroup,
        client: GroupClient,
        request: JoinGroupRequest,
        old_id: str,
        new_id: str,
        future: JoinFuture,
        now_ms: int,
    ) -> Outcome:
        instance_id = request.group_instance_id or ""
        leader_before = group.leader
        old, member = group.replace_static(instance_id, old_id, new_id)
        fence(old)
        self._rebalances.put_off(group, member, member.session_timeout_ms)
        self._update(group, member, request, future)
        reason = _reason(f"static member {instance_id} is back as {new_id}", request)
        if group.state_now is STABLE:
            if group.protocol != group.select_protocol():
                return self._rebalances.rebalance_or_complete(group, reason, now_ms)
            return self._write_static(group, client, old, member, leader_before, future)
        if group.state_now is COMPLETING:
            # The leader may have been told of the old member id, and would assign nothing to the new one.
            return self._rebalances.prepare(group, reason, now_ms)
        if group.state_now in (EMPTY, DEAD):
            raise HeadraceError(f"group {group.group_id} has a static member and is {group.state_name}")
        return self._rebalances.complete_if_all_joined(group, now_ms)

    def _write_static(
        self,
        group: ClassicGroup,
        client: GroupClient,
        old: ClassicMember,
        member: ClassicMember,
        leader_before: str | None,
        future: JoinFuture,
    ) -> Outcome:
        """Nothing changes for the others: write the new member id, and let it have its assignment."""
        value = group_record(group)

        def on_done(error: BaseException | None) -> None:
            if error is not None:
                self._restore_static(group, old, member)
                reply = joined(group, NO_MEMBER_ID, tells_members=False)
                reply.leader, reply.error_code = leader_before or "", told(error).code
                answer(future, reply)
                return
            group.written = value
            skips = client.version >= _SKIPPING_SINCE and group.leader == member.member_id
            reply = joined(group, member.member_id, tells_members=skips, skips_assignment=skips)
            if client.version < _SKIPPING_SINCE:
                # Such a leader would assign anew; under its old id it takes itself for a follower.
                reply.leader = leader_before or ""
            answer_join(group, member, reply)

        return Decision([group_write(group.group_id, value)], None, is_replayed=False, on_done=on_done)

    def _restore_static(self, group: ClassicGroup, old: ClassicMember, member: ClassicMember) -> None:
        group.awaiting_join_count -= member.awaiting_join is not None
        member.awaiting_join = None
        group.update_protocols(member, list(old.protocols))
        member.rebalance_timeout_ms = old.rebalance_timeout_ms
        member.session_timeout_ms = old.session_timeout_ms
        _, restored = group.replace_static(old.instance_id or "", member.member_id, old.member_id)
        self._rebalances.put_off(group, restored, restored.session_timeout_ms)


def _reason(what: str, request: JoinGroupRequest) -> str:
    return f"{what}; client reason: {request.reason or 'not provided'}"
