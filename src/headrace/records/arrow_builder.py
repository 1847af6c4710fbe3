"""Arrow columns to record batches, with no Python object per record.

Sizes of all records are computed first, then the small integers before, between and after keys and values are
written for all records at once, and Arrow joins them with keys and values into the records of many batches.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.ports import BytesLike
from headrace.records.arrow_input import Columns, UnusableColumns, normalise, pieces, sizes_in
from headrace.records.arrow_varints import Longs, Words, sizes_of, write_varints, zigzag
from headrace.records.batch import (
    ATTRIBUTES_FIELD,
    CRC,
    CRC_FIELD,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    increment_sequence,
)
from headrace.records.checksum import crc32c
from headrace.records.compression import Compression, compress
from headrace.records.varint import size_of_varint
from headrace.types import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)

# Just below what a broker takes by default.
BATCH_BYTES_MAX: Final = 1024 * 1024

# Records are encoded in runs of about this many bytes, which bounds what is held beside the columns.
_RUN_BYTES: Final = 4 * 1024 * 1024
_BATCH_BYTES_LIMIT: Final = 2**31 - 1
_ATTRIBUTES_SIZE: Final = 1
_EMPTY: Final = pa.scalar(b"", pa.binary())
_NO_HEADERS: Final = pa.scalar(b"\x00", pa.binary())


class _Varints(NamedTuple):
    """Integers of all records, ready to be written, and how many bytes each takes."""

    raw: Words
    sizes: Longs

    def rows(self, rows: slice) -> "_Varints":
        return _Varints(self.raw[rows], self.sizes[rows])


@dataclass(slots=True)
class _Sized:
    """Columns with what each record takes, but for the fields that depend on its place in a batch."""

    columns: Columns
    key_size: _Varints
    value_size: _Varints
    header_count: _Varints
    headers: pa.Array | None
    fixed: Longs


def build_batches(
    columns: pa.RecordBatch | pa.Table,
    *,
    base_offset: int = 0,
    batch_bytes_max: int = BATCH_BYTES_MAX,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    timestamp_default: int = NO_TIMESTAMP,
    log_append_time: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> Iterator[bytes]:
    """Batches of the rows, in order, each of at most `batch_bytes_max` bytes before compression.

    Columns are `key`, `value`, `headers` and `timestamp`, all of them optional; `offset` and
    `timestamp_type`, which a reader returns, are passed over, since offsets count up from `base_offset`. A
    record that is larger than `batch_bytes_max` gets a batch of its own."""
    timestamp_flag = 0 if log_append_time is None else TIMESTAMP_TYPE_FLAG
    attributes = compression | timestamp_flag | (TRANSACTIONAL_FLAG if transactional else 0)
    room = min(batch_bytes_max, _BATCH_BYTES_LIMIT) - HEADER_SIZE
    for piece in pieces(columns):
        sized = _measure(normalise(piece, timestamp_default))
        for count, base_timestamp, max_timestamp, records in _payloads(sized, room):
            payload = compress(compression, records, level)
            header = HEADER.pack(
                base_offset,
                HEADER_SIZE - LOG_OVERHEAD + len(payload),
                leader_epoch,
                MAGIC,
                0,
                attributes,
                count - 1,
                base_timestamp,
                max_timestamp if log_append_time is None else log_append_time,
                producer_id,
                producer_epoch,
                base_sequence,
                count,
            )
            yield _checksummed(header, payload)
            base_offset += count
            if base_sequence != NO_SEQUENCE:
                base_sequence = increment_sequence(base_sequence, count)


def _checksummed(header: bytes, payload: BytesLike) -> bytes:
    checksum = CRC.pack(crc32c(payload, crc32c(header[ATTRIBUTES_FIELD:])))
    return b"".join((header[:CRC_FIELD], checksum, header[ATTRIBUTES_FIELD:], payload))


def _measure(columns: Columns) -> _Sized:
    key_size, value_size = sizes_in(columns.key), sizes_in(columns.value)
    key, value, header_count = _varints(key_size), _varints(value_size), _varints(columns.header_count)
    fixed = key.sizes + value.sizes + header_count.sizes + _ATTRIBUTES_SIZE
    fixed += np.maximum(key_size, 0) + np.maximum(value_size, 0)
    headers = _encode_headers(columns)
    if headers is not None:
        fixed += sizes_in(headers)
    return _Sized(columns, key, value, header_count, headers, fixed)


def _encode_headers(columns: Columns) -> pa.Array | None:
    """The encoded headers of each record, without their count; None when no record has any."""
    if len(columns.header_key) == 0:
        return None
    each = _join(
        _written(_varints(sizes_in(columns.header_key))),
        columns.header_key,
        _written(_varints(sizes_in(columns.header_value))),
        columns.header_value,
    )
    edges = np.zeros(columns.count + 1, np.int64)
    np.cumsum(columns.header_count, out=edges[1:])
    ends = np.frombuffer(each.buffers()[1], np.int32)[edges]
    return pa.Array.from_buffers(
        pa.binary(), columns.count, [None, pa.py_buffer(ends), each.buffers()[2]], null_count=0
    )


def encoded_records(columns: pa.RecordBatch, firsts: Longs) -> Iterator[tuple[int, int, int, memoryview]]:
    """The records of the batches that begin at the rows `firsts`, whose last entry is the number of rows.

    Each batch comes as its number of records, its first and its largest timestamp and its records, which are
    a view of a larger buffer. The columns are those of `build_batches`; they are one piece of bounded size.
    """
    sized = _measure(normalise(columns, NO_TIMESTAMP))
    yield from _in_runs(sized, firsts, sized.fixed)


def _payloads(sized: _Sized, room: int) -> Iterator[tuple[int, int, int, memoryview]]:
    bounds = _size_bounds(sized, room)
    yield from _in_runs(sized, _cut(bounds, room), bounds)


def _in_runs(sized: _Sized, firsts: Longs, bounds: Longs) -> Iterator[tuple[int, int, int, memoryview]]:
    """Each batch as its number of records, its first and its largest timestamp and its encoded records."""
    run_of_batch = (np.cumsum(np.add.reduceat(bounds, firsts[:-1])) - 1) // _RUN_BYTES
    starts = np.flatnonzero(np.diff(run_of_batch, prepend=-1)).tolist()
    for start, stop in pairwise([*starts, firsts.size - 1]):
        run = firsts[start : stop + 1]
        records, ends = _encode(sized, run)
        timestamp = sized.columns.timestamp[: run[-1]]
        yield from zip(
            np.diff(run).tolist(),
            timestamp[run[:-1]].tolist(),
            np.maximum.reduceat(timestamp, run[:-1]).tolist(),
            [records[begin:end] for begin, end in pairwise([0, *ends.tolist()])],
            strict=True,
        )


def _size_bounds(sized: _Sized, room: int) -> Longs:
    """What each record takes at most, wherever in a batch it comes to lie."""
    count_max = min(sized.columns.count, max(room // (int(sized.fixed.min()) + 3), 1))
    bounds = sized.fixed + _delta_sizes(sized.columns.timestamp, count_max)
    bounds += size_of_varint(count_max)
    bounds += _varints(bounds).sizes
    if bounds.max() > _BATCH_BYTES_LIMIT - HEADER_SIZE:
        raise UnusableColumns(f"Row {int(bounds.argmax())} is larger than the 2 GiB that a batch can hold")
    return bounds


def _delta_sizes(timestamp: Longs, count_max: int) -> Longs:
    """What each timestamp's difference to that of up to `count_max` rows before it takes at most."""
    starts = np.arange(0, timestamp.size, count_max)
    low, high = np.minimum.reduceat(timestamp, starts), np.maximum.reduceat(timestamp, starts)
    low[1:], high[1:] = np.minimum(low[1:], low[:-1]), np.maximum(high[1:], high[:-1])
    span = np.minimum(high.view(np.uint64) - low.view(np.uint64), np.uint64(2**63 - 1))
    return np.repeat(sizes_of(span << np.uint64(1)), count_max)[: timestamp.size]


def _cut(bounds: Longs, room: int) -> Longs:
    """The first row of each batch, and the number of rows: as many rows per batch as surely fit."""
    total = np.cumsum(bounds).data
    firsts = [0]
    first = reached = 0
    while first < len(total):
        first = max(bisect_right(total, reached + room, first), first + 1)
        reached = total[first - 1]
        firsts.append(first)
    return np.array(firsts, np.int64)


def _encode(sized: _Sized, firsts: Longs) -> tuple[memoryview, Longs]:
    """The records of the batches that begin at `firsts`, in a row, and where each batch ends."""
    low, high = int(firsts[0]), int(firsts[-1])
    rows = slice(low, high)
    counts = np.diff(firsts)
    timestamp = sized.columns.timestamp
    delta = _varints(timestamp[rows] - np.repeat(timestamp[firsts[:-1]], counts))
    offset = _varints(np.arange(low, high) - np.repeat(firsts[:-1], counts))
    body = sized.fixed[rows] + delta.sizes + offset.sizes
    length = _varints(body)
    # The attributes come after the length; they are always 0, as the room left for them is.
    spaced = _Varints(length.raw, length.sizes + _ATTRIBUTES_SIZE)
    parts = [
        _written(spaced, delta, offset, sized.key_size.rows(rows)),
        sized.columns.key[rows],
        _written(sized.value_size.rows(rows)),
        sized.columns.value[rows],
    ]
    if sized.headers is None:
        parts.append(_NO_HEADERS)
    else:
        parts += (_written(sized.header_count.rows(rows)), sized.headers[rows])
    ends = np.cumsum(body + length.sizes)
    return memoryview(_join(*parts).buffers()[2]).cast("B"), ends[firsts[1:] - low - 1]


def _varints(values: Longs) -> _Varints:
    raw = zigzag(values)
    return _Varints(raw, sizes_of(raw))


def _written(*fields: _Varints) -> pa.Array:
    """A `binary` column of the fields' encodings, one after the other."""
    count = fields[0].raw.size
    edges = np.zeros(count + 1, np.int32)
    np.cumsum(sum((field.sizes for field in fields[1:]), fields[0].sizes), out=edges[1:])
    out = np.zeros(edges[-1], np.uint8)
    position = edges[:-1].astype(np.int64)
    for raw, sizes in fields:
        write_varints(out, position, raw)
        position += sizes
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(edges), pa.py_buffer(out)], null_count=0
    )


def _join(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The parts of each row concatenated, null being nothing."""
    return pc.binary_join_element_wise(*parts, _EMPTY, null_handling="skip")
