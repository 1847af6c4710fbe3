"""Fetched batches to Arrow columns: aborted and unwanted records left out, no Python object per record."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.client.errors import CorruptRecords
from headrace.client.fetched import Fetched
from headrace.errors import KafkaError
from headrace.records.aborted import committed
from headrace.records.arrow_reader import read_columns, schema, stream_columns
from headrace.records.batch import Batch

#: Records are decoded in pieces of this many bytes, decompressed, so that nobody else waits for long.
PIECE_BYTES: Final = 4 * 1024 * 1024

_TOPIC_CHEAP: Final = pa.dictionary(pa.int8(), pa.string())


@dataclass(slots=True, frozen=True)
class Columns:
    """Records of one partition. Their offsets lie between `start` and `end`, the position after them.

    `batch` has the columns offset, timestamp, timestamp_type, key, value, headers, partition and topic.
    """

    topic: str
    partition: int
    start: int
    end: int
    batch: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.batch.num_rows)


def columns_schema(*, views: bool = False, plain: bool = False) -> pa.Schema:
    """The columns of what a reader hands out. `plain` has topics as strings rather than as a dictionary."""
    found = schema(views=views).append(pa.field("partition", pa.int32()))
    return found.append(pa.field("topic", pa.string() if plain else _TOPIC_CHEAP))


class ColumnDecoder:
    """Makes columns of what was fetched."""

    __slots__ = ("_plain", "_schema", "_topics", "_views")

    def __init__(self, *, views: bool, plain: bool) -> None:
        self._views = views
        self._plain = plain
        self._schema = columns_schema(views=views, plain=plain)
        self._topics: dict[str, pa.Array] = {}

    def decode(self, fetched: Fetched) -> Iterator[Columns]:
        """The records in pieces, in order; one empty piece if there are none, so that the position moves on.

        CorruptRecords names the first batch that does not parse, after everything before it was handed out.
        """
        held: Columns | None = None
        damage: CorruptRecords | None = None
        try:
            for columns in self._pieces(fetched):
                if held is not None:
                    yield held
                held = columns
        except CorruptRecords as error:
            damage = error
        if damage is None:
            yield self._last(fetched, held)
            return
        if held is not None:
            yield held
        raise damage

    def _pieces(self, fetched: Fetched) -> Iterator[Columns]:
        wanted = self._wanted(fetched)
        start = fetched.start
        found = stream_columns(
            iter(wanted), start_offset=start, check_crcs=False, views=self._views, bytes_max=PIECE_BYTES
        )
        try:
            for batch in found:
                columns = self._columns(fetched, batch, start)
                if len(columns):
                    start = columns.end
                    yield columns
        except KafkaError:
            left = [each for each in wanted if each.next_offset > start]
            yield from self._one_by_one(fetched, left, start)

    def _wanted(self, fetched: Fetched) -> list[Batch]:
        found = committed(fetched.found, fetched.aborted) if fetched.aborted else iter(fetched.found)
        until = fetched.state.until
        return [
            batch for batch in found if not batch.is_control and (until is None or batch.base_offset < until)
        ]

    def _one_by_one(self, fetched: Fetched, wanted: list[Batch], start: int) -> Iterator[Columns]:
        """The slow way, which finds out which batch it is that does not parse."""
        for each in wanted:
            try:
                batch = read_columns([each], start_offset=start, check_crcs=False, views=self._views)
            except KafkaError as error:
                raise CorruptRecords(fetched.state.partition, each.base_offset, str(error)) from error
            columns = self._columns(fetched, batch, start)
            if len(columns):
                start = columns.end
                yield columns

    def _columns(self, fetched: Fetched, batch: pa.RecordBatch, start: int) -> Columns:
        offsets = batch.column(0).to_numpy()
        count = len(offsets)
        until = fetched.state.until
        if until is not None and count and offsets[-1] >= until:
            count = int(np.searchsorted(offsets, until))
            batch = batch.slice(0, count)
        end = int(offsets[count - 1]) + 1 if count else start
        topic, partition = fetched.state.partition
        return Columns(topic, partition, start, end, self._complete(batch, topic, partition))

    def _last(self, fetched: Fetched, held: Columns | None) -> Columns:
        """The last piece, whose end is behind what was left out after it."""
        until = fetched.state.until
        end = fetched.end if until is None else min(fetched.end, until)
        if held is not None:
            return replace(held, end=max(held.end, end))
        topic, partition = fetched.state.partition
        empty = pa.RecordBatch.from_pylist([], schema=self._schema)
        return Columns(topic, partition, fetched.start, max(fetched.start, end), empty)

    def _complete(self, batch: pa.RecordBatch, topic: str, partition: int) -> pa.RecordBatch:
        count = batch.num_rows
        partitions = pa.array(np.full(count, partition, np.int32))
        return pa.RecordBatch.from_arrays(
            [*batch.columns, partitions, self._topic_column(topic, count)], schema=self._schema
        )

    def _topic_column(self, topic: str, count: int) -> pa.Array:
        if self._plain:
            return pa.repeat(pa.scalar(topic, pa.string()), count)
        names = self._topics.get(topic)
        if names is None:
            names = self._topics[topic] = pa.array([topic], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int8)), names)
