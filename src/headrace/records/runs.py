"""Runs of records of equal shape, checked column by column.

A run is found by taking one record as the pattern and looking how many of its followers have the same lengths
at the same places. A strided slice of the bytes is such a place in every record at once, and comparing it
with what it should be costs about a nanosecond per record.
"""

from struct import Struct
from typing import Final

from headrace.records.measure import Stretch, shape_of

_RUN_MIN: Final = 4
# Columns are taken of at most this many records at a time, so that their bytes stay in the processor's cache.
_RUN_MAX: Final = 2048

_ONE_BYTE_END: Final = 64
_TWO_BYTE_END: Final = 8192
_THREE_BYTE_END: Final = 1 << 20
_OFFSETS_LOW: Final = bytes(index << 1 & 0x7F for index in range(_TWO_BYTE_END))
_OFFSETS_LOW_CONTINUED: Final = bytes(byte | 0x80 for byte in _OFFSETS_LOW)
_OFFSETS_MIDDLE: Final = bytes(index >> 6 for index in range(_TWO_BYTE_END))
_OFFSETS_MIDDLE_CONTINUED: Final = bytes(byte | 0x80 for byte in _OFFSETS_MIDDLE)
_CONTINUED_BYTES: Final = bytes(range(0x80, 0x100))


def find_run(data: bytes, start: int, end: int, index: int, count: int) -> Stretch | None:
    """The records after the sound one at `start:end` that have its shape; the first has offset delta `index`.

    None if they are too few to have been worth the look, which says nothing about them.
    """
    size = end - start
    length = min(count - index, (len(data) - end) // size, _RUN_MAX, _offset_bound(index))
    if length < _RUN_MIN or data[end : end + 2] != data[start : start + 2]:
        return None
    shape = shape_of(data, start, end)
    for place in shape.fixed:
        mark = data[start + place : start + place + 1]
        column = data[end + place : end + length * size : size]
        if column != mark * length:
            length -= len(column.lstrip(mark))
            if length < _RUN_MIN:
                return None
    stop = end + length * size
    offset_at = end + shape.offset_at
    if not _offsets_count_up(data, offset_at, stop, size, index, shape.key_at - shape.offset_at):
        return None
    width = shape.offset_at - shape.timestamp_at
    spread = _delta_range(data, end + shape.timestamp_at, stop, size, width)
    return None if spread is None else Stretch(length, stop - size, stop, spread[0], spread[1])


def _offset_bound(index: int) -> int:
    """How many offset deltas from `index` on have the same width and, from three bytes on, the same top."""
    if index < _ONE_BYTE_END:
        return _ONE_BYTE_END - index
    return _TWO_BYTE_END - index % _TWO_BYTE_END if index < _THREE_BYTE_END else 0


def _offsets_count_up(data: bytes, first: int, stop: int, size: int, index: int, width: int) -> bool:
    """Whether the offset deltas in the column at `first` are index, index + 1 …, shortest encoded."""
    low = data[first:stop:size]
    at = index % _TWO_BYTE_END
    to = at + len(low)
    if width == 1:
        return index < _ONE_BYTE_END and low == _OFFSETS_LOW[at:to]
    if low != _OFFSETS_LOW_CONTINUED[at:to]:
        return False
    middle = data[first + 1 : stop : size]
    if width == 2:
        return _ONE_BYTE_END <= index < _TWO_BYTE_END and middle == _OFFSETS_MIDDLE[at:to]
    top = data[first + 2 : stop : size]
    return (
        width == 3
        and _TWO_BYTE_END <= index < _THREE_BYTE_END
        and middle == _OFFSETS_MIDDLE_CONTINUED[at:to]
        and top == bytes([index >> 13]) * len(top)
    )


def _delta_range(data: bytes, first: int, stop: int, size: int, width: int) -> tuple[int, int] | None:
    """The least and greatest timestamp delta in the column at `first` if all are one or two bytes wide."""
    low = data[first:stop:size]
    if width == 1:
        if not low.isascii():
            return None
        raws = {low[0]} if low == low[:1] * len(low) else set(low)
    elif width == 2:
        high = data[first + 1 : stop : size]
        if not high.isascii() or low.translate(None, _CONTINUED_BYTES):
            return None
        pairs = bytearray(2 * len(low))
        pairs[::2], pairs[1::2] = low, high
        raws = {(pair >> 8 << 7) + (pair & 0x7F) for pair in set(Struct(f"<{len(low)}H").unpack(pairs))}
    else:
        return None
    deltas = [(raw >> 1) ^ -(raw & 1) for raw in raws]
    return min(deltas), max(deltas)
