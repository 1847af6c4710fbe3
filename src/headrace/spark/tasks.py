"""A task's side of reading: one range of one partition, as Arrow batches in Spark's columns."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.errors import PositionOutOfRange
from headrace.spark.driver import Plan
from headrace.spark.errors import Plainly, ReadStalled
from headrace.spark.losses import Losses
from headrace.spark.options import SourceOptions
from headrace.spark.session import Session, worker_sessions
from headrace.spark.source_columns import SourceColumns
from headrace.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Work(InputPartition):
    """What one task reads; it travels from the driver to a worker."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: UUID | None


def works_of(plan: Plan) -> list[InputPartition]:
    """One piece of work for each range."""
    found: list[InputPartition] = []
    for piece in plan.ranges:
        topic, partition = piece.partition
        found.append(Work(topic, partition, piece.start, piece.end, plan.ids.get(topic)))
    return found


def read_work(work: InputPartition, options: SourceOptions) -> "Iterator[pa.RecordBatch]":
    """The records of a piece of work, on the connections that this worker has already."""
    if not isinstance(work, Work):
        # Spark asks for one piece of nothing where a plan has no pieces.
        return
    sessions = worker_sessions()
    with Plainly():
        try:
            yield from _Reading(sessions.get(options.properties), work, options).batches()
        except BaseException:
            # Also where Spark wants no more: whatever is under way then is of no use to the next task.
            sessions.drop(options.properties)
            raise


class _Reading:
    """One pass over a piece of work."""

    __slots__ = ("_end", "_losses", "_options", "_partition", "_position", "_session", "_topic_id")

    def __init__(self, session: Session, work: Work, options: SourceOptions) -> None:
        self._session = session
        self._options = options
        self._losses = Losses(options.fails_on_data_loss)
        self._partition = TopicPartition(work.topic, work.partition)
        self._position = work.start
        self._end = work.end
        self._topic_id = work.topic_id

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """All records in order. What was deleted since the work was planned is reported as a loss."""
        shaper = SourceColumns(self._partition, has_headers=self._options.has_headers)
        while self._position < self._end:
            try:
                for columns in self._columns():
                    self._position = columns.end
                    if columns.batch.num_rows:
                        yield shaper.shape(columns.batch)
                return
            except PositionOutOfRange as gone:
                self._losses.report(str(gone))
                self._position = gone.earliest if self._position < gone.earliest else self._end

    def _columns(self) -> "Iterator[Columns]":
        run = self._session.run
        self._refresh_if_older()
        reader = ColumnReader(
            self._session.cluster,
            {self._partition: self._position},
            until={self._partition: self._end},
            expected_ids=None if self._topic_id is None else {self._partition.topic: self._topic_id},
        )
        run(reader.__aenter__())
        try:
            while (columns := run(self._next(reader))) is not None:
                yield columns
        finally:
            run(reader.__aexit__(None, None, None))

    def _refresh_if_older(self) -> None:
        """A worker may have been idle since before the topic was recreated, or was given more partitions."""
        cluster = self._session.cluster
        topic, partition = self._partition
        known = cluster.metadata.topics.get(topic)
        if known is None:
            return
        if partition not in known.partitions or self._topic_id not in (None, known.topic_id):
            cluster.stale(topic)

    async def _next(self, reader: ColumnReader) -> "Columns | None":
        waited_ms = self._options.poll_timeout_ms
        try:
            async with asyncio.timeout(waited_ms / 1000):
                return await reader.next()
        except TimeoutError:
            raise ReadStalled(self._partition, self._position, self._end, waited_ms) from None
