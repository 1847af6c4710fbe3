"""Columns that a user hands in, brought into the shape that batches are built from.

Types that hold the same thing are converted by Arrow; what cannot be meant is refused by the column's name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import HeadraceError
from headrace.records.arrow_headers import HEADERS
from headrace.records.arrow_varints import Longs
from headrace.types import NO_TIMESTAMP

# Arrow's plain binary columns have 32-bit offsets; half of that leaves room for what encoding adds.
PIECE_BYTES_MAX: Final = 2**30

_BYTES_KINDS: Final = (
    pa.types.is_binary,
    pa.types.is_string,
    pa.types.is_large_binary,
    pa.types.is_large_string,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
    pa.types.is_string_view,
    pa.types.is_null,
)
_COLUMNS: Final = frozenset({"key", "value", "headers", "timestamp", "timestamp_type", "offset"})


class UnusableColumns(HeadraceError):
    """Columns that no record can be built from."""


@dataclass(slots=True)
class Columns:
    """The parts of `count` records: binary columns, times in ms, and headers one after the other."""

    count: int
    timestamp: Longs
    key: pa.Array
    value: pa.Array
    header_count: Longs
    header_key: pa.Array
    header_value: pa.Array


def pieces(columns: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows in as few record batches as plain binary columns can hold."""
    unknown = set(columns.schema.names) - _COLUMNS
    if unknown or len(set(columns.schema.names)) < len(columns.schema.names):
        names = ", ".join(columns.schema.names)
        raise UnusableColumns(
            f"Expected columns out of {', '.join(sorted(_COLUMNS))}, each once; got {names}"
        )
    if isinstance(columns, pa.Table):
        if columns.nbytes <= PIECE_BYTES_MAX:
            columns = columns.combine_chunks()
        found = columns.to_batches()
    else:
        found = [columns]
    for batch in found:
        yield from _halved(batch)


def _halved(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows == 0:
        return
    if batch.nbytes <= PIECE_BYTES_MAX or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _halved(batch.slice(0, half))
    yield from _halved(batch.slice(half))


def normalise(piece: pa.RecordBatch, timestamp_default: int) -> Columns:
    """The parts of the records. Columns that are missing are null; a null time is `timestamp_default`."""
    count = piece.num_rows
    present = dict(zip(piece.schema.names, piece.columns, strict=True))
    lists = _cast("headers", present.get("headers", pa.nulls(count)), HEADERS)
    entries = lists.flatten()
    header_keys = entries.field("key")
    if entries.null_count or header_keys.null_count:
        raise UnusableColumns("Column headers has a header without a key")
    return Columns(
        count=count,
        timestamp=_times(present.get("timestamp", pa.nulls(count, pa.int64())), timestamp_default),
        key=_binary("key", present.get("key", pa.nulls(count))),
        value=_binary("value", present.get("value", pa.nulls(count))),
        header_count=pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64),
        header_key=header_keys.cast(pa.binary()),
        header_value=entries.field("value"),
    )


def sizes_in(column: pa.Array) -> Longs:
    """How long each entry of a `binary` column is, -1 for null."""
    edges = np.frombuffer(column.buffers()[1], np.int32, column.offset + len(column) + 1)[column.offset :]
    sizes = np.diff(edges).astype(np.int64)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return sizes


def _binary(name: str, column: pa.Array) -> pa.Array:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_kind(kind) for is_kind in _BYTES_KINDS):
        raise UnusableColumns(f"Column {name} is {column.type}; it must be binary or string")
    return _cast(name, column, pa.binary())


def _times(column: pa.Array, default: int) -> Longs:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", tz=kind.tz), safe=False).view(pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise UnusableColumns(f"Column timestamp is {kind}; it must be a timestamp, or an integer of ms")
    times: Longs = _cast("timestamp", column, pa.int64()).fill_null(default).to_numpy()
    impossible = (times < 0) & (times != NO_TIMESTAMP)
    if impossible.any():
        row = int(impossible.argmax())
        raise UnusableColumns(f"Column timestamp has {times[row]} ms in row {row}; times are not negative")
    return times


def _cast(name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return column.cast(kind)
    except pa.ArrowException as error:
        raise UnusableColumns(f"Column {name} is {column.type} and cannot be {kind}: {error}") from error
