"""Checks bytes that were on disk before this process wrote any, the first time each is read.

Fetches hand out file ranges that nobody looks into, so a bit that flipped while the data lay on disk would
reach consumers. What this process appended itself is trusted; what it found on disk is checked batch by
batch before it is handed out for the first time, and remembered as checked. `scrub` reads everything again,
for bits that flip later."""

from bisect import bisect_right
from typing import Final

from headrace.log.log_errors import CorruptLog
from headrace.log.segment_scan import scan_checked
from headrace.ports import File

CHECK_BYTES_MAX: Final = 1 << 20


class ReadVerifier:
    """Which stretches of each segment have been checked since the log was opened."""

    __slots__ = ("_checked", "_found")

    def __init__(self) -> None:
        self._found: dict[int, int] = {}
        self._checked: dict[int, list[tuple[int, int]]] = {}

    def found(self, segment_base: int, size: int) -> None:
        """Note that a segment had `size` bytes when it was opened."""
        if size:
            self._found[segment_base] = size

    def trust(self, segment_base: int) -> None:
        """A segment whose bytes come from this process, or that is gone."""
        self._found.pop(segment_base, None)
        self._checked.pop(segment_base, None)

    def distrust(self, segment_base: int, size: int) -> None:
        """Check the first `size` bytes of a segment again before they are handed out: some are damaged."""
        self._found[segment_base] = max(size, self._found.get(segment_base, 0))
        self._checked.pop(segment_base, None)

    def on_truncated(self, segment_base: int, size: int) -> None:
        """What lies beyond `size` from now on will be this process's own."""
        found = self._found.get(segment_base)
        if found is None or found <= size:
            return
        self._found[segment_base] = size
        checked = self._checked.get(segment_base, ())
        self._checked[segment_base] = [(start, min(end, size)) for start, end in checked if start < size]

    def servable(self, segment_base: int, file: File, position: int, size: int) -> int:
        """How many of `size` bytes from `position`, where a batch starts, may be handed out.

        Raises `CorruptLog` if the first batch there is not what was written."""
        found = self._found.get(segment_base)
        if found is None or position >= found:
            return size
        end = position + size
        checked_end = self._checked_end(segment_base, position)
        if min(end, found) <= checked_end:
            return size
        start = max(position, checked_end)
        try:
            good_end = self._check(segment_base, file, start, min(end, found), found)
        except CorruptLog:
            if start == position:
                raise
            good_end = start
        return size if good_end >= min(end, found) else good_end - position

    def _check(self, segment_base: int, file: File, start: int, end: int, found: int) -> int:
        """Check from `start` to `end`, or as far as one read allows; at least one batch is sound."""
        good_end = start
        stop = min(end, start + CHECK_BYTES_MAX)
        try:
            for batch in scan_checked(file, segment_base, start, found):
                good_end = batch.position + batch.size
                if good_end >= stop:
                    break
        except CorruptLog:
            if good_end == start:
                raise
        self._remember(segment_base, start, good_end)
        return good_end

    def _checked_end(self, segment_base: int, position: int) -> int:
        ranges = self._checked.get(segment_base)
        if not ranges:
            return position
        index = bisect_right(ranges, (position, 1 << 62)) - 1
        if index >= 0 and ranges[index][1] > position:
            return ranges[index][1]
        return position

    def _remember(self, segment_base: int, start: int, end: int) -> None:
        if end <= start:
            return
        merged: list[tuple[int, int]] = []
        for low, high in sorted([*self._checked.get(segment_base, ()), (start, end)]):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        self._checked[segment_base] = merged
