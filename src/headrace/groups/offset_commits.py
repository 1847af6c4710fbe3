"""Decides on requests that commit or delete offsets, of members of any kind of group and of nobody's."""

from functools import lru_cache
from typing import Final
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord, Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_group import PREPARING, STABLE, ClassicGroup
from headrace.groups.classic_rebalance import Rebalances
from headrace.groups.group import Committer, Group, PartitionCheck
from headrace.groups.group_registry import GroupRegistry, not_found
from headrace.groups.offset_records import (
    expiring_offset_write,
    offset_tombstone,
    offset_write,
    topic_tag,
)
from headrace.groups.offsets import Offsets
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.types import ZERO_UUID

_DEFAULT_RETENTION: Final = -1
_NO_TAG: Final = topic_tag(ZERO_UUID)
#: From here on a member of a group that does not exist is told so.
_NOT_FOUND_SINCE: Final = 9


class OffsetCommits:
    """Decides on commits and deletions. Nothing is changed here: the records are replayed."""

    __slots__ = ("_counters", "_groups", "_image", "_offsets", "_rebalances", "_settings")

    def __init__(self, rebalances: Rebalances, offsets: Offsets, image: MetadataImage) -> None:
        self._rebalances = rebalances
        self._groups: GroupRegistry = rebalances.groups
        self._settings = rebalances.settings
        self._counters = rebalances.counters
        self._offsets = offsets
        self._image = image

    def commit(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[OffsetCommitResponse]:
        """Topics have both names and ids here, and exist."""
        check = self._checked_group(request, version, now_ms)
        if request.retention_time_ms != _DEFAULT_RETENTION:
            return self._commit_until(request, check, now_ms, now_ms + request.retention_time_ms)
        group_id, metadata_max = request.group_id, self._settings.metadata_max
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            name, topic_id = topic.name, topic.topic_id
            tag = topic_tag(topic_id)
            results = []
            for partition in topic.partitions:
                index, metadata = partition.partition_index, partition.committed_metadata or ""
                if metadata and _java_length(metadata) > metadata_max:
                    results.append(_too_large(index))
                    continue
                if check is not None:
                    check(name, topic_id, index)
                results.append(_committed(index))
                offset, epoch = partition.committed_offset, partition.committed_leader_epoch
                records.append(
                    offset_write(group_id, name, index, offset, epoch, metadata, now_ms, topic_id, tag)
                )
            topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=results))
        self._counters.offset_commits += len(records)
        return Decision(records, OffsetCommitResponse(topics=topics))

    def _commit_until(
        self, request: OffsetCommitRequest, check: PartitionCheck | None, now_ms: int, expires_ms: int
    ) -> Decision[OffsetCommitResponse]:
        """Versions up to 4 say how long an offset is to be kept."""
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            results = []
            for partition in topic.partitions:
                index, metadata = partition.partition_index, partition.committed_metadata or ""
                if _java_length(metadata) > self._settings.metadata_max:
                    results.append(_too_large(index))
                    continue
                if check is not None:
                    check(topic.name, topic.topic_id, index)
                results.append(_committed(index))
                offset = partition.committed_offset
                records.append(
                    expiring_offset_write(
                        request.group_id, topic.name, index, offset, metadata, now_ms, expires_ms
                    )
                )
            topics.append(
                OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)
            )
        self._counters.offset_commits += len(records)
        return Decision(records, OffsetCommitResponse(topics=topics))

    def _checked_group(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> PartitionCheck | None:
        generation = request.generation_id_or_member_epoch
        group = self._groups.find(request.group_id)
        if group is None:
            if generation >= 0:
                if version >= _NOT_FOUND_SINCE:
                    raise not_found(f"Group {request.group_id} not found.")
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            # Somebody who keeps offsets here without being a member of anything.
            group = self._groups.new_classic(request.group_id, now_ms)
        committer = Committer(request.member_id, request.group_instance_id, generation, version)
        check = group.check_commit(committer)
        if isinstance(group, ClassicGroup) and group.state_now in (STABLE, PREPARING):
            member = group.members[request.member_id]
            self._rebalances.put_off(group, member, member.session_timeout_ms)
        return check

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, version: int, now_ms: int
    ) -> Decision[TxnOffsetCommitResponse]:
        """Offsets that count once the producer's transaction is committed."""
        group = self._groups.find(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            group = self._groups.new_classic(request.group_id, now_ms)
        committer = Committer(
            request.member_id, request.group_instance_id, request.generation_id, version, True
        )
        try:
            return self._transactional(request, group.check_commit(committer), now_ms)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from error
            raise

    def _transactional(
        self, request: TxnOffsetCommitRequest, check: PartitionCheck | None, now_ms: int
    ) -> Decision[TxnOffsetCommitResponse]:
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            topic_id = self._topic_id(topic.name)
            if topic_id == ZERO_UUID and check is not None:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
            results = []
            for partition in topic.partitions:
                index, metadata = partition.partition_index, partition.committed_metadata or ""
                if _java_length(metadata) > self._settings.metadata_max:
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    results.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))
                    continue
                if check is not None:
                    check(topic.name, topic_id, index)
                results.append(TxnOffsetCommitResponsePartition(partition_index=index))
                records.append(
                    offset_write(
                        request.group_id,
                        topic.name,
                        index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        metadata,
                        now_ms,
                        ZERO_UUID,
                        _NO_TAG,
                    )
                )
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=results))
        self._counters.offset_commits += len(records)
        return Decision(records, TxnOffsetCommitResponse(topics=topics))

    def _topic_id(self, name: str) -> UUID:
        topic = self._image.topics.get(name)
        return ZERO_UUID if topic is None else topic.id

    def delete(self, request: OffsetDeleteRequest) -> Decision[OffsetDeleteResponse]:
        """Take offsets away that no member is subscribed to."""
        group = self._groups.get(request.group_id)
        group.check_offset_deletion()
        records: list[CoordinatorRecord] = []
        topics = []
        for topic in request.topics:
            is_wanted = group.is_subscribed_to(topic.name)
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_wanted else ErrorCode.NONE
            indexes = [partition.partition_index for partition in topic.partitions]
            if not is_wanted:
                records += self._deletions(group, topic.name, indexes)
            results = [
                OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes
            ]
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=results))
        self._counters.offset_deletions += len(records)
        return Decision(records, OffsetDeleteResponse(topics=topics))

    def _deletions(self, group: Group, topic: str, indexes: list[int]) -> list[CoordinatorRecord]:
        group_id, offsets = group.group_id, self._offsets
        return [
            offset_tombstone(group_id, topic, index)
            for index in indexes
            if offsets.committed.get(group_id, topic, index) is not None
            or offsets.is_open(group_id, topic, index)
        ]

    def delete_all(self, group_id: str) -> list[CoordinatorRecord]:
        """What takes all offsets of a group away, those of open transactions included."""
        committed = self._offsets.committed.groups.get(group_id, {})
        places = [(topic, index) for topic, partitions in committed.items() for index in partitions]
        known = set(places)
        places += [place for place in self._offsets.open_partitions(group_id) if place not in known]
        return [offset_tombstone(group_id, topic, index) for topic, index in places]


@lru_cache(maxsize=4096)
def _committed(index: int) -> OffsetCommitResponsePartition:
    """Nobody changes a result, so there is one for all commits of a partition of that number."""
    return OffsetCommitResponsePartition(partition_index=index)


def _too_large(index: int) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(
        partition_index=index, error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE
    )


def _java_length(text: str) -> int:
    """The length that Java counts: in units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
