"""Committed offsets of all groups of a shard, and those whose transactions are not decided yet.

Only replayed records change anything here."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from headrace.protocol.disk_records.offsets import OffsetCommitValue

_new_tuple = tuple.__new__


class CommittedOffset(NamedTuple):
    """One offset as it was committed. `record_offset` is where in the log its record is."""

    record_offset: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    """When the client said that it expires, or -1."""
    topic_id: UUID


class NewOffset(NamedTuple):
    """An offset that is about to be written: what its record says, and quicker to make than the message."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: UUID


#: By topic and partition.
GroupOffsets: TypeAlias = dict[str, dict[int, CommittedOffset]]
Place: TypeAlias = tuple[str, str, int]


class OffsetTable:
    """Offsets by group, topic and partition."""

    __slots__ = ("count", "groups")

    def __init__(self) -> None:
        self.groups: dict[str, GroupOffsets] = {}
        self.count = 0

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        found = self.groups.get(group_id, {}).get(topic)
        return None if found is None else found.get(partition)

    def put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        topics = self.groups.get(group_id)
        if topics is None:
            topics = self.groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            partitions = topics[topic] = {}
        self.count += partition not in partitions
        partitions[partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self.groups.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None:
            return
        self.count -= 1
        if not partitions:
            del topics[topic]
            if not topics:
                del self.groups[group_id]

    def __iter__(self) -> Iterator[tuple[Place, CommittedOffset]]:
        for group_id, topics in self.groups.items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    yield (group_id, topic, partition), offset


class Offsets:
    """What is committed, and what will be when transactions are."""

    __slots__ = ("_open", "committed", "pending")

    def __init__(self) -> None:
        self.committed = OffsetTable()
        self.pending: dict[int, OffsetTable] = {}
        #: Producers with a pending offset, by group, then topic and partition.
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    def has_open(self, group_id: str) -> bool:
        """Whether a transaction with offsets of a group is open."""
        return group_id in self._open

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction with an offset of a partition is open."""
        return (topic, partition) in self._open.get(group_id, ())

    def open_partitions(self, group_id: str) -> list[tuple[str, int]]:
        """The partitions of a group with offsets in open transactions."""
        return list(self._open.get(group_id, ()))

    def replay(
        self,
        record_offset: int,
        producer_id: int,
        group_id: str,
        topic: str,
        partition: int,
        value: OffsetCommitValue | NewOffset | None,
    ) -> None:
        """Take over an offset that was committed, or deleted."""
        if value is None:
            self.committed.remove(group_id, topic, partition)
            self._drop_pending(group_id, topic, partition)
            return
        # A named tuple's own constructor takes several times as long.
        committed = _new_tuple(
            CommittedOffset,
            (
                record_offset,
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                value.topic_id,
            ),
        )
        if producer_id < 0:
            self.committed.put(group_id, topic, partition, committed)
            return
        table = self.pending.get(producer_id)
        if table is None:
            table = self.pending[producer_id] = OffsetTable()
        table.put(group_id, topic, partition, committed)
        partitions = self._open.setdefault(group_id, {})
        partitions.setdefault((topic, partition), set()).add(producer_id)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Make a producer's pending offsets count, or forget them."""
        table = self.pending.pop(producer_id, None)
        if table is None:
            return
        for (group_id, topic, partition), offset in table:
            self._close(group_id, topic, partition, producer_id)
            if committed:
                present = self.committed.get(group_id, topic, partition)
                # Compaction may have put the records of both in another order than they were decided in.
                if present is None or offset.record_offset > present.record_offset:
                    self.committed.put(group_id, topic, partition, offset)

    def _close(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        partitions = self._open.get(group_id, {})
        producers = partitions.get((topic, partition))
        if producers is None:
            return
        producers.discard(producer_id)
        if not producers:
            del partitions[topic, partition]
            if not partitions:
                del self._open[group_id]

    def _drop_pending(self, group_id: str, topic: str, partition: int) -> None:
        for producer_id in tuple(self._open.get(group_id, {}).get((topic, partition), ())):
            table = self.pending.get(producer_id)
            if table is not None:
                table.remove(group_id, topic, partition)
            self._close(group_id, topic, partition, producer_id)

    def state(self) -> Any:
        """Everything, as a plain value."""
        pending = {producer_id: dict(table) for producer_id, table in self.pending.items() if table.count}
        return dict(self.committed), pending
