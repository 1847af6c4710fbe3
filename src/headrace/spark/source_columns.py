"""The records of the client in the columns and types that Spark expects, copying as little as it can."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.errors import RecordUnreadable
from headrace.types import TopicPartition

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_FIELDS: Final = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    pa.field("timestampType", pa.int32()),
)
_HEADERS: Final = pa.field("headers", pa.list_(pa.field("element", _HEADER)))
_PLAIN: Final = pa.schema(_FIELDS)
_WITH_HEADERS: Final = pa.schema([*_FIELDS, _HEADERS])


class SourceColumns:
    """Shapes the batches of one partition."""

    __slots__ = ("_constants", "_has_headers", "_partition", "schema")

    def __init__(self, partition: TopicPartition, *, has_headers: bool) -> None:
        self._partition = partition
        self._has_headers = has_headers
        self.schema = _WITH_HEADERS if has_headers else _PLAIN
        self._constants = self._repeat(0)

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as Spark wants it."""
        topic, partition = self._constant_columns(batch.num_rows)
        columns = [
            batch.column("key"),
            batch.column("value"),
            topic,
            partition,
            batch.column("offset"),
            self._microseconds(batch),
            batch.column("timestamp_type"),
        ]
        if self._has_headers:
            columns.append(_headers(batch.column("headers")))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _constant_columns(self, count: int) -> tuple[pa.Array, pa.Array]:
        """Columns that say the same in every row are made once, as long as the longest batch."""
        if len(self._constants[0]) < count:
            self._constants = self._repeat(count)
        topic, partition = self._constants
        return topic.slice(0, count), partition.slice(0, count)

    def _repeat(self, count: int) -> tuple[pa.Array, pa.Array]:
        topic, partition = self._partition
        return pa.repeat(topic, count), pa.repeat(pa.scalar(partition, pa.int32()), count)

    def _microseconds(self, batch: pa.RecordBatch) -> pa.Array:
        try:
            return batch.column("timestamp").cast(_FIELDS[5].type)
        except pa.ArrowInvalid:
            times = pc.abs(batch.column("timestamp").cast(pa.int64()))
            row = pc.index(times, pc.max(times)).as_py()
            offset, time = batch.column("offset")[row].as_py(), times[row].as_py()
            raise RecordUnreadable(
                f"{self._partition}: the record at offset {offset} has the timestamp {time}, which is too "
                "far away for a timestamp of Spark; did its producer count in another unit than milliseconds?"
            ) from None


def _headers(column: pa.Array) -> pa.Array:
    """As Spark's own source has it: a record without headers has null, not an empty list."""
    is_empty = pc.equal(pc.list_value_length(column), 0)
    empty_count = pc.sum(is_empty).as_py() or 0
    if empty_count == len(column):
        return pa.nulls(len(column), _HEADERS.type)
    found = column.cast(_HEADERS.type)
    return pc.if_else(is_empty, pa.scalar(None, _HEADERS.type), found) if empty_count else found
