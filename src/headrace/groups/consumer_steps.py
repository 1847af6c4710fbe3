"""What every request of a member of a consumer group comes to, whichever protocol it speaks.

The member's wishes are taken over; if they or the topics have changed, the group's epoch goes up; if the
epoch has gone up, there is a new target assignment; and the member takes a step towards it."""

import logging
from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from headrace.groups import consumer_records
from headrace.groups.assignors.spec import Partitions
from headrace.groups.consumer_changes import MemberChange, topics_after
from headrace.groups.consumer_member import ConsumerMember
from headrace.groups.consumer_reconciliation import Target, reconcile
from headrace.groups.consumer_regexes import Regexes
from headrace.groups.consumer_targets import Targets
from headrace.groups.consumer_timers import ConsumerTimers
from headrace.groups.group_counters import GroupCounters
from headrace.groups.topic_hashes import TopicHashes

logger: Final = logging.getLogger("headrace.groups")

#: What a member says that it has; None if it does not say.
Owned = Mapping[UUID, Collection[int]] | None


class Steps:
    """The steps of a request, each of which adds its records to a change."""

    __slots__ = ("_counters", "_hashes", "_timers", "regexes", "targets")

    def __init__(
        self,
        targets: Targets,
        regexes: Regexes,
        hashes: TopicHashes,
        timers: ConsumerTimers,
        counters: GroupCounters,
    ) -> None:
        self.targets = targets
        self.regexes = regexes
        self._hashes = hashes
        self._timers = timers
        self._counters = counters

    def write_wishes(self, change: MemberChange) -> bool:
        """Write what the member wants if that has changed; whether the topics that it names have."""
        if change.after == change.before:
            return False
        change.records.append(consumer_records.member_write(change.group.group_id, change.after))
        return change.after.topics != change.before.topics

    def update_epoch(self, change: MemberChange, *, bumps: bool) -> int:
        """The epoch of the group, which goes up if it has to, or if the topics are not what they were."""
        group = change.group
        if not bumps and not group.is_refresh_due:
            return group.epoch
        metadata_hash = self._hashes.of(topics_after(group, [change.before], [change.after]))
        epoch = group.epoch
        if bumps or metadata_hash != group.metadata_hash:
            epoch += 1
            self._counters.consumer_rebalances += 1
            change.records.append(consumer_records.epoch_write(group.group_id, epoch, metadata_hash))
            logger.info("group %s has epoch %d", group.group_id, epoch)
        change.is_refreshed = True
        if group.has_subscription_metadata:
            change.records.append(consumer_records.subscription_metadata_tombstone(group.group_id))
        return epoch

    def step(
        self, change: MemberChange, epoch: int, target: Partitions, owned: Owned, *, has_changed: bool
    ) -> ConsumerMember:
        """Let the member take a step towards its target."""
        group, member = change.group, change.after
        if not has_changed and member.is_reconciled_to(epoch):
            return member
        stepped = reconcile(
            member,
            Target(
                epoch,
                target,
                self.targets.ids_of(group.topics_of(member)),
                has_changed,
                owned,
                group.is_owned,
            ),
        )
        if stepped is not member and stepped != member:
            change.records.append(consumer_records.assignment_write(group.group_id, stepped))
            if stepped.classic is None:
                self._timers.follow(group.group_id, stepped)
        change.after = stepped
        return stepped

    def decide(self, change: MemberChange) -> None:
        """The change is about to be written: if it came that far, its topics need not be looked at again."""
        if change.is_refreshed:
            change.group.is_refresh_due = False

    def on_done(self, change: MemberChange, error: BaseException | None) -> None:
        """If nothing came of a change, the topics have to be looked at again."""
        if error is not None:
            change.group.is_refresh_due = True
