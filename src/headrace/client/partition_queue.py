"""The batches of one partition in the order in which they have to be written, and their sequences. No I/O.

Batches that were sent at least once stay in `sequenced` until their fate is known; those behind one that has
to be sent again wait for it, so that retries never change the order.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from headrace.client.pending_batch import NO_IDENTITY, Identity, PendingBatch, in_place_of, seal
from headrace.records.batch import increment_sequence
from headrace.types import NO_SEQUENCE, TopicPartition

_NOTHING_ACKNOWLEDGED: Final = -1


@dataclass(slots=True, eq=False)
class PartitionQueue:
    """`sequence_next` is that of the next record under `identity`. A queue `wants_restart` when sequences
    were used up by records that will never be written: what is left then begins again under another one."""

    partition: TopicPartition
    fresh: deque[PendingBatch] = field(default_factory=deque)
    sequenced: list[PendingBatch] = field(default_factory=list)
    identity: Identity = NO_IDENTITY
    sequence_next: int = 0
    sequence_acknowledged: int = _NOTHING_ACKNOWLEDGED
    is_unresolved: bool = False
    wants_restart: bool = False

    def __bool__(self) -> bool:
        return bool(self.fresh or self.sequenced)

    def __len__(self) -> int:
        return len(self.fresh) + len(self.sequenced)

    def __iter__(self) -> Iterator[PendingBatch]:
        yield from self.sequenced
        yield from self.fresh

    @property
    def has_retries(self) -> bool:
        """Whether a batch waits to be sent again; those behind it may be under way all the same."""
        return any(not batch.is_sent for batch in self.sequenced)

    @property
    def node_in_use(self) -> int | None:
        """The broker that has requests of this partition."""
        for batch in self.sequenced:
            if batch.is_sent and batch.leader_tried is not None:
                return batch.leader_tried.node_id
        return None

    @property
    def is_known(self) -> bool:
        """Whether the leader has seen this identity: one that has not takes any sequence for the first."""
        return self.sequence_acknowledged != _NOTHING_ACKNOWLEDGED

    @property
    def can_restart(self) -> bool:
        """Whether every batch is known not to have been written, so that none can be written twice."""
        return not any(batch.is_sent or batch.is_uncertain for batch in self.sequenced)

    def take_fresh(self, identity: Identity) -> PendingBatch:
        """The next batch, under the next sequence; under none where the identity is none."""
        if identity != self.identity:
            self.restart(identity)
        batch = self.fresh.popleft()
        if identity == NO_IDENTITY:
            seal(batch)
        else:
            batch.stamp(identity, self.sequence_next)
            self.sequence_next = batch.sequence_next
        self.sequenced.append(batch)
        return batch

    def restart(self, identity: Identity) -> None:
        """Number all batches that are left from 0 on, under another identity."""
        self.identity = identity
        self.sequence_next = 0
        self.sequence_acknowledged = _NOTHING_ACKNOWLEDGED
        self.is_unresolved = self.wants_restart = False
        if identity == NO_IDENTITY:
            return
        for batch in self.sequenced:
            batch.stamp(identity, self.sequence_next)
            self.sequence_next = batch.sequence_next

    def acknowledge(self, batch: PendingBatch) -> None:
        """A broker has the batch."""
        self.remove(batch)
        if batch.identity == self.identity and batch.sequence != NO_SEQUENCE:
            last = increment_sequence(batch.sequence, batch.count - 1)
            self.sequence_acknowledged = max(self.sequence_acknowledged, last)

    def replace(self, batch: PendingBatch, parts: list[PendingBatch]) -> None:
        """Put the parts of a batch where it was."""
        place = self.sequenced.index(batch)
        self.sequenced[place : place + 1] = in_place_of(batch, parts)

    def remove(self, batch: PendingBatch) -> None:
        """Forget a batch, wherever it is."""
        batch.is_done = True
        if batch in self.sequenced:
            self.sequenced.remove(batch)
        else:
            self.fresh.remove(batch)

    def none_was_written(self) -> None:
        """The broker says that the first in line does not follow: nor can anything behind it be there."""
        for batch in self.sequenced:
            batch.is_uncertain = False

    def settle(self) -> None:
        """Once nothing is under way: were the sequences of batches that were given up written or not?"""
        if self.is_unresolved and not self.sequenced:
            self.is_unresolved = False
            reached = increment_sequence(self.sequence_acknowledged, 1)
            self.wants_restart = self.wants_restart or reached != self.sequence_next
