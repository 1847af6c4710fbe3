"""Where the parts of each record lie in a batch's uncompressed bytes, without making records of them.

For compaction and other code that moves records about as raw bytes. Lengths are checked: a span never reaches
beyond its record, nor a record beyond the data.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.records.batch import Batch
from headrace.records.errors import MalformedRecords
from headrace.records.reader import record_bytes
from headrace.records.varint import InvalidVarint, read_varint, read_varlong

# Room to look a few bytes ahead without asking each time whether they are there.
_PADDING: Final = bytes(16)
# Set bits of a raw varint that is negative or longer than two bytes.
_NOT_SHORT_AND_POSITIVE: Final = ~0x3FFE


class RecordSpan(NamedTuple):
    """Positions of one record: its edges, its key's start and length (-1 for null), its value's length."""

    start: int
    end: int
    timestamp_delta: int
    offset_position: int
    offset_delta: int
    key_position: int
    key_length: int
    value_length: int


def iter_keys(batch: Batch) -> Iterator[tuple[int, bytes | None, bool]]:
    """For every record its offset delta, its key and whether it has a value: what compaction decides on."""
    data = record_bytes(batch) + _PADDING
    size = len(data) - len(_PADDING)
    start = 0
    for _ in range(batch.count):
        # Varints of one or two bytes are decoded in place, for calls would treble the cost. Each is kept raw:
        # even for what it says twice, 1 for null. What does not fit this mould is left to `_read_span`.
        length = data[start]
        position = start + 1
        if length >= 0x80:
            length += (data[position] << 7) - 0x80
            position += 1
        end = position + (length >> 1)
        if data[position + 1] < 0x80:
            position += 2
        elif data[position + 2] < 0x80:
            position += 3
        else:
            length = 1
        offset = data[position]
        position += 1
        if offset >= 0x80:
            offset += (data[position] << 7) - 0x80
            position += 1
        key = data[position]
        position += 1
        key_end = value_end = position + (key >> 1)
        if key_end + 2 < end <= size:
            value = data[value_end]
            value_end += 1
            if value >= 0x80:
                value += (data[value_end] << 7) - 0x80
                value_end += 1
            value_end += value >> 1
            if (
                value_end + 1 == end
                and not data[value_end]
                and not (length | offset) & _NOT_SHORT_AND_POSITIVE
                and (value == 1 or not value & _NOT_SHORT_AND_POSITIVE)
                and (key == 1 or not key & 0x81)
            ):
                yield offset >> 1, data[position:key_end] if key != 1 else None, value != 1
                start = end
                continue
        span = _span_at(data, start, size)
        key_end = span.key_position + span.key_length
        has_key = span.key_length >= 0
        yield (
            span.offset_delta,
            data[span.key_position : key_end] if has_key else None,
            span.value_length >= 0,
        )
        start = span.end
    _require_end(start, size)


def iter_spans(data: bytes, count: int) -> Iterator[RecordSpan]:
    """The spans of `count` records that fill `data`."""
    position = 0
    for _ in range(count):
        span = _span_at(data, position, len(data))
        position = span.end
        yield span
    _require_end(position, len(data))


def _require_end(position: int, end: int) -> None:
    if position != end:
        raise MalformedRecords("Incorrect declared batch size, records still remaining in file")


def _span_at(data: bytes, start: int, size: int) -> RecordSpan:
    try:
        span = _read_span(data, start)
    except (IndexError, InvalidVarint):
        raise MalformedRecords(f"Found invalid record structure at byte {start}") from None
    if span.end > size:
        raise MalformedRecords(f"Record at byte {start} ends beyond its batch")
    return span


def _read_span(data: bytes, start: int) -> RecordSpan:
    length, body = read_varint(data, start)
    end = body + length
    # One-byte varints, the rule for deltas and short keys, are decoded in place: calls would double the cost.
    raw = data[body + 1]
    if raw < 0x80:
        timestamp_delta, offset_position = (raw >> 1) ^ -(raw & 1), body + 2
    else:
        timestamp_delta, offset_position = read_varlong(data, body + 1)
    offset_delta, position = read_varint(data, offset_position)
    raw = data[position]
    if raw < 0x80:
        key_length, key_position = (raw >> 1) ^ -(raw & 1), position + 1
    else:
        key_length, key_position = read_varint(data, position)
    value_length, position = read_varint(data, key_position + key_length if key_length > 0 else key_position)
    if value_length > 0:
        position += value_length
    # The last byte of a record without headers is their count.
    if position + 1 != end or data[position] != 0:
        position = _skip_headers(data, position)
        if position != end or length < 0:
            raise MalformedRecords(
                f"Invalid record size: expected to read {length} bytes in record payload, "
                f"but instead read {position - body}"
            )
    return RecordSpan(
        start, end, timestamp_delta, offset_position, offset_delta, key_position, key_length, value_length
    )


def _skip_headers(data: bytes, position: int) -> int:
    count, position = read_varint(data, position)
    if count < 0 or count > len(data) - position:
        raise MalformedRecords(f"Found invalid number of record headers {count}")
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise MalformedRecords(f"Invalid negative header key size {length}")
        length, position = read_varint(data, position + length)
        if length > 0:
            position += length
    return position
