"""Records walked one by one: what is left when neighbours differ in shape.

Both walks end before the first record that is not in their mould, whatever that is, and leave it to others.
Varints stay raw in them: twice what they say, or odd where that is negative.
"""

import struct
from typing import Final

from headrace.records.columns import OFFSET_WORDS, offset_bound
from headrace.records.measure import Stretch
from headrace.records.varint import ONE_BYTE_END

# One more than the largest raw varint of two bytes, and the bits that must be clear in one that is also even.
_TWO_BYTES: Final = 0x4000
_NOT_SHORT_AND_EVEN: Final = ~0x3FFE
_NOT_LAST_AND_EVEN: Final = ~0x7E

# The head of a record up to the length of its key, for offset deltas of one and two bytes.
_HEAD_1: Final = struct.Struct(">BBxBBB")
_HEAD_2: Final = struct.Struct(">BBxBHB")


def lone_is_plain(data: bytes, *, keys_required: bool) -> bool:
    """Whether `data` is one sound record without headers and with deltas of 0, as most lone ones are.

    The mould: lengths of up to two bytes. False says nothing about the record."""
    try:
        length = data[0]
        position = 1
        if length >= 0x80:
            length += (data[1] << 7) - 0x80
            position = 2
        if (
            length != (len(data) - position) << 1
            or length >= _TWO_BYTES
            or data[position + 1 : position + 3] != b"\0\0"
        ):
            return False
        key = data[position + 3]
        position += 4
        if key != 1:
            if key & 0x81:
                return False
            position += key >> 1
        elif keys_required:
            return False
        value = data[position]
        if value >= 0x80:
            position += 1
            value += (data[position] << 7) - 0x80
        if value & _NOT_SHORT_AND_EVEN:
            if value != 1:
                return False
            value = 0
        position += (value >> 1) + 1
        return position == len(data) - 1 and not data[position]
    except IndexError:
        return False


def walk_long(data: bytes, start: int, index: int, stop: int, *, keys_required: bool) -> Stretch:
    """Records from the one at `start`, whose offset delta is `index`, up to `stop` or the first odd one.

    The mould: a length of two bytes, which means 64 bytes to 8 KiB, a timestamp delta of one, and no headers.
    Offset deltas of three bytes, or of another width than the first one's, are odd as well.
    """
    head, expected_offsets = _heads(index, min(stop - index, offset_bound(index)))
    unpack, head_size = head.unpack_from, head.size
    null_key = -1 if keys_required else 1
    walked = 0
    low, high, previous = _TWO_BYTES, -_TWO_BYTES, -1
    try:
        for expected in expected_offsets:
            length, length_high, delta, offset, key = unpack(data, start)
            position = start + head_size + (key >> 1)
            value = data[position]
            if value < 0x80:
                position += 1 + (value >> 1)
            else:
                value_high = data[position + 1]
                position += (value_high << 6) + (value >> 1) - 62
                length_high |= value_high & 0x80
            end = start + (length_high << 6) + (length >> 1) - 62
            if (
                position + 1 != end
                or offset != expected
                or data[position]
                or (length_high | delta) >= 0x80
                or (key & _NOT_LAST_AND_EVEN and key != null_key)
                or (value & 1 and value != 1)
                or length & 0x81 != 0x80
            ):
                break
            if delta != previous:
                previous = delta
                delta = (delta >> 1) ^ -(delta & 1)
                low, high = min(low, delta), max(high, delta)
            start = end
            walked += 1
    except (IndexError, struct.error):
        # The record runs off the data, or is longer than this walk can tell: not one for it.
        pass
    return walked, start, low, high


def _heads(index: int, count: int) -> tuple[struct.Struct, range | tuple[int, ...]]:
    """How to read heads from offset delta `index` on, and the offset deltas to expect in them."""
    if index < ONE_BYTE_END:
        return _HEAD_1, range(index << 1, (index + count) << 1, 2)
    return _HEAD_2, OFFSET_WORDS[index : index + count]


def walk(data: bytes, start: int, index: int, stop: int, *, keys_required: bool) -> Stretch:
    """As `walk_long`, with headers, and with varints of up to two bytes, in offset deltas of up to three."""
    walked = 0
    null_key = -1 if keys_required else 1
    low, high, previous = _TWO_BYTES, -_TWO_BYTES, -1
    try:
        for expected in range(index << 1, stop << 1, 2):
            length = data[start]
            position = start + 2
            if length >= 0x80:
                length += (data[start + 1] << 7) - 0x80
                position = start + 3
            end = position - 1 + (length >> 1)
            delta = data[position]
            if delta >= 0x80:
                position += 1
                delta += (data[position] << 7) - 0x80
            offset = data[position + 1]
            position += 2
            if offset >= 0x80:
                offset += (data[position] << 7) - 0x80
                position += 1
                if offset >= _TWO_BYTES:
                    offset += (data[position] << 14) - _TWO_BYTES
                    position += 1
            key = data[position]
            position += 1
            if key >= 0x80:
                key += (data[position] << 7) - 0x80
                position += 1
            position += key >> 1
            value = data[position]
            if value >= 0x80:
                position += 1
                value += (data[position] << 7) - 0x80
            position += (value >> 1) + 1
            headers = data[position]
            position = _after_headers(data, position, headers) if headers else position + 1
            if (
                position != end
                or offset != expected
                or length & _NOT_SHORT_AND_EVEN
                or (key & _NOT_SHORT_AND_EVEN and key != null_key)
                or (value & _NOT_SHORT_AND_EVEN and value != 1)
                or delta >= _TWO_BYTES
            ):
                break
            if delta != previous:
                previous = delta
                delta = (delta >> 1) ^ -(delta & 1)
                low, high = min(low, delta), max(high, delta)
            start = end
            walked += 1
    except IndexError:
        # The record runs off the data, or is longer than this walk can tell: not one for it.
        pass
    return walked, start, low, high


def _after_headers(data: bytes, position: int, headers: int) -> int:
    """The position after that many headers, or one that no record can end at if they are not short."""
    if headers & 0x81:
        return -1
    position += 1
    for _ in range(headers >> 1):
        name = data[position]
        position += 1 + (name >> 1)
        value = data[position]
        if value >= 0x80:
            position += 1
            value += (data[position] << 7) - 0x80
        if name & 0x81 or (value & _NOT_SHORT_AND_EVEN and value != 1):
            return -1
        position += 1 + (value >> 1)
    return position
