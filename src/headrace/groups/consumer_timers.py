"""How long members of consumer groups may stay away, and what happens to those who stay longer.

A member of the consumer protocol has a session, and a time in which it gives partitions back. One of the
classic protocol has a session too, and times in which it has to join again and to ask for its assignment."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.coordinator.shard import Decision, ShardTimers
from headrace.groups.classic_rebalance import Outcome, nothing
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember, MemberState
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_registry import GroupRegistry

logger: Final = logging.getLogger("headrace.groups")

_SESSION: Final = "consumer-session"
_REBALANCE: Final = "consumer-rebalance"
_JOIN: Final = "consumer-join"
_SYNC: Final = "consumer-sync"


class ConsumerTimers:
    """The timers of a shard's consumer groups. `fence` decides how a member is taken out."""

    __slots__ = ("_configs", "_fence", "_groups", "_timers")

    def __init__(
        self,
        timers: ShardTimers,
        groups: GroupRegistry,
        configs: GroupConfigs,
        fence: Callable[[ConsumerGroup, ConsumerMember, int], Decision[None]],
    ) -> None:
        self._timers = timers
        self._groups = groups
        self._configs = configs
        self._fence = fence

    def begin_session(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """A member is alive: its session lasts from now, as long as it says or as the group has it."""
        if timeout_ms is None:
            timeout_ms = self._configs.integer(group_id, "consumer.session.timeout.ms")
        self._timers.schedule(
            (_SESSION, group_id, member_id),
            timeout_ms,
            partial(self._expire, group_id, member_id, "its session has ended"),
        )

    def follow(self, group_id: str, member: ConsumerMember) -> None:
        """A member has taken a step: while it has to give partitions back, it has a limited time for it."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._timers.schedule(
                (_REBALANCE, group_id, member.member_id),
                member.rebalance_timeout_ms,
                partial(self._expire_epoch, group_id, member.member_id, member.epoch),
            )
        else:
            self._timers.cancel((_REBALANCE, group_id, member.member_id))

    def expect_join(self, group_id: str, member: ConsumerMember) -> None:
        """A classic member has been told to join again."""
        self._timers.schedule_if_absent(
            (_JOIN, group_id, member.member_id),
            member.rebalance_timeout_ms,
            partial(self._expire, group_id, member.member_id, "it has not joined again in time"),
        )

    def note_joined(self, group_id: str, member_id: str, session_ms: int, rebalance_ms: int) -> None:
        """A classic member has joined; next it has to ask for its assignment."""
        self._timers.cancel((_JOIN, group_id, member_id))
        self.begin_session(group_id, member_id, session_ms)
        self._timers.schedule(
            (_SYNC, group_id, member_id),
            rebalance_ms,
            partial(self._expire, group_id, member_id, "it has not asked for its assignment in time"),
        )

    def note_synced(self, group_id: str, member_id: str, session_ms: int) -> None:
        """A classic member has its assignment."""
        self._timers.cancel((_SYNC, group_id, member_id))
        self.begin_session(group_id, member_id, session_ms)

    def cancel(self, group_id: str, member_id: str) -> None:
        """A member is gone."""
        for name in (_SESSION, _REBALANCE, _JOIN, _SYNC):
            self._timers.cancel((name, group_id, member_id))

    def _expire(self, group_id: str, member_id: str, reason: str, now_ms: int) -> Outcome:
        group = self._groups.find(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None:
            return nothing()
        assert isinstance(group, ConsumerGroup)
        logger.info("member %s is taken out of group %s: %s", member_id, group_id, reason)
        return self._fence(group, member, now_ms)

    def _expire_epoch(self, group_id: str, member_id: str, epoch: int, now_ms: int) -> Outcome:
        group = self._groups.find(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if member is None or member.epoch != epoch:
            return nothing()
        return self._expire(group_id, member_id, f"it has not left epoch {epoch} in time", now_ms)
