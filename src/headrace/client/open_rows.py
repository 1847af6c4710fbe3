"""Rows that wait to become batches: those of all partitions together, put in order only when they leave.

Full batches leave as soon as there are enough rows; the rest follows when it has waited long enough. One
sort, one copy and one encoding serve all partitions, so a row costs the same however many there are.
"""

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.client.write_columns import Codes
from headrace.records.arrow_headers import HEADERS
from headrace.records.arrow_varints import Longs
from headrace.records.batch import HEADER_SIZE

# A batch that is this full is not worth waiting for more.
_FULL_ENOUGH: Final = 0.9
_SLOTS_IN_16_BITS: Final = 2**15
_TYPES: Final = {"timestamp": pa.int64(), "key": pa.binary(), "value": pa.binary(), "headers": HEADERS}


@dataclass(slots=True)
class Cut:
    """Rows that leave, by partition: batch i has the rows from `firsts[i]` to before `firsts[i + 1]`, which
    go to `slots[i]` and were written from `written_ms[i]` on. `closed_early` are slots whose last batch could
    have taken more."""

    batch: pa.RecordBatch
    firsts: Longs
    slots: list[int]
    written_ms: list[float]
    bytes_estimated: int
    closed_early: list[int]


class _Chunk(NamedTuple):
    batch: pa.RecordBatch
    slots: Codes
    sizes: Longs
    written_ms: NDArray[np.float64]

    def at(self, rows: Longs) -> "_Chunk":
        """Some of the rows, copied: they must not hold on to the memory of all."""
        return _Chunk(self.batch.take(rows), self.slots[rows], self.sizes[rows], self.written_ms[rows])


class _Part(NamedTuple):
    """The rows of one slot: where they begin, where those that leave end, where their batches begin."""

    begin: int
    stop: int
    firsts: list[int]
    is_closed_early: bool


@dataclass(slots=True)
class OpenRows:
    """The rows, in the order in which they were written. `bytes` is what they take at most, `written_ms` when
    the oldest of them was written."""

    batch_bytes: int
    bytes: int = 0
    count: int = 0
    written_ms: float | None = None
    _chunks: list[_Chunk] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch, slots: Codes, sizes: Longs, now_ms: float) -> None:
        """Take rows in."""
        self._add(_Chunk(batch, slots, sizes, np.full(slots.size, now_ms)))

    def cut(self, *, older_than_ms: float) -> Cut | None:
        """Full batches, and others whose first row was written at `older_than_ms` or before."""
        if self.written_ms is None:
            return None
        chunk = self._joined()
        order = _order(chunk.slots)
        slots, sizes, written_ms = chunk.slots, chunk.sizes, chunk.written_ms
        if order is not None:
            slots, sizes, written_ms = slots[order], sizes[order], written_ms[order]
        room = max(self.batch_bytes - HEADER_SIZE, 1)
        parts = _parts(slots, sizes, written_ms <= older_than_ms, room)
        leaves = _leaving(parts, slots.size)
        if not leaves.any():
            return None
        cut = Cut(
            batch=_taken(chunk.batch, order, leaves),
            firsts=_counted(parts),
            slots=[int(slots[part.begin]) for part in parts for _ in part.firsts],
            written_ms=[float(written_ms[first]) for part in parts for first in part.firsts],
            bytes_estimated=int(sizes[leaves].sum()),
            closed_early=[int(slots[part.begin]) for part in parts if part.is_closed_early],
        )
        self.clear()
        if not leaves.all():
            staying = np.flatnonzero(~leaves)
            self._add(chunk.at(staying if order is None else np.sort(order[staying])))
        return cut

    def counts(self) -> dict[int, int]:
        """How many rows each slot has."""
        found: Counter[int] = Counter()
        for chunk in self._chunks:
            slots, counts = np.unique(chunk.slots, return_counts=True)
            found.update(dict(zip(slots.tolist(), counts.tolist(), strict=True)))
        return found

    def clear(self) -> None:
        """Let go of all rows."""
        self._chunks, self.bytes, self.count, self.written_ms = [], 0, 0, None

    def _add(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self.bytes += int(chunk.sizes.sum())
        self.count += chunk.slots.size
        if self.written_ms is None:
            self.written_ms = float(chunk.written_ms.min())

    def _joined(self) -> _Chunk:
        if len(self._chunks) > 1:
            batches, slots, sizes, written_ms = zip(*self._chunks, strict=True)
            self._chunks = [
                _Chunk(
                    _concatenated(batches),
                    np.concatenate(slots),
                    np.concatenate(sizes),
                    np.concatenate(written_ms),
                )
            ]
        return self._chunks[0]


def _order(slots: Codes) -> Longs | None:
    """The rows by slot and, within one, in the order in which they were written; None if they are so."""
    if not (slots[1:] < slots[:-1]).any():
        return None
    # Few partitions are put in order by their digits, which takes a fraction of the time.
    narrow = slots.astype(np.int16) if int(slots.max()) < _SLOTS_IN_16_BITS else slots
    return np.argsort(narrow, kind="stable")


def _parts(slots: Codes, sizes: Longs, is_due: NDArray[np.bool_], room: int) -> list[_Part]:
    """What leaves of each slot: full batches, and the last one if its first row `is_due`."""
    reached = np.cumsum(sizes).data
    borders = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), slots.size]
    enough = room * _FULL_ENOUGH
    parts: list[_Part] = []
    for begin, end in pairwise(borders):
        firsts: list[int] = []
        start, before = begin, reached[begin - 1] if begin else 0
        is_closed_early = False
        while start < end:
            stop = max(bisect_right(reached, before + room, start, end), start + 1)
            if stop == end and reached[stop - 1] - before < enough:
                if not is_due[start]:
                    break
                is_closed_early = True
            firsts.append(start)
            start, before = stop, reached[stop - 1]
        parts.append(_Part(begin, start, firsts, is_closed_early))
    return parts


def _counted(parts: list[_Part]) -> Longs:
    """The batches' first rows, counted among the rows that leave, and how many those are."""
    firsts: list[int] = []
    count = 0
    for part in parts:
        firsts += [first - part.begin + count for first in part.firsts]
        count += part.stop - part.begin
    return np.array([*firsts, count], np.int64)


def _leaving(parts: list[_Part], count: int) -> NDArray[np.bool_]:
    leaves = np.zeros(count, np.bool_)
    for part in parts:
        leaves[part.begin : part.stop] = True
    return leaves


def _taken(batch: pa.RecordBatch, order: Longs | None, leaves: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows that leave, without a copy if they are the first ones as they are."""
    if order is not None:
        return batch.take(order[leaves])
    count = int(np.count_nonzero(leaves))
    if leaves[:count].all():
        return batch.slice(0, count)
    return batch.take(np.flatnonzero(leaves))


def _concatenated(batches: tuple[pa.RecordBatch, ...]) -> pa.RecordBatch:
    """Batches whose columns may differ: one that is missing is null there."""
    names = [name for name in _TYPES if any(name in batch.schema.names for batch in batches)]
    schema = pa.schema([(name, _TYPES[name]) for name in names])
    return pa.concat_batches([_conforming(batch, schema) for batch in batches])


def _conforming(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    present = batch.schema.names
    columns = [
        batch.column(each.name) if each.name in present else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.record_batch(columns, schema=schema)
