"""Record batches to Arrow columns, with no Python object per record.

Lengths and positions of all records are found and checked first; keys, values and headers are then copied by
Arrow in one go, or left where they are. What cannot be right raises a typed error that names the offset.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.ports import BytesLike
from headrace.records.aborted import committed
from headrace.records.arrow_arena import ARENA_BYTES_MAX, Payload, groups, lay_out, payloads
from headrace.records.arrow_binary import binary_pair, binary_view
from headrace.records.arrow_fields import Fields, read_fields
from headrace.records.arrow_headers import HEADERS, headers_column
from headrace.records.arrow_varints import Bytes
from headrace.records.batch import Batch, batches
from headrace.records.errors import CorruptBatch

STREAM_BYTES_MAX: Final = 64 * 1024 * 1024

Skip = Callable[[Batch], bool]


class ColumnsTooLarge(HeadraceError):
    """Records that do not fit into one Arrow record batch of plain binary columns."""


def _schema(binary: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("offset", pa.int64()),
            pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
            pa.field("timestamp_type", pa.int32()),
            pa.field("key", binary),
            pa.field("value", binary),
            pa.field("headers", HEADERS),
        ]
    )


_PLAIN: Final = _schema(pa.binary())
_VIEWS: Final = _schema(pa.binary_view())


def schema(*, views: bool = False) -> pa.Schema:
    """The columns a reader returns: those of Spark's Kafka source, timestamps being instants in UTC."""
    return _VIEWS if views else _PLAIN


def read_columns(
    source: BytesLike | Iterable[Batch],
    *,
    start_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] | None = None,
    check_crcs: bool = True,
    skip: Skip | None = None,
    views: bool = False,
) -> pa.RecordBatch:
    """All records of the complete batches in a buffer, or of given batches, as one Arrow record batch.

    Left out are control batches, records below `start_offset`, batches that `skip` says yes to and, where
    `aborted` lists a fetch's aborted transactions as (producer id, first offset), what belongs to them. With
    `views` keys and values are `binary_view` and longer ones stay in the source's bytes, which must then not
    change. ColumnsTooLarge above 2 GiB: use `stream_columns` there."""
    wanted = _select(source, start_offset, aborted, check_crcs, skip)
    found = groups(payloads(wanted), ARENA_BYTES_MAX)
    group = next(found, None)
    if group is None:
        return pa.RecordBatch.from_pylist([], schema=schema(views=views))
    if next(found, None) is not None:
        raise ColumnsTooLarge("The records exceed the 2 GiB that one Arrow record batch holds; stream them")
    return _columns(group, start_offset, views)


def stream_columns(
    source: BytesLike | Iterable[Batch],
    *,
    start_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] | None = None,
    check_crcs: bool = True,
    skip: Skip | None = None,
    views: bool = False,
    bytes_max: int = STREAM_BYTES_MAX,
) -> Iterator[pa.RecordBatch]:
    """As `read_columns`, in Arrow record batches of at most `bytes_max` bytes of records before decoding.

    A single batch larger than that makes an Arrow record batch of its own."""
    wanted = _select(source, start_offset, aborted, check_crcs, skip)
    for group in groups(payloads(wanted), min(bytes_max, ARENA_BYTES_MAX)):
        yield _columns(group, start_offset, views)


def _select(
    source: BytesLike | Iterable[Batch],
    start_offset: int | None,
    aborted: Iterable[tuple[int, int]] | None,
    check_crcs: bool,
    skip: Skip | None,
) -> Iterator[Batch]:
    found = batches(source) if isinstance(source, (bytes, bytearray, memoryview)) else iter(source)
    if check_crcs:
        found = _checked(found)
    if aborted is not None:
        found = committed(found, aborted)
    for batch in found:
        if batch.is_control or (start_offset is not None and batch.last_offset < start_offset):
            continue
        if skip is None or not skip(batch):
            yield batch


def _checked(found: Iterable[Batch]) -> Iterator[Batch]:
    for batch in found:
        if not batch.crc_is_valid():
            raise CorruptBatch(f"Batch at offset {batch.base_offset} does not match its checksum")
        yield batch


def _columns(group: list[Payload], start_offset: int | None, views: bool) -> pa.RecordBatch:
    arena = lay_out(group)
    fields = read_fields(arena)
    if start_offset is not None and any(batch.base_offset < start_offset for batch in arena.batches):
        fields = fields.keep(fields.offset >= start_offset)
    data = arena.data
    keys, values = _keys_and_values(data, fields, views)
    columns = schema(views=views)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(fields.offset),
            pa.array(fields.timestamp).view(columns.field("timestamp").type),
            pa.array(fields.timestamp_type),
            keys,
            values,
            headers_column(data, fields),
        ],
        schema=columns,
    )


def _keys_and_values(data: Bytes, fields: Fields, views: bool) -> tuple[pa.Array, pa.Array]:
    if views:
        return (
            binary_view(data, fields.key_start, fields.key_size),
            binary_view(data, fields.value_start, fields.value_size),
        )
    return binary_pair(data, fields.key_start, fields.key_size, fields.value_start, fields.value_size)
