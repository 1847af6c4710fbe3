"""Taking members out of consumer groups: those who leave, and those who have stayed away too long.

When only members of the classic protocol are left, the group becomes a classic one."""

import logging
from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Final, TypeVar

from headrace.coordinator.shard import CoordinatorRecord, Decision
from headrace.groups import consumer_records
from headrace.groups.classic_rebalance import Rebalances
from headrace.groups.consumer_changes import topics_after
from headrace.groups.consumer_conversion import downgraded, replacement
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.consumer_timers import ConsumerTimers
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.topic_hashes import TopicHashes
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.join_group import JoinGroupRequestProtocol

logger: Final = logging.getLogger("headrace.groups")

T = TypeVar("T")


class Fencing:
    """Takes members out, and turns groups into classic ones."""

    __slots__ = ("_hashes", "_image", "_rebalances", "_settings", "timers")

    def __init__(
        self,
        rebalances: Rebalances,
        image: MetadataImage,
        hashes: TopicHashes,
        configs: GroupConfigs,
        settings: ConsumerSettings,
    ) -> None:
        self._rebalances = rebalances
        self._image = image
        self._hashes = hashes
        self._settings = settings
        self.timers = ConsumerTimers(
            rebalances.timers,
            rebalances.groups,
            configs,
            lambda group, member, now_ms: self.fence(group, [member], None, now_ms),
        )

    def fence(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], reply: T, now_ms: int
    ) -> Decision[T]:
        """Take members out. The epoch goes up, so that others get what they had."""
        if not members:
            return Decision((), reply)
        ids = {member.member_id for member in members}
        if self._ends_as_classic(group, members, ids):
            records: list[CoordinatorRecord] = []
            downgrade = self.downgrade(group, ids, None, records, now_ms, rebalances=True)
            return Decision(records, reply, on_done=lambda _: downgrade())
        group_id = group.group_id
        records = [record for member_id in sorted(ids) for record in removal(group_id, member_id)]
        records += [
            consumer_records.regex_tombstone(group_id, regex)
            for regex, count in Counter(member.regex for member in members if member.regex).items()
            if group.regex_count(regex) == count
        ]
        metadata_hash = self._hashes.of(topics_after(group, members))
        records.append(consumer_records.epoch_write(group_id, group.epoch + 1, metadata_hash))
        for member_id in ids:
            self.timers.cancel(group_id, member_id)
        return Decision(records, reply, on_done=partial(self._on_fenced, group_id, ids))

    def _on_fenced(self, group_id: str, ids: Collection[str], error: BaseException | None) -> None:
        """Whoever could not be taken out has a session again, so that it is tried once more."""
        if error is not None:
            for member_id in ids:
                self.timers.begin_session(group_id, member_id)

    def _ends_as_classic(
        self, group: ConsumerGroup, members: Collection[ConsumerMember], ids: Collection[str]
    ) -> bool:
        left = len(group.members) - len(ids)
        leaving_classic = sum(member.classic is not None for member in members)
        return (
            left > 0
            and group.classic_members - leaving_classic == left
            and self._settings.can_downgrade
            and left <= self._rebalances.settings.size_max
        )

    def ends_as_classic_with(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether all are classic members once a static member has come back as one."""
        return (
            replaced.classic is None
            and group.classic_members == len(group.members) - 1
            and self._settings.can_downgrade
            and len(group.members) <= self._rebalances.settings.size_max
        )

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Collection[str],
        joining: ConsumerMember | None,
        records: list[CoordinatorRecord],
        now_ms: int,
        *,
        rebalances: bool,
    ) -> "partial[None]":
        """Write that a group is a classic one from now on; what is to be called when that is replayed."""
        made = downgraded(group, leaving, joining, self._image, now_ms)
        records += replacement(group, made, joining)
        protocols = {member_id: list(member.protocols) for member_id, member in made.members.items()}
        former = set(group.members) | set(protocols)
        return partial(self._go_on, group.group_id, former, protocols, rebalances, now_ms)

    def _go_on(
        self,
        group_id: str,
        former: Collection[str],
        protocols: dict[str, list[JoinGroupRequestProtocol]],
        rebalances: bool,
        now_ms: int,
    ) -> None:
        """The classic group is there: give its members sessions, and have them join again if need be."""
        group = self._rebalances.groups.find_classic(group_id)
        if group is None:
            return
        for member_id in former:
            self.timers.cancel(group_id, member_id)
        # A former life as a classic group may have left timers behind.
        for name in ("join", "sync"):
            self._rebalances.timers.cancel((name, group_id))
        for member in group.members.values():
            # Its record has the protocol in use only.
            group.update_protocols(member, protocols.get(member.member_id, list(member.protocols)))
            self._rebalances.put_off(group, member, member.session_timeout_ms)
        logger.info("group %s has become a classic group", group_id)
        if rebalances and group.can_rebalance:
            self._rebalances.prepare(group, "it has become a classic group", now_ms)


def removal(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that take a member out."""
    return [
        consumer_records.assignment_tombstone(group_id, member_id),
        consumer_records.target_tombstone(group_id, member_id),
        consumer_records.member_tombstone(group_id, member_id),
    ]
