"""The quick check of a batch's records: are they all sound, and what is the range of their timestamps?

`scan` says yes or "look closer"; it never explains. Whatever it does not vouch for goes through `inspection`,
which knows every rule and names what is wrong. No object is made per record: records of equal shape, which
is what producers of fixed-size values send, are checked column by column (`runs`), others without headers are
walked (`walk`), and only what fits neither is measured field by field (`measure`).
"""

from typing import Final

from headrace.records.columns import TWO_BYTE_END
from headrace.records.measure import Stretch, measure
from headrace.records.runs import find_run
from headrace.records.shapes import Shape, ShapeMemory, shape_at, widened
from headrace.records.varint import ONE_BYTE_END
from headrace.records.walk import walk, walk_long

Range = tuple[int, int]

# With fewer records than this to come, a run is not worth looking for.
_FEW: Final = 12
_STRIDE_FIRST: Final = 16
_STRIDE_MAX: Final = 1024
_LONG_STRIDE: Final = 8


def scan(data: bytes, count: int, *, keys_required: bool, memory: ShapeMemory | None = None) -> Range | None:
    """The least and the greatest timestamp delta if `data` is exactly `count` sound records, else None.

    Sound means: lengths add up, offset deltas count from 0, and there are keys where they are required.
    `memory` is of shapes that earlier scans with the same `keys_required` have found.
    """
    start = index = look_at = 0
    backoff = _STRIDE_FIRST
    low, high = 2**63, -(2**63)
    shape: Shape | None = None
    while index < count:
        stretch = None
        if index >= look_at and count - index >= _FEW:
            if shape is None and memory is not None:
                shape = memory.recall(data[start : start + 2])
            if shape is not None:
                stretch = find_run(data, start, shape, index, count)
            if stretch is None and _next_is_as_long(data, start):
                shape = shape_at(data, start, keys_required=keys_required)
                stretch = find_run(data, start, shape, index, count) if shape else None
                if stretch and shape and memory is not None:
                    memory.remember(data[start : start + 2], shape)
            backoff = min(backoff * 2, _STRIDE_MAX) if stretch is None else _STRIDE_FIRST
        if stretch is None:
            stop = min(count, index + backoff)
            look_at = stop
            stretch = _walk_on(data, start, index, stop, keys_required)
            if not stretch[0]:
                return None
        records, start, least, most = stretch
        index += records
        # Where a run ends because offset deltas grow by a byte, its shape does so as well.
        shape = widened(shape) if shape and index in (ONE_BYTE_END, TWO_BYTE_END) else None
        if least < low:
            low = least
        if most > high:
            high = most
    return (low, high) if start == len(data) else None


def _next_is_as_long(data: bytes, start: int) -> bool:
    """Whether the record at `start` is followed by one of its length, as far as two bytes of that tell."""
    prefix = data[start : start + 2]
    if len(prefix) < 2:
        return False
    if prefix[0] < 0x80:
        end = start + 1 + (prefix[0] >> 1)
    else:
        end = start + (prefix[1] << 6) + (prefix[0] >> 1) - 62
    return data[end : end + 1] == prefix[:1]


def _walk_on(data: bytes, start: int, index: int, stop: int, keys_required: bool) -> Stretch:
    """At least one record, if it is sound, by the quickest means that can tell."""
    prefix = data[start : start + 2]
    if len(prefix) == 2 and prefix[0] & prefix[1] & 0x80:
        # Longer than either walk can tell; what follows may be shorter again.
        return measure(data, start, index, min(stop, index + _LONG_STRIDE), keys_required=keys_required)
    stretch = walk_long(data, start, index, stop, keys_required=keys_required)
    if not stretch[0]:
        stretch = walk(data, start, index, stop, keys_required=keys_required)
    if not stretch[0]:
        stretch = measure(data, start, index, stop, keys_required=keys_required)
    return stretch
