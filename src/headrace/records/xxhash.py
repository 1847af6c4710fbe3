"""xxHash32, which guards the header of an LZ4 frame. For a few bytes only: it is plain Python."""

from typing import Final

_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_LANES_MIN: Final = 16


def xxh32_short(data: bytes) -> int:
    """The hash, with seed 0, of fewer than 16 bytes."""
    if len(data) >= _LANES_MIN:
        raise ValueError(f"xxh32_short takes fewer than {_LANES_MIN} bytes, not {len(data)}")
    value = (_PRIME_5 + len(data)) & _MASK
    position = 0
    while position + 4 <= len(data):
        lane = int.from_bytes(data[position : position + 4], "little")
        value = _rotate_left((value + lane * _PRIME_3) & _MASK, 17) * _PRIME_4 & _MASK
        position += 4
    for byte in data[position:]:
        value = _rotate_left((value + byte * _PRIME_5) & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotate_left(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
