"""Variable-length integers with zig-zag encoding, as records use them for lengths, deltas and counts.

The rules are those of Kafka's readers: a varint ends within five bytes and a varlong within ten, surplus high
bits of the last byte are dropped, and padded encodings are fine. Positions are passed in and handed back; no
stream object is made.
"""

from typing import Final

from headrace.errors import HeadraceError
from headrace.ports import BytesLike


class InvalidVarint(HeadraceError):
    """A varint or varlong that does not end where it must."""


def read_varint(buffer: BytesLike, position: int) -> tuple[int, int]:
    """The int32 at `position` and the position after it. IndexError at the end of the buffer."""
    byte = buffer[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    raw = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
    raise InvalidVarint(f"varint at position {position - 5} does not end within 5 bytes")


def read_varlong(buffer: BytesLike, position: int) -> tuple[int, int]:
    """The int64 at `position` and the position after it. IndexError at the end of the buffer."""
    raw = 0
    for shift in (0, 7, 14, 21, 28, 35, 42, 49, 56, 63):
        byte = buffer[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
    raise InvalidVarint(f"varlong at position {position - 10} does not end within 10 bytes")


def wrap_long(number: int) -> int:
    """A sum or difference of int64s as Java has it: beyond 64 bits it goes on from the other end."""
    return (number + 2**63) % 2**64 - 2**63


def encode_unsigned(raw: int) -> bytes:
    """The shortest encoding of a non-negative integer, without zig-zag."""
    out = bytearray()
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    """The shortest zig-zag encoding of an int32 or int64."""
    if 0 <= value < TABLE_SIZE:
        return VARINT_TABLE[value]
    return encode_unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def size_of_varint(value: int) -> int:
    """How many bytes `encode_varint(value)` takes."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    return (raw.bit_length() + 6) // 7 or 1


def _interleaved(first: bytes, second: bytes) -> bytes:
    both = bytearray(2 * len(first))
    both[::2], both[1::2] = first, second
    return bytes(both)


# Most lengths and deltas are small: looking them up beats computing them five times over. The tables are cut
# out of runs of bytes, which is the quickest way to make them when the module is imported.
TABLE_SIZE: Final = 8192
ONE_BYTE_END: Final = 64
#: The first byte of every varint below `TABLE_SIZE`, without the bit that says another follows; the second.
FIRST_BYTES: Final = bytes(range(0, 0x80, 2)) * (TABLE_SIZE // ONE_BYTE_END)
SECOND_BYTES: Final = b"".join(bytes([high]) * ONE_BYTE_END for high in range(TABLE_SIZE // ONE_BYTE_END))
CONTINUE: Final = bytes(byte | 0x80 for byte in range(0x100))
#: Both bytes of every varint from 0 to `TABLE_SIZE`, as one run.
BYTE_PAIRS: Final = _interleaved(FIRST_BYTES.translate(CONTINUE), SECOND_BYTES)
VARINT_TABLE: Final = (
    *(FIRST_BYTES[at : at + 1] for at in range(ONE_BYTE_END)),
    *(BYTE_PAIRS[at : at + 2] for at in range(2 * ONE_BYTE_END, 2 * TABLE_SIZE, 2)),
)
NULL_LENGTH: Final = encode_unsigned(1)
