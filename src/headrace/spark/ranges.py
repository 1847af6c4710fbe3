"""Offsets to read as pieces of work: one for each partition, or more where a query asks for more tasks."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headrace.types import TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """How many offsets there are; gaps in the log may make it fewer records."""
        return self.end - self.start


def split_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Ranges that are not empty, divided until none holds more than `max_records` and there are about
    `min_partitions`, the large ones into more parts."""
    filled = [piece for piece in ranges if piece.size > 0]
    if max_records is not None:
        filled = [part for piece in filled for part in _divide(piece, math.ceil(piece.size / max_records))]
    if min_partitions is None or len(filled) >= min_partitions:
        return filled
    return _divide_large(filled, min_partitions)


def _divide_large(ranges: Sequence[OffsetRange], wanted: int) -> list[OffsetRange]:
    """Small ranges stay whole; the others share what is left of the wanted number by their size."""
    total = sum(piece.size for piece in ranges)
    small = [piece for piece in ranges if _parts(piece.size, total, wanted) == 1]
    large_total = total - sum(piece.size for piece in small)
    large_wanted = max(wanted - len(small), 1)
    kept = set(small)
    return [
        part
        for piece in ranges
        for part in _divide(piece, 1 if piece in kept else _parts(piece.size, large_total, large_wanted))
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _divide(piece: OffsetRange, parts: int) -> list[OffsetRange]:
    """Parts of the same size, but for rounding; none of them empty."""
    found: list[OffsetRange] = []
    start, left = piece.start, piece.size
    for remaining in range(parts, 0, -1):
        size = left // remaining
        left -= size
        if size:
            found.append(OffsetRange(piece.partition, start, start + size))
        start += size
    return found
