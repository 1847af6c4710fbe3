"""What a user hands to a writer, checked in full and brought into the shape that batches are built from.

Nothing is sent before all rows have passed here: columns that cannot be meant are refused by name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headrace.records.arrow_headers import HEADERS
from headrace.records.arrow_input import PIECE_BYTES_MAX, Columns, UnusableColumns, normalise, sizes_in
from headrace.records.arrow_varints import Longs, sizes_of, zigzag
from headrace.records.batch import HEADER_SIZE
from headrace.records.varint import size_of_varint

Codes = NDArray[np.int32]

ANY_PARTITION: Final = -1

# What a reader hands out beside a record's own columns: passed over, so that its rows can be written as such.
_PASSED_OVER: Final = frozenset({"offset", "timestamp_type"})
_KNOWN: Final = ("key", "value", "headers", "timestamp", "topic", "partition")
_INT32_MAX: Final = 2**31 - 1
_ATTRIBUTES_SIZE: Final = 1
# Rows of several writes come into one batch, and their times may be a quarter of an hour apart at this size.
_TIME_DELTA_SIZE_MIN: Final = 3
_ROWS_PER_CHUNK_MIN: Final = 4_096


@dataclass(slots=True)
class Rows:
    """Rows ready to be sent: `batch` has what records are made of, `sizes` what each takes at most.

    `topic_codes` are places in `topics`, None if there is but one; `partitions` are `ANY_PARTITION` where the
    partitioner decides, None if it decides for all."""

    batch: pa.RecordBatch
    sizes: Longs
    topics: list[str]
    topic_codes: Codes | None
    partitions: Codes | None

    @property
    def count(self) -> int:
        return int(self.batch.num_rows)

    def slice(self, start: int, stop: int) -> "Rows":
        """Rows `start` to `stop`, without a copy."""
        return Rows(
            self.batch.slice(start, stop - start),
            self.sizes[start:stop],
            self.topics,
            None if self.topic_codes is None else self.topic_codes[start:stop],
            None if self.partitions is None else self.partitions[start:stop],
        )

    def pieces(self, bytes_max: int, rows_max: int) -> "Iterator[Rows]":
        """The rows in turn, in pieces of `bytes_max` bytes at most, or of a single larger row.

        Pieces are about alike: a small one at the end would cost as much as a whole one."""
        reached = np.cumsum(self.sizes)
        rows_max = ceil(self.count / ceil(max(self.count / rows_max, int(reached[-1]) / bytes_max)))
        start = before = 0
        while start < self.count:
            fitting = int(np.searchsorted(reached, before + bytes_max, "right"))
            stop = max(min(fitting, start + rows_max), start + 1)
            yield self if stop - start == self.count else self.slice(start, stop)
            start, before = stop, int(reached[stop - 1])


def checked_rows(
    columns: pa.RecordBatch | pa.Table, *, topic: str | None, now_ms: int, record_bytes_max: int
) -> list[Rows]:
    """All rows of a write; UnusableColumns if a single one of them cannot be sent."""
    _check_names(columns, topic)
    found: list[Rows] = []
    first = 0
    for batch in _batches(columns):
        found.append(_rows(batch, topic, now_ms, record_bytes_max, first))
        first += batch.num_rows
    return found


def _check_names(columns: pa.RecordBatch | pa.Table, topic: str | None) -> None:
    names = columns.schema.names
    unknown = sorted(set(names) - {*_KNOWN, *_PASSED_OVER})
    if unknown:
        raise UnusableColumns(
            f"Columns {', '.join(unknown)} are none of {', '.join(_KNOWN)}; rename or drop them"
        )
    if len(set(names)) < len(names):
        raise UnusableColumns(f"Each column may be there once; got {', '.join(names)}")
    if "value" not in names and "key" not in names:
        raise UnusableColumns(f"A column value or key is needed; got {', '.join(names) or 'no columns'}")
    if topic is None and "topic" not in names:
        raise UnusableColumns("A column topic is needed, since the writer was given no topic")


def _batches(columns: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    if isinstance(columns, pa.RecordBatch):
        batches = [columns]
    else:
        batches = columns.to_batches()
        if len(batches) > columns.num_rows / _ROWS_PER_CHUNK_MIN and columns.nbytes <= PIECE_BYTES_MAX:
            batches = columns.combine_chunks().to_batches()
    for batch in batches:
        yield from _halved(batch)


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Pieces that plain binary columns can hold."""
    if batch.num_rows > 1 and batch.nbytes > PIECE_BYTES_MAX:
        half = batch.num_rows // 2
        yield from _halved(batch.slice(0, half))
        yield from _halved(batch.slice(half))
    elif batch.num_rows:
        yield batch


def _rows(batch: pa.RecordBatch, topic: str | None, now_ms: int, record_bytes_max: int, first: int) -> Rows:
    present = {name: _decoded(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    records = {name: present[name] for name in ("key", "value", "headers", "timestamp") if name in present}
    columns = normalise(pa.record_batch(records), now_ms)
    sizes = _sizes(columns)
    _check_sizes(sizes, record_bytes_max, first)
    topics, codes = ([topic], None) if topic is not None else _topics(present["topic"], first)
    partitions = _partitions(present["partition"], first) if "partition" in present else None
    return Rows(_rebuilt(columns, present), sizes, topics, codes, partitions)


def _decoded(column: pa.Array) -> pa.Array:
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def _rebuilt(columns: Columns, present: dict[str, pa.Array]) -> pa.RecordBatch:
    """The normalised columns, so that nothing is converted twice."""
    parts = {"timestamp": pa.array(columns.timestamp, pa.int64())}
    if "key" in present:
        parts["key"] = columns.key
    if "value" in present:
        parts["value"] = columns.value
    if len(columns.header_key):
        parts["headers"] = present["headers"].cast(HEADERS)
    return pa.record_batch(parts)


def _sizes(columns: Columns) -> Longs:
    """What each row takes in a batch, at most."""
    key, value = sizes_in(columns.key), sizes_in(columns.value)
    sizes = np.maximum(key, 0) + np.maximum(value, 0)
    sizes += _varint_sizes(key) + _varint_sizes(value) + _varint_sizes(columns.header_count)
    span = int(columns.timestamp.max()) - int(columns.timestamp.min())
    time_size = max(size_of_varint(span), _TIME_DELTA_SIZE_MIN)
    sizes += _ATTRIBUTES_SIZE + time_size + size_of_varint(columns.count)
    if len(columns.header_key):
        sizes += _header_sizes(columns)
    return sizes + _varint_sizes(sizes)


def _header_sizes(columns: Columns) -> Longs:
    key, value = sizes_in(columns.header_key), sizes_in(columns.header_value)
    each = _varint_sizes(key) + _varint_sizes(value) + key + np.maximum(value, 0)
    edges = np.zeros(each.size + 1, np.int64)
    np.cumsum(each, out=edges[1:])
    ends = np.cumsum(columns.header_count)
    sizes: Longs = edges[ends] - edges[ends - columns.header_count]
    return sizes


def _varint_sizes(values: Longs) -> Longs:
    return sizes_of(zigzag(values))


def _check_sizes(sizes: Longs, record_bytes_max: int, first: int) -> None:
    largest = int(sizes.argmax())
    size = int(sizes[largest]) + HEADER_SIZE
    if size > record_bytes_max:
        raise UnusableColumns(
            f"Row {first + largest} takes {size} bytes, more than the {record_bytes_max} that may be sent: "
            "see max.request.size and buffer.memory"
        )


def _topics(column: pa.Array, first: int) -> tuple[list[str], Codes | None]:
    """The topics, each once, and which of them each row has."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise UnusableColumns(f"Column topic is {column.type}; it must be string")
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    if column.null_count:
        row = first + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise UnusableColumns(f"Column topic is null in row {row}, and the writer was given no topic")
    codes = column.indices.to_numpy().astype(np.int32)
    used = np.unique(codes)
    names = column.dictionary.cast(pa.string()).take(pa.array(used)).to_pylist()
    if len(names) == 1:
        return names, None
    return names, np.searchsorted(used, codes).astype(np.int32)


def _partitions(column: pa.Array, first: int) -> Codes | None:
    if column.null_count == len(column):
        return None
    if not pa.types.is_integer(column.type):
        raise UnusableColumns(f"Column partition is {column.type}; it must be an integer")
    wide = column.cast(pa.int64(), safe=False).fill_null(ANY_PARTITION).to_numpy()
    impossible = (wide > _INT32_MAX) | (wide < 0) & column.is_valid().to_numpy(zero_copy_only=False)
    if impossible.any():
        row = int(impossible.argmax())
        raise UnusableColumns(
            f"Column partition has {wide[row]} in row {first + row}; null lets the partitioner choose"
        )
    partitions: Codes = wide.astype(np.int32)
    return partitions
