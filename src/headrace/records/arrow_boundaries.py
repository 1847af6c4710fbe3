"""Where the records of many batches end, found from their lengths alone.

Only a record's own length tells where the next one is, so this is a walk in principle. It is cut short where
records are of equal length (by the stride) and where there are many batches (all of them in step); the rest
is walked over in a plain loop. What a record holds is checked by `arrow_fields`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from headrace.ports import BytesLike
from headrace.records.arrow_varints import Bytes, Longs, read_varints
from headrace.records.batch import Batch
from headrace.records.errors import MalformedRecords
from headrace.records.varint import InvalidVarint, read_varint

# A round over all batches costs as much as walking over about this many records.
_IN_STEP_MIN: Final = 128

_REGULAR_COUNT_MIN: Final = 32
_REGULAR_SAMPLE: Final = 4
_RUN_MIN: Final = 16
_AHEAD_MIN: Final = 128
_SHORT_RUNS_MAX: Final = 8


class _Span(NamedTuple):
    """A number of records of a batch from `position` on."""

    batch: Batch
    position: int
    records: int


def malformed(batch: Batch, reason: str) -> MalformedRecords:
    """The error for a batch whose records cannot be read, naming its offset."""
    return MalformedRecords(f"Batch at offset {batch.base_offset} is malformed: {reason}")


def record_ends(source: BytesLike, batches: list[Batch], begins: Longs, stops: Longs) -> Longs:
    """The end of each record of the batches, which lie at `source[begins[i]:stops[i]]`.

    MalformedRecords where the lengths of a batch's records do not add up to its size. A negative length may
    pass for a small one; it does not agree with the end that is found for it."""
    counts = np.array([batch.count for batch in batches], np.int64)
    if len(batches) >= _IN_STEP_MIN:
        ends = _in_step(source, batches, begins, counts)
    else:
        ends = _one_by_one(source, batches, begins.tolist(), stops.tolist())
    unfilled = np.flatnonzero(ends[np.cumsum(counts) - 1] != stops)
    if unfilled.size:
        raise malformed(batches[unfilled[0]], "the lengths of its records do not add up to its size")
    return ends


def _in_step(source: BytesLike, batches: list[Batch], begins: Longs, counts: Longs) -> Longs:
    """One record of every batch per round, until too few batches have any left."""
    data = np.frombuffer(source, np.uint8)
    order = np.argsort(-counts, kind="stable")
    left = counts[order]
    position = begins[order]
    slot = (np.cumsum(counts) - counts)[order]
    ends = np.empty(int(counts.sum()), np.int64)
    # Batches are in descending order of their counts, so those with records left are always the first ones.
    rounds = int(left[_IN_STEP_MIN - 1])
    active = np.searchsorted(-left, -np.arange(1, rounds + 1), side="right").tolist()
    for size in active:
        length, body = read_varints(data, position[:size])
        position[:size] = body + np.maximum(length, 0)
        ends[slot[:size]] = position[:size]
        slot[:size] += 1
    for index in range(active[-1] if active else 0):
        count = int(left[index]) - rounds
        if count:
            span = _Span(batches[order[index]], int(position[index]), count)
            ends[slot[index] : slot[index] + count] = _walked(source, [span])
    return ends


def _one_by_one(source: BytesLike, batches: list[Batch], begins: list[int], stops: list[int]) -> Longs:
    """Batch by batch: those of records of equal length by the stride, runs of others in one walk."""
    data = np.frombuffer(source, np.uint8)
    found: list[Longs] = []
    irregular: list[_Span] = []
    for batch, begin, stop in zip(batches, begins, stops, strict=True):
        span = _Span(batch, begin, batch.count)
        if batch.count >= _REGULAR_COUNT_MIN and _looks_regular(source, begin, stop):
            found += (_walked(source, irregular), _by_stride(source, data, span, stop))
            irregular = []
        else:
            irregular.append(span)
    found.append(_walked(source, irregular))
    return np.concatenate(found)


def _walked(source: BytesLike, spans: list[_Span]) -> Longs:
    return np.fromiter(_walk(source, spans), np.int64, sum([span.records for span in spans]))


def _walk(source: BytesLike, spans: list[_Span]) -> Iterator[int]:
    for batch, position, count in spans:
        try:
            for _ in range(count):
                byte = source[position]
                if byte < 0x80:
                    position += (byte >> 1) + 1
                elif (second := source[position + 1]) < 0x80:
                    position += ((byte + (second << 7)) >> 1) - 62
                else:
                    length, position = read_varint(source, position)
                    position += max(length, 0)
                yield position
        except (IndexError, InvalidVarint):
            raise malformed(batch, "a record goes beyond the end of the batch") from None


def _prefix(source: BytesLike, position: int, stop: int) -> tuple[int, int]:
    """The sizes of a record's length field and of the whole record; both 0 where it leaves the batch."""
    try:
        length, body = read_varint(source, position)
    except (IndexError, InvalidVarint):
        return 0, 0
    if length <= 0 or body + length > stop:
        return 0, 0
    return body - position, body + length - position


def _looks_regular(source: BytesLike, position: int, stop: int) -> bool:
    """Whether the first few records have the same length."""
    prefix, size = _prefix(source, position, stop)
    if not size or position + size * _REGULAR_SAMPLE > stop:
        return False
    field = source[position : position + prefix]
    return all(
        source[start : start + prefix] == field
        for start in range(position + size, position + size * _REGULAR_SAMPLE, size)
    )


def _by_stride(source: BytesLike, data: Bytes, span: _Span, stop: int) -> Longs:
    """Run by run of records of equal length; what does not come in runs is walked over."""
    batch, position, count = span
    ends = np.empty(count, np.int64)
    filled = 0
    short_runs = 0
    # Looking further ahead only while runs are that long keeps the work in proportion to the records.
    ahead = _AHEAD_MIN
    while filled < count:
        run, size = _equal_run(source, data, position, stop, min(ahead, count - filled))
        ahead = ahead * 4 if run == ahead else _AHEAD_MIN
        if run >= _RUN_MIN:
            ends[filled : filled + run] = np.arange(position + size, position + size * run + 1, size)
        else:
            short_runs += 1
            run = min(_RUN_MIN if short_runs < _SHORT_RUNS_MAX else count, count - filled)
            ends[filled : filled + run] = _walked(source, [_Span(batch, position, run)])
        filled += run
        position = int(ends[filled - 1])
    return ends


def _equal_run(source: BytesLike, data: Bytes, position: int, stop: int, count_max: int) -> tuple[int, int]:
    """How many records from `position` on have the same length field, and their size."""
    prefix, size = _prefix(source, position, stop)
    if not size:
        return 0, 0
    count = min(count_max, (stop - position) // size)
    span = data[position : position + count * size]
    equal = span[::size] == span[0]
    for index in range(1, prefix):
        equal &= span[index::size] == span[index]
    return (count if equal.all() else int(equal.argmin())), size
