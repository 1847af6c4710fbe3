"""A view over one record batch of format v2: the header decoded once, the records left as bytes.

Nothing here copies or parses records; see `reader` and `validator` for that.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from headrace.ports import BytesLike
from headrace.records.checksum import crc32c
from headrace.records.compression import Compression
from headrace.records.errors import CorruptBatch

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
MAGIC: Final = 2
SIZE_FIELD: Final = 8
LEADER_EPOCH_FIELD: Final = 12
MAGIC_FIELD: Final = 16
CRC_FIELD: Final = 17
ATTRIBUTES_FIELD: Final = 21
MAX_TIMESTAMP_FIELD: Final = 35

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

# Offset and length alone are never a batch: Kafka's oldest format has 14 bytes after the length.
_LENGTH_MIN: Final = 14
_SEQUENCE_COUNT: Final = 2**31
# Looked up rather than called, which an enumeration takes its time over.
_COMPRESSIONS: Final = tuple(Compression)

HEADER: Final = Struct(">qiibIhiqqqhii")
CRC: Final = Struct(">I")
_LENGTH_TO_MAGIC: Final = Struct(">i4xb")
_BASE_OFFSET: Final = Struct(">q")
_LEADER_EPOCH: Final = Struct(">i")
_unpack_header = HEADER.unpack_from


class Batch:
    """One batch in a buffer. Creating it costs one struct call; it is valid as long as the buffer is."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "count",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    attributes: int
    base_offset: int
    base_sequence: int
    base_timestamp: int
    buffer: memoryview
    count: int
    crc: int
    last_offset_delta: int
    leader_epoch: int
    magic: int
    max_timestamp: int
    position: int
    producer_epoch: int
    producer_id: int
    size: int

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = _unpack_header(buffer, position)
        self.size = length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; it wraps to 0 after 2**31 - 1."""
        if self.base_sequence == -1:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def compression(self) -> Compression:
        code = self.attributes & COMPRESSION_MASK
        if code >= len(_COMPRESSIONS):
            raise CorruptBatch(f"Unknown compression type id: {code}")
        return _COMPRESSIONS[code]

    @property
    def timestamp_type(self) -> int:
        """0 when producers set the timestamps, 1 when the broker did on append."""
        return 1 if self.attributes & TIMESTAMP_TYPE_FLAG else 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of this batch may go; the base timestamp carries it once it is set."""
        return self.base_timestamp if self.has_delete_horizon else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > -1

    @property
    def data(self) -> memoryview:
        """The whole batch."""
        return self.buffer[self.position : self.position + self.size]

    @property
    def payload(self) -> memoryview:
        """What follows the header: the records, or their compressed bytes."""
        return self.buffer[self.position + HEADER_SIZE : self.position + self.size]

    def crc_is_valid(self) -> bool:
        start = self.position + ATTRIBUTES_FIELD
        return bool(crc32c(self.buffer[start : self.position + self.size]) == self.crc)

    def __repr__(self) -> str:
        return (
            f"Batch(offsets {self.base_offset}..{self.last_offset}, count {self.count}, "
            f"size {self.size}, position {self.position})"
        )


def batches(buffer: BytesLike, start: int = 0, end: int | None = None) -> Iterator[Batch]:
    """Every complete batch in `buffer[start:end]`; a torn one at the end is left out."""
    view = memoryview(buffer)
    position = start
    stop = len(view) if end is None else end
    while position + MAGIC_FIELD < stop:
        length, magic = _LENGTH_TO_MAGIC.unpack_from(view, position + SIZE_FIELD)
        if magic != MAGIC or length < HEADER_SIZE - LOG_OVERHEAD:
            raise CorruptBatch(_impossible_header(length, magic, position))
        following = position + LOG_OVERHEAD + length
        if following > stop:
            return
        yield Batch(view, position)
        position = following
    _refuse_impossible_tail(view, position, stop)


def _refuse_impossible_tail(view: memoryview, position: int, stop: int) -> None:
    """Fewer bytes than a header up to its magic: torn, unless the length is there and impossible."""
    if position + LOG_OVERHEAD <= stop < position + MAGIC_FIELD + 1:
        (length,) = _LEADER_EPOCH.unpack_from(view, position + SIZE_FIELD)
        if length < _LENGTH_MIN:
            raise CorruptBatch(_impossible_header(length, MAGIC, position))


def _impossible_header(length: int, magic: int, position: int) -> str:
    if length < _LENGTH_MIN or magic == MAGIC:
        return f"Batch at position {position} has impossible size {length + LOG_OVERHEAD}"
    return f"Batch at position {position} has magic {magic}; only format v{MAGIC} is supported"


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records on, wrapping to 0 after 2**31 - 1."""
    return (sequence + increment) % _SEQUENCE_COUNT


def stamp_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Give a batch its place in a log, in place: the checksum covers neither field."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + LEADER_EPOCH_FIELD, leader_epoch)
