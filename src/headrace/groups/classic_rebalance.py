"""How a classic group gets from one generation to the next, and what happens when members stay away."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Final

from headrace.coordinator.refusals import told
from headrace.coordinator.shard import Decision, ShardTimers
from headrace.errors import ErrorCode
from headrace.groups.classic_group import (
    COMPLETING,
    DEAD,
    EMPTY,
    NO_MEMBER_ID,
    PREPARING,
    STABLE,
    ClassicGroup,
)
from headrace.groups.classic_member import NO_ASSIGNMENT, ClassicMember
from headrace.groups.classic_replies import answer_join, answer_sync, joined
from headrace.groups.group_counters import GroupCounters
from headrace.groups.group_registry import GroupRegistry
from headrace.groups.records import group_record, group_write
from headrace.groups.settings import GroupSettings
from headrace.protocol.messages.join_group import JoinGroupResponse
from headrace.protocol.messages.sync_group import SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")

Outcome = Decision[None]


def nothing() -> Outcome:
    """A decision without records."""
    return Decision((), None)


class Rebalances:
    """Rebalances of the classic groups of a shard, and the timers that drive them."""

    __slots__ = ("counters", "groups", "settings", "timers")

    def __init__(
        self, groups: GroupRegistry, timers: ShardTimers, settings: GroupSettings, counters: GroupCounters
    ) -> None:
        self.groups = groups
        self.timers = timers
        self.settings = settings
        self.counters = counters

    # The way to the next generation

    def rebalance_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> Outcome:
        """Somebody came, went or changed."""
        if group.can_rebalance:
            return self.prepare(group, reason, now_ms)
        return self.complete_if_all_joined(group, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, now_ms: int) -> Outcome:
        """Ask all members to join again. A group that was empty waits a while for more of them."""
        if group.state_now is COMPLETING:
            self.reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_syncs.clear()
        self.timers.cancel(("sync", group.group_id))
        is_first = group.state_now is EMPTY
        group.move_to(PREPARING, now_ms)
        logger.info(
            "group %s prepares to rebalance from generation %d (%s)", group.group_id, group.generation, reason
        )
        if not is_first:
            return self._complete_or_wait(group, now_ms)
        delay_ms = self.settings.initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        self._wait_for_more(group.group_id, delay_ms, remaining_ms)
        return nothing()

    def _wait_for_more(self, group_id: str, delay_ms: int, remaining_ms: int) -> None:
        self.timers.schedule(
            ("join", group_id),
            delay_ms,
            partial(self._on_waited, group_id, delay_ms, remaining_ms),
            retry=False,
        )

    def _on_waited(self, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> Outcome:
        group = self.groups.find_classic(group_id)
        if group is None:
            return nothing()
        if group.has_new_member and remaining_ms:
            group.has_new_member = False
            delay = min(self.settings.initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_more(group_id, delay, max(remaining_ms - delay_ms, 0))
            return nothing()
        return self.complete(group, now_ms)

    def _complete_or_wait(self, group: ClassicGroup, now_ms: int) -> Outcome:
        if group.has_all_joined:
            return self.complete(group, now_ms)
        self._complete_later(group)
        return nothing()

    def _complete_later(self, group: ClassicGroup) -> None:
        self.timers.schedule(
            ("join", group.group_id),
            group.rebalance_timeout_ms,
            partial(self._on_join_timeout, group.group_id),
            retry=False,
        )

    def _on_join_timeout(self, group_id: str, now_ms: int) -> Outcome:
        group = self.groups.find_classic(group_id)
        return nothing() if group is None else self.complete(group, now_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Go on as soon as nobody is missing; the first rebalance takes its time."""
        if group.state_now is PREPARING and group.previous_state is not EMPTY and group.has_all_joined:
            return self.complete(group, now_ms)
        return nothing()

    def complete(self, group: ClassicGroup, now_ms: int) -> Outcome:
        """Begin the next generation with those who have joined, and with static members in any case."""
        self.timers.cancel(("join", group.group_id))
        missing = [
            member.member_id
            for member in group.members.values()
            if member.awaiting_join is None and not member.is_static
        ]
        for member_id in missing:
            group.remove(member_id)
            self.timers.cancel(("heartbeat", group.group_id, member_id))
        if missing:
            logger.info("group %s goes on without %s", group.group_id, ", ".join(missing))
        if group.state_now is DEAD:
            return nothing()
        if group.members and not group.elect_joined_leader():
            # Nobody has joined: the static members are waited for until their sessions end.
            self._complete_later(group)
            return nothing()
        group.begin_generation(now_ms)
        if group.state_now is EMPTY:
            return self._write_empty(group)
        self._answer_joins(group)
        return nothing()

    def _write_empty(self, group: ClassicGroup) -> Outcome:
        logger.info("group %s is empty in generation %d", group.group_id, group.generation)
        value = group_record(group)

        def on_done(error: BaseException | None) -> None:
            if error is None:
                group.written = value
            else:
                # The former generation counts again after a restart; its members are gone soon.
                logger.warning("the empty group %s was not written: %s", group.group_id, error)

        return Decision([group_write(group.group_id, value)], None, is_replayed=False, on_done=on_done)

    def _answer_joins(self, group: ClassicGroup) -> None:
        logger.info(
            "group %s has %d members in generation %d", group.group_id, len(group.members), group.generation
        )
        for member_id, member in group.members.items():
            is_leader = member_id == group.leader
            answer_join(group, member, joined(group, member_id, tells_members=is_leader))
            self.put_off(group, member, member.session_timeout_ms)
            member.is_new = False
            group.pending_syncs.add(member_id)
        self.timers.schedule(
            ("sync", group.group_id),
            group.rebalance_timeout_ms,
            partial(self._on_sync_timeout, group.group_id, group.generation),
            retry=False,
        )

    # Assignments

    def set_assignments(self, group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """The leader's assignment is committed: tell everybody, and be stable."""
        for member_id, member in group.members.items():
            member.assignment = assignments.get(member_id, NO_ASSIGNMENT)
        self._tell_assignments(group, ErrorCode.NONE)
        group.move_to(STABLE, now_ms)
        self.counters.completed_rebalances += 1

    def reset_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Have members that wait for an assignment join again."""
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
        self._tell_assignments(group, error)

    def _tell_assignments(self, group: ClassicGroup, error: ErrorCode) -> None:
        is_well = error is ErrorCode.NONE
        for member in group.members.values():
            reply = SyncGroupResponse(
                error_code=error,
                protocol_type=group.protocol_type if is_well else None,
                protocol_name=group.protocol if is_well else None,
                assignment=member.assignment,
            )
            if answer_sync(member, reply):
                # A session that ended while the reply waited was let pass, so it has to begin anew.
                self.put_off(group, member, member.session_timeout_ms)

    def on_assignment_failed(self, group: ClassicGroup, error: BaseException, now_ms: int) -> None:
        """The leader's assignment could not be written."""
        code = told(error).code
        self.reset_assignments(group, code)
        self.rebalance_or_complete(group, f"the assignment could not be written: {code.name}", now_ms)

    def note_synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member has asked for its assignment."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs or group.state_now not in (COMPLETING, STABLE):
            self.timers.cancel(("sync", group.group_id))

    def _on_sync_timeout(self, group_id: str, generation: int, now_ms: int) -> Outcome:
        group = self.groups.find_classic(group_id)
        if group is None or group.generation != generation or group.state_now not in (COMPLETING, STABLE):
            return nothing()
        late = list(group.pending_syncs)
        if not late:
            return nothing()
        for member_id in late:
            group.remove(member_id)
            self.timers.cancel(("heartbeat", group_id, member_id))
        return self.prepare(group, f"{', '.join(late)} never asked for an assignment", now_ms)

    # Sessions

    def put_off(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int) -> None:
        """A member is alive: its session lasts from now."""
        key = ("heartbeat", group.group_id, member.member_id)
        self.timers.schedule(
            key, timeout_ms, partial(self.expire_member, group.group_id, member.member_id), retry=False
        )

    def expire_member(self, group_id: str, member_id: str, now_ms: int) -> Outcome:
        """A member's session has ended."""
        group = self.groups.find_classic(group_id)
        if group is None or group.state_now is DEAD:
            return nothing()
        if member_id in group.pending_joins:
            return self.drop_pending(group, member_id, now_ms)
        member = group.members.get(member_id)
        if member is None or member.needs_no_heartbeat:
            return nothing()
        logger.info("member %s of group %s has failed", member_id, group_id)
        return self._remove_failed(group, member, now_ms)

    def drop_pending(self, group: ClassicGroup, member_id: str, now_ms: int) -> Outcome:
        """Forget somebody who was about to become a member."""
        group.remove(member_id)
        if group.state_now is PREPARING and group.has_all_joined:
            return self.complete(group, now_ms)
        return nothing()

    def _remove_failed(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> Outcome:
        self.drop_member(group, member)
        if group.state_now in (STABLE, COMPLETING):
            return self.rebalance_or_complete(group, f"the session of {member.member_id} ended", now_ms)
        if group.state_now is PREPARING and group.has_all_joined:
            return self.complete(group, now_ms)
        return nothing()

    def drop_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Take a member out; if its client still waits to join, it is to ask again."""
        refusal = JoinGroupResponse(member_id=NO_MEMBER_ID, error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        answer_join(group, member, refusal)
        group.remove(member.member_id)
