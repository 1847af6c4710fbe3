"""Walking over the batches in a segment's log: by their headers alone, or checking every byte.

Both walks read in chunks and make no object per batch but the tuple they hand out. Impossible bytes raise
`CorruptLog` with file and position; nothing here changes anything."""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from headrace.errors import HeadraceError
from headrace.log.log_errors import CorruptLog
from headrace.ports import File
from headrace.records.batch import CRC_FIELD, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from headrace.records.checksum import crc32c

LENGTH_MIN: Final = HEADER_SIZE - LOG_OVERHEAD
# Kafka's oldest format needs 14 bytes after the length; a smaller length is no batch of any format.
LENGTH_MIN_LEGACY: Final = 14
MAGIC_END: Final = 17
CHECKED_FROM: Final = CRC_FIELD + 4
LEGACY_CHECKED_FROM: Final = 16
WINDOW_BYTES_MIN: Final = 4096
WINDOW_BYTES_MAX: Final = 65_536
CHUNK_BYTES: Final = 256 * 1024
LARGE_BATCHES_PER_CHUNK: Final = 4
UNCHECKED_BUFFER_BYTES_MAX: Final = 16 * 1024 * 1024
RELATIVE_OFFSET_MAX: Final = 2**31 - 1

# Base offset, length, leader epoch, magic, CRC, last offset delta, max timestamp, producer id.
_HEADER: Final = Struct(">qiibI2xi8xqq")
_HEADER_LEGACY: Final = Struct(">qiIb")
_LENGTH: Final = Struct(">8xi")

# The constructor of a named tuple costs more than reading a header does.
_tuple = tuple.__new__


class UnsupportedMessageFormat(HeadraceError):
    """A sound batch of message format v0 or v1, which nobody writes since Kafka 4.0."""

    def __init__(self, path: str, position: int, magic: int) -> None:
        super().__init__(
            f"{path} has message format v{magic} at position {position}; only v2 is supported. Let Kafka 3.x "
            "rewrite the topic, or delete it, before this directory is opened."
        )


class BatchHeader(NamedTuple):
    """What a walk by headers says about a batch."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int


class CheckedBatch(NamedTuple):
    """A batch whose checksum is right: `chunk` holds it at `start` until the walk goes on."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int
    chunk: memoryview
    start: int


def scan_headers(file: File, position: int, end: int) -> Iterator[BatchHeader]:
    """Every complete batch between two positions, without looking at its records."""
    window = b""
    window_start = position
    window_bytes = WINDOW_BYTES_MIN
    unpack = _HEADER.unpack_from
    while position + MAGIC_END < end:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            window = file.read_at(position, min(window_bytes, end - position))
            window_start, at = position, 0
            window_bytes = min(window_bytes * 2, WINDOW_BYTES_MAX)
            if len(window) < HEADER_SIZE:
                _refuse_impossible_length(file, window, position)
                return
        base_offset, length, epoch, magic, _, delta, max_timestamp, _ = unpack(window, at)
        if length < LENGTH_MIN or magic != MAGIC:
            if length >= LENGTH_MIN_LEGACY and position + LOG_OVERHEAD + length > end:
                return
            raise _impossible_header(file, position, length, magic)
        size = LOG_OVERHEAD + length
        if position + size > end:
            return
        yield _tuple(BatchHeader, (position, size, base_offset, base_offset + delta, max_timestamp, epoch))
        position += size


def scan_checked(file: File, base_offset: int, position: int, end: int) -> Iterator[CheckedBatch]:
    """Every batch between two positions with its checksum verified.

    The checksum does not cover the base offset; that it lies between its neighbours is checked instead. A
    torn batch at the end is `CorruptLog` like everything else that is not a sound batch.
    """
    chunk = memoryview(bytearray(min(CHUNK_BYTES, max(end - position, HEADER_SIZE))))
    expected = base_offset
    unpack = _HEADER.unpack_from
    while position < end:
        filled = file.read_into(position, chunk[: end - position])
        at = 0
        while filled - at >= HEADER_SIZE:
            offset, length, epoch, magic, crc, delta, max_timestamp, producer_id = unpack(chunk, at)
            following = at + LOG_OVERHEAD + length
            if length < LENGTH_MIN or magic != MAGIC:
                raise _not_a_batch(file, position + at, length, magic)
            if following > filled:
                break
            if crc32c(chunk[at + CHECKED_FROM : following]) != crc:
                raise CorruptLog(file.path, position + at, "the checksum is wrong")
            last = offset + delta
            if offset != expected:
                peeked = bytes(chunk[following : min(following + MAGIC_END, filled)])
                if len(peeked) < MAGIC_END <= end - position - following:
                    peeked = file.read_at(position + following, MAGIC_END)
                _require_order(file, position + at, offset, last, expected, peeked)
            if delta < 0 or last - base_offset > RELATIVE_OFFSET_MAX:
                raise CorruptLog(file.path, position + at, f"offsets {offset} to {last} are impossible")
            yield _tuple(
                CheckedBatch,
                (position + at, following - at, offset, last, max_timestamp, epoch, producer_id, chunk, at),
            )
            expected = last + 1
            at = following
        position += at
        if at == 0:
            chunk = _larger_chunk(file, chunk, filled, position, end)


def find_damage(file: File, base_offset: int, end: int) -> CorruptLog | None:
    """Check every byte of a log up to `end`; what is wrong first, with its position, or None."""
    try:
        for _ in scan_checked(file, base_offset, 0, end):
            continue
    except CorruptLog as damage:
        return damage
    return None


def _larger_chunk(file: File, chunk: memoryview, filled: int, position: int, end: int) -> memoryview:
    """A buffer for a batch that does not fit in the present one; CorruptLog if the file ends before it."""
    if filled >= LOG_OVERHEAD:
        (length,) = _LENGTH.unpack_from(chunk)
        if length < LENGTH_MIN:
            raise _not_a_batch(file, position, length, MAGIC)
        size = LOG_OVERHEAD + length
        if size <= end - position and filled == min(len(chunk), end - position):
            if size > UNCHECKED_BUFFER_BYTES_MAX:
                _require_checksum(file, chunk, position, position + size)
            return memoryview(bytearray(min(size * LARGE_BATCHES_PER_CHUNK, end - position)))
    raise CorruptLog(file.path, position, f"the last {end - position} bytes are part of a batch only")


def _require_checksum(file: File, chunk: memoryview, start: int, end: int) -> None:
    """Check a huge batch piece by piece, so that a damaged length never makes for a huge buffer."""
    crc = _HEADER.unpack_from(chunk)[4]
    found = 0
    position = start + CHECKED_FROM
    while position < end:
        filled = file.read_into(position, chunk[: end - position])
        if not filled:
            break
        found = crc32c(chunk[:filled], found)
        position += filled
    if found != crc:
        raise CorruptLog(file.path, start, "the checksum is wrong")


def _require_order(
    file: File, position: int, offset: int, last: int, expected: int, following: bytes
) -> None:
    """Offsets may skip but not go back. Of two that contradict each other, the one after a gap is wrong."""
    if offset < expected:
        raise CorruptLog(file.path, position, f"offset {offset} was expected to be {expected} or more")
    if len(following) == MAGIC_END:
        next_offset, length, _, magic = _HEADER_LEGACY.unpack(following)
        if magic == MAGIC and length >= LENGTH_MIN and next_offset <= last:
            raise CorruptLog(
                file.path,
                position,
                f"offset {offset} follows {expected - 1} and is followed by {next_offset}",
            )


def _refuse_impossible_length(file: File, window: bytes, position: int) -> None:
    if len(window) >= LOG_OVERHEAD:
        (length,) = _LENGTH.unpack_from(window)
        if length < LENGTH_MIN_LEGACY:
            raise _impossible_header(file, position, length, MAGIC)


def _impossible_header(file: File, position: int, length: int, magic: int) -> CorruptLog:
    if magic == MAGIC or length < LENGTH_MIN_LEGACY:
        return CorruptLog(file.path, position, f"a batch of {LOG_OVERHEAD + length} bytes is impossible")
    return CorruptLog(file.path, position, f"there is no batch format v{magic}")


def _not_a_batch(file: File, position: int, length: int, magic: int) -> HeadraceError:
    """Tell old messages, which must not be thrown away, from damage."""
    size = LOG_OVERHEAD + length
    if magic in (0, 1) and length >= LENGTH_MIN_LEGACY and size <= min(file.size, UNCHECKED_BUFFER_BYTES_MAX):
        message = file.read_at(position, size)
        if len(message) == size:
            (_, _, crc, _) = _HEADER_LEGACY.unpack_from(message)
            if zlib.crc32(message[LEGACY_CHECKED_FROM:]) == crc:
                return UnsupportedMessageFormat(file.path, position, magic)
    return _impossible_header(file, position, length, magic)
