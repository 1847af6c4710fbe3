"""What Spark calls to write: every task sends its rows and answers once the brokers have all of them.

A task that is retried writes its rows again: at least once is what a sink without transactions can promise.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.spark.errors import Plainly
from headrace.spark.options import SinkOptions
from headrace.spark.session import worker_sessions
from headrace.spark.sink_columns import written_part

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """How many rows a task has written."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """For `df.write`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Write the rows of a task."""
        return write_rows(iterator, self._options)


class StreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Write the rows of a task of one batch."""
        return write_rows(iterator, self._options)


def write_rows(batches: "Iterable[pa.RecordBatch]", options: SinkOptions) -> Written:
    """Write all rows in order on the connections that this worker has; DeliveryFailed if one cannot be."""
    sessions = worker_sessions()
    with Plainly():
        try:
            session = sessions.get(options.properties)
            return Written(session.run(_written(session.cluster, iter(batches), options)))
        except BaseException:
            # Whatever is under way then is of no use to the next task.
            sessions.drop(options.properties)
            raise


async def _written(cluster: Cluster, batches: "Iterator[pa.RecordBatch]", options: SinkOptions) -> int:
    """How many rows were written. Spark's next rows are waited for on a thread, so that sending goes on."""
    rows = 0
    async with ColumnWriter(cluster, topic=options.topic) as writer:
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            if batch.num_rows:
                await writer.write(written_part(batch, options))
                rows += batch.num_rows
    return rows
