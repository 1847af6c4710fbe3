"""Many varints at once: read at given positions of a byte array, or measured and written into one.

The rules are those of `varint`. The loops go over the bytes of a varint, never over the records. Positions
are clipped to the array, so nothing outside it is ever read: a caller compares the positions it gets back
with where its records end.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Words = NDArray[np.uint64]

VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10
# A varint that does not end leaves this as the position after it, which is beyond the end of any record.
ENDLESS: Final = 1 << 62

_MORE: Final = 0x80
_SEVEN_BITS: Final = 0x7F
_ONE: Final = np.uint64(1)


def read_varints(data: Bytes, positions: Longs) -> tuple[Longs, Longs]:
    """The int32 values at `positions`, and the positions after them: `ENDLESS` where one does not end."""
    return _read(data, positions, VARINT_BYTES_MAX, 0xFFFFFFFF)


def read_varlongs(data: Bytes, positions: Longs) -> tuple[Longs, Longs]:
    """The int64 values at `positions`, and the positions after them: `ENDLESS` where one does not end."""
    return _read(data, positions, VARLONG_BYTES_MAX, 0xFFFFFFFFFFFFFFFF)


def _read(data: Bytes, positions: Longs, bytes_max: int, mask: int) -> tuple[Longs, Longs]:
    first = data.take(positions, mode="clip")
    following = positions + 1
    if first.size == 0 or first.max() < _MORE:
        return _unzigzag_small(first.astype(np.int16)), following
    # Two bytes are so common that they are worth arithmetic on narrow types for all rather than for some.
    more = first >> 7
    second = data.take(following, mode="clip") * more
    following += more
    small = (first & _SEVEN_BITS) | ((second & _SEVEN_BITS).astype(np.int16) << 7)
    if second.max() < _MORE:
        return _unzigzag_small(small), following
    raw = small.astype(np.uint64)
    longer = np.flatnonzero(second & _MORE)
    for index in range(2, bytes_max):
        byte = data.take(following[longer], mode="clip")
        following[longer] += 1
        raw[longer] |= (byte & _SEVEN_BITS).astype(np.uint64) << np.uint64(7 * index)
        longer = longer[byte >= _MORE]
        if longer.size == 0:
            break
    following[longer] = ENDLESS
    raw &= np.uint64(mask)
    return ((raw >> _ONE) ^ (np.uint64(0) - (raw & _ONE))).view(np.int64), following


def _unzigzag_small(raw: NDArray[np.int16]) -> Longs:
    return ((raw >> 1) ^ -(raw & 1)).astype(np.int64)


def zigzag(values: Longs) -> Words:
    """The values in the order 0, -1, 1, -2, …, so that small ones of either sign are short."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def sizes_of(raw: Words) -> Longs:
    """How many bytes each zig-zag value takes."""
    sizes = np.ones(raw.size, np.int64)
    largest = int(raw.max()) if raw.size else 0
    bound = _MORE
    while bound <= largest:
        sizes += raw >= bound
        bound <<= 7
    return sizes


def write_varints(out: Bytes, positions: Longs, raw: Words) -> None:
    """Write each zig-zag value at its position."""
    while True:
        more = raw >= _MORE
        out[positions] = (raw & np.uint64(_SEVEN_BITS)).astype(np.uint8) | (more.view(np.uint8) << 7)
        longer = np.count_nonzero(more)
        if longer == 0:
            return
        if longer < raw.size:
            positions, raw = positions[more], raw[more]
        positions = positions + 1
        raw = raw >> np.uint64(7)
