"""Unsigned varints of up to five bytes, as flexible versions spell lengths, counts and tags."""

from headrace.ports import BytesLike
from headrace.protocol.errors import BadVarint

VALUE_MAX = 0x7FFFFFFF
LENGTH_MAX = 5


def read_unsigned_varint(buffer: BytesLike, position: int) -> tuple[int, int]:
    """The value and the position after it; IndexError past the end, BadVarint if it is no 31-bit value."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > VALUE_MAX:
                raise BadVarint(f"varint {value} exceeds {VALUE_MAX}")
            return value, position
        shift += 7
        if shift == 7 * LENGTH_MAX:
            raise BadVarint(f"varint is longer than {LENGTH_MAX} bytes")


def unsigned_varint(value: int) -> bytes:
    """The bytes of one value."""
    if value < 0x80:
        return value.to_bytes(1, "big")
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    spelt = bytearray()
    while value >= 0x80:
        spelt.append(value & 0x7F | 0x80)
        value >>= 7
    spelt.append(value)
    return bytes(spelt)
