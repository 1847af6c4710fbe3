"""The quick check of a batch's records: are they all sound, and what is the range of their timestamps?

`scan` says yes or "look closer"; it never explains. Whatever it does not vouch for goes through `inspection`,
which knows every rule and names what is wrong. No object is made per record: records of equal shape, which
is what producers of fixed-size values send, are checked column by column (`runs`), short records of any size
are walked byte by byte (`walk`), and only what fits neither is measured field by field (`measure`).
"""

from typing import Final

from headrace.records.measure import measure
from headrace.records.runs import find_run
from headrace.records.walk import walk

Range = tuple[int, int]

_STRIDE_AFTER_FAILURE: Final = 16
_STRIDE_MAX: Final = 1024


def scan(data: bytes, count: int, *, keys_required: bool) -> Range | None:
    """The least and the greatest timestamp delta if `data` is exactly `count` sound records, else None.

    Sound means: lengths add up, offset deltas count from 0, and there are keys where they are required.
    """
    start = index = 0
    low, high = 2**63, -(2**63)
    stride = 1
    while index < count:
        stretch = walk(data, start, index, min(count, index + stride), keys_required=keys_required)
        if not stretch.records:
            measured = measure(data, start, index, keys_required=keys_required)
            if measured is None:
                return None
            stretch = measured
        index += stretch.records
        low, high = min(low, stretch.low), max(high, stretch.high)
        start = stretch.end
        if index == count:
            break
        run = find_run(data, stretch.last_start, start, index, count)
        if run is None:
            stride = min(max(stride * 2, _STRIDE_AFTER_FAILURE), _STRIDE_MAX)
        else:
            stride = 1
            index += run.records
            low, high = min(low, run.low), max(high, run.high)
            start = run.end
    return (low, high) if start == len(data) else None
