"""The segments of one log, in the order of their base offsets."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator

from headrace.log.segment import Segment


class SegmentList:
    """A sorted map from base offset to segment; the last one is the active one."""

    __slots__ = ("_bases", "_by_base", "active")

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._by_base = {segment.base_offset: segment for segment in segments}
        self._bases = sorted(self._by_base)
        if self._bases:
            self.active: Segment = self._by_base[self._bases[-1]]

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return (self._by_base[base] for base in tuple(self._bases))

    def __contains__(self, base_offset: object) -> bool:
        return base_offset in self._by_base

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def first(self) -> Segment:
        return self._by_base[self._bases[0]]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self)

    def get(self, base_offset: int) -> Segment | None:
        return self._by_base.get(base_offset)

    def add(self, segment: Segment) -> None:
        """Put a segment in, in place of one with the same base offset."""
        base = segment.base_offset
        if base not in self._by_base:
            insort(self._bases, base)
        self._by_base[base] = segment
        self.active = self._by_base[self._bases[-1]]

    def remove(self, base_offset: int) -> None:
        if self._by_base.pop(base_offset, None) is not None:
            del self._bases[bisect_left(self._bases, base_offset)]
            if self._bases:
                self.active = self._by_base[self._bases[-1]]

    def floor(self, offset: int) -> Segment | None:
        """The segment that would hold `offset`."""
        active = self.active
        if offset >= active.base_offset:
            return active
        index = bisect_right(self._bases, offset)
        return self._by_base[self._bases[index - 1]] if index else None

    def after(self, base_offset: int) -> Segment | None:
        """The next segment."""
        index = bisect_right(self._bases, base_offset)
        return self._by_base[self._bases[index]] if index < len(self._bases) else None

    def before(self, base_offset: int) -> Segment | None:
        """The previous segment."""
        index = bisect_left(self._bases, base_offset)
        return self._by_base[self._bases[index - 1]] if index else None

    def covering(self, start: int, end: int) -> list[Segment]:
        """Every segment that may hold offsets in [start, end), in order."""
        first = max(bisect_right(self._bases, start) - 1, 0)
        stop = bisect_left(self._bases, end)
        return [self._by_base[base] for base in self._bases[first:stop]]

    def from_base(self, base_offset: int) -> list[Segment]:
        """Every segment that begins at `base_offset` or later."""
        return [self._by_base[base] for base in self._bases[bisect_left(self._bases, base_offset) :]]
