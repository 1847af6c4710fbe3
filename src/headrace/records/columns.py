"""Checks of one field in many records at once: a strided slice is that field's byte in every one of them.

`first` is where the field is in the first record, `size` the distance between records, `stop` where they end.
"""

from struct import unpack
from typing import Final

from headrace.records.varint import BYTE_PAIRS, CONTINUE, FIRST_BYTES, ONE_BYTE_END, SECOND_BYTES, TABLE_SIZE

TWO_BYTE_END: Final = TABLE_SIZE
THREE_BYTE_END: Final = 1 << 20
_FIRST_BYTES_CONTINUED: Final = FIRST_BYTES.translate(CONTINUE)
_SECOND_BYTES_CONTINUED: Final = SECOND_BYTES.translate(CONTINUE)
#: The offset deltas below `TWO_BYTE_END` as two bytes each, read as one word; those of one byte are not used.
OFFSET_WORDS: Final = unpack(f">{TABLE_SIZE}H", BYTE_PAIRS)
_EVEN_LAST: Final = bytes(range(0, 0x80, 2))
_EVEN_CONTINUED: Final = bytes(range(0x80, 0x100, 2))


def offset_bound(index: int) -> int:
    """How many offset deltas from `index` on have the same width and, from three bytes on, the same top."""
    if index < ONE_BYTE_END:
        return ONE_BYTE_END - index
    return TWO_BYTE_END - index % TWO_BYTE_END if index < THREE_BYTE_END else 0


def offsets_count_up(data: bytes, first: int, stop: int, size: int, index: int, width: int) -> bool:
    """Whether the offset deltas in the column at `first` are index, index + 1 …, shortest encoded."""
    low = data[first:stop:size]
    at = index % TWO_BYTE_END
    to = at + len(low)
    if width == 1:
        return index < ONE_BYTE_END and low == FIRST_BYTES[at:to]
    if low != _FIRST_BYTES_CONTINUED[at:to]:
        return False
    middle = data[first + 1 : stop : size]
    if width == 2:
        return ONE_BYTE_END <= index < TWO_BYTE_END and middle == SECOND_BYTES[at:to]
    top = data[first + 2 : stop : size]
    return (
        width == 3
        and TWO_BYTE_END <= index < THREE_BYTE_END
        and middle == _SECOND_BYTES_CONTINUED[at:to]
        and top == bytes([index >> 13]) * len(top)
    )


def delta_range(data: bytes, first: int, stop: int, size: int, width: int) -> tuple[int, int] | None:
    """The least and greatest timestamp delta in the column at `first`; None if it takes a closer look."""
    low = data[first:stop:size]
    if width == 1:
        return _range_of_one_byte(low)
    high = data[first + 1 : stop : size]
    if width != 2 or not high.isascii() or low.translate(None, _EVEN_CONTINUED):
        return None
    # Without negative ones the pairs are in the order of what they say once the higher byte comes first.
    pairs = bytearray(2 * len(low))
    pairs[::2], pairs[1::2] = high, low
    words = unpack(f">{len(low)}H", pairs)
    return _delta_of_word(min(words)), _delta_of_word(max(words))


def _delta_of_word(word: int) -> int:
    return ((word >> 8 << 7) + (word & 0x7F)) >> 1


def _range_of_one_byte(column: bytes) -> tuple[int, int] | None:
    """The least and greatest of zig-zag bytes, or None if a varint goes on after one."""
    least, most = column[0] >> 1, column[-1] >> 1
    # Producers mostly send records in the order of their timestamps: then the ends have the extremes.
    if not column.translate(None, _EVEN_LAST[least : most + 1]):
        return least, most
    if not column.isascii():
        return None
    deltas = [(raw >> 1) ^ -(raw & 1) for raw in set(column)]
    return min(deltas), max(deltas)
