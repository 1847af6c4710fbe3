"""Answers which offsets groups have committed."""

from typing import Final
from uuid import UUID

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.group_registry import GroupRegistry
from headrace.groups.offsets import CommittedOffset, Offsets
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headrace.types import ZERO_UUID

NO_OFFSET: Final = -1
_NO_OFFSETS: Final[dict[int, CommittedOffset]] = {}


class OffsetFetches:
    """Reads offsets for OffsetFetch."""

    __slots__ = ("_groups", "_offsets")

    def __init__(self, groups: GroupRegistry, offsets: Offsets) -> None:
        self._groups = groups
        self._offsets = offsets

    def fetch(self, request: OffsetFetchRequestGroup, requires_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets that are asked for, or all of the group if no topics are named."""
        group_id = request.group_id
        offsets = self._offsets.committed.groups.get(group_id, {})
        if not self._is_known(request):
            offsets = {}
        topics = []
        if request.topics is None:
            for name, found in offsets.items():
                partitions = [
                    self._answer(group_id, name, index, committed, requires_stable)
                    for index, committed in found.items()
                ]
                topics.append(OffsetFetchResponseTopics(name=name, partitions=partitions))
            return OffsetFetchResponseGroup(group_id=group_id, topics=topics)
        for topic in request.topics:
            found = offsets.get(topic.name, _NO_OFFSETS)
            partitions = [
                self._answer(
                    group_id, topic.name, index, _of_topic(found.get(index), topic.topic_id), requires_stable
                )
                for index in topic.partition_indexes
            ]
            topics.append(
                OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
            )
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)

    def _is_known(self, request: OffsetFetchRequestGroup) -> bool:
        """A group that does not exist has no offsets, which is not an error."""
        try:
            self._groups.get(request.group_id).check_fetch(request.member_id, request.member_epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return False
        return True

    def _answer(
        self,
        group_id: str,
        topic: str,
        index: int,
        committed: CommittedOffset | None,
        requires_stable: bool,
    ) -> OffsetFetchResponsePartitions:
        if requires_stable and self._offsets.is_open(group_id, topic, index):
            return OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        if committed is None:
            return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
        )


def _of_topic(committed: CommittedOffset | None, topic_id: UUID) -> CommittedOffset | None:
    """An offset, unless it belongs to a topic of that name that was deleted."""
    if committed is None or ZERO_UUID in (committed.topic_id, topic_id) or committed.topic_id == topic_id:
        return committed
    return None
