"""A task's side of reading: one range of one partition, as Arrow batches in Spark's columns."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.errors import PositionOutOfRange
from headrace.spark.errors import Plainly, ReadStalled
from headrace.spark.losses import Losses
from headrace.spark.options import SourceOptions
from headrace.spark.read_ahead import read_ahead
from headrace.spark.session import worker_sessions
from headrace.spark.source_columns import SourceColumns
from headrace.spark.work import Work
from headrace.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

#: What a task may hold of records that Spark has not taken yet, before they are decoded.
_PREFETCH_BYTES: Final = 16 * 1024 * 1024


def read_work(work: InputPartition, options: SourceOptions) -> "Iterator[pa.RecordBatch]":
    """The records of a piece of work, on the connections that this worker has already."""
    if not isinstance(work, Work):
        # Spark asks for one piece of nothing where a plan has no pieces.
        return
    sessions = worker_sessions()
    with Plainly():
        try:
            session = sessions.get(options.properties)
            yield from read_ahead(session, _Reading(session.cluster, work, options).batches())
        except BaseException:
            # Also where Spark wants no more: whatever is under way then is of no use to the next task.
            sessions.drop(options.properties)
            raise


class _Reading:
    """One pass over a piece of work."""

    __slots__ = ("_cluster", "_end", "_losses", "_options", "_partition", "_position", "_topic_id")

    def __init__(self, cluster: Cluster, work: Work, options: SourceOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._losses = Losses(options.fails_on_data_loss)
        self._partition = TopicPartition(work.topic, work.partition)
        self._position = work.start
        self._end = work.end
        self._topic_id = work.topic_id

    async def batches(self) -> "AsyncGenerator[pa.RecordBatch, None]":
        """All records in order. What was deleted since the work was planned is reported as a loss."""
        shaper = SourceColumns(self._partition, has_headers=self._options.has_headers)
        while self._position < self._end:
            try:
                async with self._reader() as reader:
                    while (columns := await self._next(reader)) is not None:
                        self._position = columns.end
                        if columns.batch.num_rows:
                            yield shaper.shape(columns.batch)
                return
            except PositionOutOfRange as gone:
                self._losses.report(str(gone))
                self._position = gone.earliest if self._position < gone.earliest else self._end

    def _reader(self) -> ColumnReader:
        self._refresh_if_older()
        return ColumnReader(
            self._cluster,
            {self._partition: self._position},
            until={self._partition: self._end},
            prefetch_bytes=_PREFETCH_BYTES,
            expected_ids=None if self._topic_id is None else {self._partition.topic: self._topic_id},
        )

    def _refresh_if_older(self) -> None:
        """A worker may have been idle since before the topic was recreated, or was given more partitions."""
        topic, partition = self._partition
        known = self._cluster.metadata.topics.get(topic)
        if known is None:
            return
        if partition not in known.partitions or self._topic_id not in (None, known.topic_id):
            self._cluster.stale(topic)

    async def _next(self, reader: ColumnReader) -> Columns | None:
        waited_ms = self._options.poll_timeout_ms
        try:
            async with asyncio.timeout(waited_ms / 1000):
                return await reader.next()
        except TimeoutError:
            raise ReadStalled(self._partition, self._position, self._end, waited_ms) from None
