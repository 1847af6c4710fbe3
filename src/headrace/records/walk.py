"""Short records walked byte by byte: what is left when neighbours differ in size.

A record is in this walk's mould if none of its varints is longer than two bytes (its offset delta and key
length may be so too) and it has no headers. The walk ends before the first that is not.
"""

from typing import Final

from headrace.records.measure import Stretch

# One more than the largest raw varint of two bytes, and the bits that must be clear in one that is also even.
_TWO_BYTES: Final = 0x4000
_NOT_SHORT_AND_EVEN: Final = ~0x3FFE


def walk(data: bytes, start: int, index: int, stop: int, *, keys_required: bool) -> Stretch:
    """Records from the one at `start`, whose offset delta is `index`, up to `stop` or the first odd one."""
    first, last_start = index, start
    null_key = -1 if keys_required else 1
    low, high = 2 * _TWO_BYTES, -2 * _TWO_BYTES
    try:
        while index < stop:
            # Varints stay raw: twice what they say, or odd where that is negative.
            length = data[start]
            position = start + 1
            if length >= 0x80:
                length += (data[position] << 7) - 0x80
                position += 1
            end = position + (length >> 1)
            delta = data[position + 1]
            position += 2
            if delta >= 0x80:
                delta += (data[position] << 7) - 0x80
                position += 1
            offset = data[position]
            position += 1
            if offset >= 0x80:
                offset += (data[position] << 7) - 0x80
                position += 1
            key = data[position]
            position += 1
            if key >= 0x80:
                key += (data[position] << 7) - 0x80
                position += 1
            position += key >> 1
            value = data[position]
            position += 1
            if value >= 0x80:
                value += (data[position] << 7) - 0x80
                position += 1
            position += value >> 1
            if (
                position + 1 != end
                or offset != index << 1
                or data[position]
                or length & _NOT_SHORT_AND_EVEN
                or not delta < _TWO_BYTES > offset
                or (key & _NOT_SHORT_AND_EVEN and key != null_key)
                or (value & _NOT_SHORT_AND_EVEN and value != 1)
            ):
                break
            if delta & 1:
                delta = -1 - delta
            if delta > high:
                high = delta
            if delta < low:
                low = delta
            last_start, start = start, end
            index += 1
    except IndexError:
        # The record runs off the data, or is longer than this walk can tell: not one for it.
        pass
    return Stretch(index - first, last_start, start, low >> 1, high >> 1)
