"""The target assignment of a consumer group: what every member shall have at an epoch of the group."""

import logging
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.assignors.range import RangeAssignor
from headrace.groups.assignors.spec import AssignmentFailed, Assignor, GroupSpec, MemberSpec, Partitions
from headrace.groups.assignors.uniform import UniformAssignor
from headrace.groups.consumer_changes import MemberChange, preferred_assignor
from headrace.groups.consumer_member import ConsumerMember
from headrace.groups.consumer_records import target_epoch_write, target_write
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.group_configs import GroupConfigs
from headrace.metadata.image import MetadataImage

logger: Final = logging.getLogger("headrace.groups")

_ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": UniformAssignor(), "range": RangeAssignor()}
_NOTHING: Final[Partitions] = {}


class Targets:
    """Works out target assignments, not more often than a group is configured to have them."""

    __slots__ = ("_configs", "_image", "_settings")

    def __init__(self, image: MetadataImage, configs: GroupConfigs, settings: ConsumerSettings) -> None:
        self._image = image
        self._configs = configs
        self._settings = settings

    def ids_of(self, topics: Iterable[str]) -> frozenset[UUID]:
        """The ids of topics; those that do not exist are left out."""
        known = self._image.topics
        return frozenset(known[name].id for name in topics if name in known)

    def update(self, change: MemberChange, epoch: int) -> tuple[int, Partitions]:
        """The epoch of the targets, and that of the member; new ones if the group has gone on and may."""
        group = change.group
        if group.target_epoch >= epoch or not self._is_due(change):
            return group.target_epoch, group.lasting_target(change.after)
        name = preferred_assignor(group, change.before, change.after) or self._settings.assignors[0]
        spec = self._spec(change)
        try:
            targets = _ASSIGNORS[name].assign(spec)
        except AssignmentFailed as error:
            text = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
            logger.error("group %s: %s", group.group_id, text)
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
        for member_id in spec.members:
            target = targets.get(member_id, _NOTHING)
            if group.targets.get(member_id) != target:
                change.records.append(target_write(group.group_id, member_id, target))
        change.records.append(target_epoch_write(group.group_id, epoch, change.now_ms))
        logger.info("group %s has a new assignment for epoch %d by %s", group.group_id, epoch, name)
        return epoch, targets.get(change.after.member_id, _NOTHING)

    def _is_due(self, change: MemberChange) -> bool:
        since_ms = change.group.target_timestamp_ms
        interval_ms = self._configs.integer(change.group.group_id, "consumer.assignment.interval.ms")
        return since_ms == 0 or interval_ms == 0 or change.now_ms >= since_ms + interval_ms

    def _spec(self, change: MemberChange) -> GroupSpec:
        group, after = change.group, change.after
        members = dict(group.members)
        if after.instance_id is not None:
            replaced = group.static_members.get(after.instance_id)
            if replaced is not None and replaced != after.member_id:
                del members[replaced]
        members[after.member_id] = after
        # Most members are subscribed to the same: equal subscriptions share one set of ids.
        known: dict[tuple[frozenset[str], str | None], frozenset[UUID]] = {}

        def ids(member: ConsumerMember) -> frozenset[UUID]:
            wish = (member.topics, member.regex)
            found = known.get(wish)
            if found is None:
                found = known[wish] = self.ids_of(group.topics_of(member))
            return found

        specs = {
            member_id: MemberSpec(
                ids(member),
                group.lasting_target(after) if member is after else group.target(member_id),
                member.instance_id,
            )
            for member_id, member in members.items()
        }
        topic_ids = frozenset[UUID]().union(*known.values())
        by_id = self._image.topics_by_id
        return GroupSpec(specs, {topic_id: len(by_id[topic_id].partitions) for topic_id in topic_ids})
