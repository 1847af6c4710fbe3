"""SyncGroup of classic groups: the leader brings the assignment, all get theirs when it is committed."""

import logging
from functools import partial
from typing import Final

from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_group import COMPLETING, DEAD, PREPARING, ClassicGroup
from headrace.groups.classic_member import NO_ASSIGNMENT, SyncFuture, answer
from headrace.groups.classic_rebalance import Outcome, Rebalances, nothing
from headrace.groups.classic_replies import refuse_sync
from headrace.groups.records import group_record, group_write
from headrace.protocol.disk_records.offsets import GroupMetadataValue
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")


class Syncs:
    """Decides on SyncGroup requests."""

    __slots__ = ("_rebalances",)

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, future: SyncFuture, now_ms: int
    ) -> Outcome:
        """Decide on a request to a classic group that is not empty."""
        refusal = _refusal(group, request)
        if refusal is not None:
            refuse_sync(future, refusal)
            return nothing()
        member = group.members[request.member_id]
        self._rebalances.note_synced(group, member.member_id)
        if group.state_now is COMPLETING:
            member.awaiting_sync = future
            return self._assign(group, request, now_ms) if group.leader == member.member_id else nothing()
        answer(
            future,
            SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol,
                assignment=member.assignment,
            ),
        )
        return nothing()

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int) -> Outcome:
        given = {each.member_id: each.assignment for each in request.assignments}
        missing = [member_id for member_id in group.members if member_id not in given]
        if missing:
            logger.warning("the leader of group %s assigns nothing to %s", group.group_id, ", ".join(missing))
            given.update(dict.fromkeys(missing, NO_ASSIGNMENT))
        value = group_record(group, given)
        on_done = partial(self._on_written, group, group.generation, given, value, now_ms)
        return Decision([group_write(group.group_id, value)], None, is_replayed=False, on_done=on_done)

    def _on_written(
        self,
        group: ClassicGroup,
        generation: int,
        assignments: dict[str, bytes],
        value: GroupMetadataValue,
        now_ms: int,
        error: BaseException | None,
    ) -> None:
        if error is None:
            group.written = value
        # Somebody may have joined meanwhile: then there will be another assignment.
        if group.state_now is not COMPLETING or group.generation != generation:
            return
        if error is None:
            self._rebalances.set_assignments(group, assignments, now_ms)
        else:
            self._rebalances.on_assignment_failed(group, error, now_ms)


def _refusal(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode | None:
    if group.state_now is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.check_member(request.member_id, request.group_instance_id)
    except KafkaError as error:
        return error.code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state_now is PREPARING else None


def _differ(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known
