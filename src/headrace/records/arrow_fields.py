"""The fields of all records of an arena at once, each checked to lie inside its record.

What comes out of here is safe to build buffers from: every position and size is inside the arena.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headrace.records.arrow_arena import Arena
from headrace.records.arrow_boundaries import malformed
from headrace.records.arrow_varints import Longs, read_varints, read_varlongs
from headrace.records.batch import TIMESTAMP_TYPE_FLAG


@dataclass(slots=True)
class Fields:
    """One entry per record. A size below 0 is null. `headers_start` is where the first header would be."""

    offset: Longs
    timestamp: Longs
    timestamp_type: NDArray[np.int32]
    key_start: Longs
    key_size: Longs
    value_start: Longs
    value_size: Longs
    header_count: Longs
    headers_start: Longs
    end: Longs

    def keep(self, wanted: NDArray[np.bool_]) -> "Fields":
        """The records for which `wanted` holds."""
        return Fields(*(getattr(self, name)[wanted] for name in self.__slots__))


def read_fields(arena: Arena) -> Fields:
    """Decode everything but the headers; MalformedRecords naming the first record that does not parse."""
    data = arena.data
    length, body = read_varints(data, arena.starts)
    timestamp_delta, position = read_varlongs(data, body + 1)
    offset_delta, position = read_varints(data, position)
    key_size, key_start = read_varints(data, position)
    value_size, value_start = read_varints(data, key_start + np.maximum(key_size, 0))
    header_count, headers_start = read_varints(data, value_start + np.maximum(value_size, 0))
    # Positions only ever grow, so the last one tells whether any field left its record.
    remaining = arena.ends - headers_start
    sound = (body + length == arena.ends) & (header_count >= 0) & (header_count <= remaining)
    sound &= (header_count > 0) | (remaining == 0)
    if not sound.all():
        raise _unsound(arena, int(sound.argmin()))
    timestamp, timestamp_type = _timestamps(arena, timestamp_delta)
    return Fields(
        offset=_repeat(arena, [batch.base_offset for batch in arena.batches]) + offset_delta,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        key_start=key_start,
        key_size=key_size,
        value_start=value_start,
        value_size=value_size,
        header_count=header_count,
        headers_start=headers_start,
        end=arena.ends,
    )


def _timestamps(arena: Arena, delta: Longs) -> tuple[Longs, NDArray[np.int32]]:
    """Base plus delta, or the batch's maximum for all its records where the broker set it on append.

    The base of a batch with a delete horizon is that horizon; its deltas count from there just the same."""
    kinds = (np.array([batch.attributes for batch in arena.batches], np.int32) & TIMESTAMP_TYPE_FLAG) >> 3
    bases = [batch.base_timestamp for batch in arena.batches]
    if not kinds.any():
        return _repeat(arena, bases) + delta, np.zeros(delta.size, np.int32)
    appended = [batch.max_timestamp for batch in arena.batches]
    kind = np.repeat(kinds, arena.counts)
    return np.where(kind == 0, _repeat(arena, bases) + delta, _repeat(arena, appended)), kind


def _repeat(arena: Arena, values: list[int]) -> Longs:
    return np.repeat(np.array(values, np.int64), arena.counts)


def _unsound(arena: Arena, record: int) -> Exception:
    index = int(np.searchsorted(np.cumsum(arena.counts), record, side="right"))
    first = int(arena.counts[:index].sum())
    return malformed(arena.batches[index], f"record {record - first} has a field that does not fit into it")
