"""One batch on its way: its bytes, whose it is, and what has been tried with it. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from headrace.client.batch_group import BatchGroup
from headrace.client.metadata import Leader
from headrace.ports import BytesLike
from headrace.records.batch import (
    ATTRIBUTES_FIELD,
    CRC,
    CRC_FIELD,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    increment_sequence,
)
from headrace.records.checksum import crc32c
from headrace.records.compression import Compression
from headrace.types import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TopicPartition,
)

_ROOM_FOR_HEADER: Final = bytes(HEADER_SIZE)
_PRODUCER: Final = Struct(">qhi")
_PRODUCER_FIELD: Final = 43


class Identity(NamedTuple):
    """Whose batches these are: what a broker knows an idempotent producer by."""

    producer_id: int
    epoch: int


NO_IDENTITY: Final = Identity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class Payload(NamedTuple):
    """The records of a batch, compressed if they are to be."""

    record_count: int
    timestamp_base: int
    timestamp_max: int
    records: BytesLike


@dataclass(slots=True, eq=False)
class PendingBatch:
    """A batch that is neither acknowledged nor given up.

    It `is_sent` while a request with it is under way, and `is_uncertain` when an earlier request may have
    written it although nobody said so: it must then be sent again under the same identity and sequence before
    it may get others, or it would be written twice."""

    partition: TopicPartition
    data: bytearray
    count: int
    created_ms: float
    identity: Identity = NO_IDENTITY
    sequence: int = NO_SEQUENCE
    attempts: int = 0
    retry_at_ms: float = 0.0
    leader_tried: Leader | None = None
    last_error: str | None = None
    is_sent: bool = False
    is_uncertain: bool = False
    is_done: bool = False
    #: What a flush waits for as a whole; parts of a split batch are in their parent's.
    group: BatchGroup | None = None

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def sequence_next(self) -> int:
        """The sequence of the record after the last one."""
        return increment_sequence(self.sequence, self.count)

    def stamp(self, identity: Identity, sequence: int) -> None:
        """Put the batch under an identity; until it is sent again, that is."""
        if (identity, sequence) == (self.identity, self.sequence):
            return
        self.identity, self.sequence = identity, sequence
        _PRODUCER.pack_into(self.data, _PRODUCER_FIELD, identity.producer_id, identity.epoch, sequence)
        _checksum(self.data)


def new_batch(
    partition: TopicPartition, payload: Payload, compression: Compression, created_ms: float
) -> PendingBatch:
    """A batch that was never sent. The records are copied: they may be a view of much more."""
    data = bytearray().join((_ROOM_FOR_HEADER, payload.records))
    HEADER.pack_into(
        data,
        0,
        0,
        len(data) - LOG_OVERHEAD,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        compression,
        payload.record_count - 1,
        payload.timestamp_base,
        payload.timestamp_max,
        *NO_IDENTITY,
        NO_SEQUENCE,
        payload.record_count,
    )
    return PendingBatch(partition, data, payload.record_count, created_ms)


def seal(batch: PendingBatch) -> None:
    """Complete a batch that goes out under no identity."""
    _checksum(batch.data)


def _checksum(data: bytearray) -> None:
    with memoryview(data) as view:
        CRC.pack_into(data, CRC_FIELD, crc32c(view[ATTRIBUTES_FIELD:]))


def in_place_of(parent: PendingBatch, children: list[PendingBatch]) -> Iterator[PendingBatch]:
    """The parts of a batch that was too large, under its sequences and as old as it is."""
    sequence = parent.sequence
    for child in children:
        child.created_ms = parent.created_ms
        if sequence == NO_SEQUENCE:
            seal(child)
        else:
            child.stamp(parent.identity, sequence)
            sequence = child.sequence_next
        yield child
