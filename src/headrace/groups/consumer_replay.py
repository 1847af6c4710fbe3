"""Records of consumer groups, taken over one by one into the groups of a shard."""

from dataclasses import replace
from typing import Any

from headrace.groups.classic_group import ClassicGroup
from headrace.groups.consumer_group import ConsumerGroup, ResolvedRegex
from headrace.groups.consumer_member import LEAVING_EPOCH, ConsumerMember
from headrace.groups.consumer_records import member_with_assignment, member_with_wishes, target_of
from headrace.groups.group_registry import GroupRegistry
from headrace.protocol.disk_records import consumer_groups as records
from headrace.protocol.message import Message

#: What the epoch of the targets is after its tombstone.
_NO_TARGET_EPOCH = -1


class ConsumerReplay:
    """Brings consumer groups up to date with the log. Tombstones for what is not there are passed over: a
    compacted log may begin with them."""

    __slots__ = ("_groups",)

    def __init__(self, groups: GroupRegistry) -> None:
        self._groups = groups

    def replayers(self) -> dict[type[Message], Any]:
        """What takes over which kind of record, by the class of its key."""
        return {
            records.ConsumerGroupMetadataKey: self._on_epoch,
            records.ConsumerGroupPartitionMetadataKey: self._on_subscription_metadata,
            records.ConsumerGroupMemberMetadataKey: self._on_wishes,
            records.ConsumerGroupTargetAssignmentMetadataKey: self._on_target_epoch,
            records.ConsumerGroupTargetAssignmentMemberKey: self._on_target,
            records.ConsumerGroupCurrentMemberAssignmentKey: self._on_assignment,
            records.ConsumerGroupRegularExpressionKey: self._on_regex,
        }

    def _on_epoch(
        self,
        offset: int,
        key: records.ConsumerGroupMetadataKey,
        value: records.ConsumerGroupMetadataValue | None,
    ) -> None:
        if value is None:
            if self._found(key.group_id) is not None:
                self._groups.remove(key.group_id)
            return
        group = self._made(key.group_id)
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def _on_subscription_metadata(
        self,
        offset: int,
        key: records.ConsumerGroupPartitionMetadataKey,
        value: records.ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        group = self._found(key.group_id) if value is None else self._made(key.group_id)
        if group is not None:
            group.has_subscription_metadata = value is not None

    def _on_wishes(
        self,
        offset: int,
        key: records.ConsumerGroupMemberMetadataKey,
        value: records.ConsumerGroupMemberMetadataValue | None,
    ) -> None:
        if value is None:
            group = self._found(key.group_id)
            if group is not None:
                group.remove_member(key.member_id)
            return
        group = self._made(key.group_id)
        group.put_member(member_with_wishes(_member(group, key.member_id), value))

    def _on_target_epoch(
        self,
        offset: int,
        key: records.ConsumerGroupTargetAssignmentMetadataKey,
        value: records.ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        if value is None:
            group = self._found(key.group_id)
            if group is not None:
                group.target_epoch, group.target_timestamp_ms = _NO_TARGET_EPOCH, 0
            return
        group = self._made(key.group_id)
        group.target_epoch, group.target_timestamp_ms = value.assignment_epoch, value.assignment_timestamp

    def _on_target(
        self,
        offset: int,
        key: records.ConsumerGroupTargetAssignmentMemberKey,
        value: records.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            group = self._found(key.group_id)
            if group is not None:
                group.targets.pop(key.member_id, None)
            return
        self._made(key.group_id).targets[key.member_id] = target_of(value)

    def _on_assignment(
        self,
        offset: int,
        key: records.ConsumerGroupCurrentMemberAssignmentKey,
        value: records.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            group = self._made(key.group_id)
            group.put_member(member_with_assignment(_member(group, key.member_id), value))
            return
        found = self._found(key.group_id)
        member = None if found is None else found.members.get(key.member_id)
        if found is not None and member is not None:
            left = replace(
                member, epoch=LEAVING_EPOCH, previous_epoch=LEAVING_EPOCH, assigned={}, revoking={}
            )
            found.put_member(left)

    def _on_regex(
        self,
        offset: int,
        key: records.ConsumerGroupRegularExpressionKey,
        value: records.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            group = self._found(key.group_id)
            if group is not None:
                group.regexes.pop(key.regular_expression, None)
            return
        self._made(key.group_id).regexes[key.regular_expression] = ResolvedRegex(
            frozenset(value.topics), value.version, value.timestamp
        )

    def _found(self, group_id: str) -> ConsumerGroup | None:
        group = self._groups.find(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def _made(self, group_id: str) -> ConsumerGroup:
        """A consumer group, new if need be: offsets alone have made a classic one, which has no records."""
        group = self._groups.find(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        assert group is None or isinstance(group, ClassicGroup)
        made = ConsumerGroup(group_id)
        self._groups.put(made)
        return made


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)
