"""What Spark calls to read: to plan on the driver, and to read in tasks. Readers are pickled to get there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from headrace.spark.driver import Driver
from headrace.spark.errors import Plainly
from headrace.spark.offsets import Offsets
from headrace.spark.options import SourceOptions
from headrace.spark.session import Session
from headrace.spark.stream_progress import StreamProgress
from headrace.spark.work import works_of

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Reads what topics hold at the moment of planning."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """One piece of work for each task."""
        with Plainly():
            session = Session(self._options.properties)
            try:
                return works_of(session.run(Driver(session.cluster, self._options).plan_batch()))
            finally:
                session.close()

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of one piece of work."""
        # The driver plans and never reads: it starts sooner without what reading takes.
        from headrace.spark.tasks import read_work

        return read_work(partition, self._options)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads topics batch by batch, as the engine's triggers ask for it."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._opened: StreamProgress | None = None

    def __reduce__(self) -> tuple[type["StreamReader"], tuple[SourceOptions]]:
        """Only what was asked for travels to the workers; connections stay where they are."""
        return StreamReader, (self._options,)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where a new query begins."""
        with Plainly():
            return self._progress.first().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """What `latestOffset` is given unless the trigger wants everything.

        Spark knows no limit that has both bounds; whichever it hands back stands for all that options say.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where the next batch ends; at its start if there is nothing to do."""
        is_limited = not isinstance(limit, ReadAllAvailable)
        with Plainly():
            found = self._progress.next_end(
                Offsets.from_json(start),
                limit=self._options.max_offsets_per_trigger if is_limited else None,
                may_wait=is_limited,
            )
            return found.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's name
        """The end of all partitions, for the query's progress."""
        latest = self._progress.latest
        return None if latest is None else latest.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Take note of where everything ends now: that is where the query will end."""
        with Plainly():
            self._progress.aim_at_present()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One piece of work for each task of a batch."""
        with Plainly():
            return works_of(self._progress.plan(Offsets.from_json(start), Offsets.from_json(end)))

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of one piece of work."""
        # The driver plans and never reads: it starts sooner without what reading takes.
        from headrace.spark.tasks import read_work

        return read_work(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask for anything before `end` again."""
        with Plainly():
            self._progress.processed(Offsets.from_json(end))

    def stop(self) -> None:
        """The query has ended."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _progress(self) -> StreamProgress:
        """Opened when it is first needed: Spark also makes readers that it only sends to workers."""
        if self._opened is None:
            self._opened = StreamProgress(self._options)
        return self._opened
