"""Arrow columns into topics: the writer that users hold.

Rows are checked in full before any of them is taken, go to the partition of their key, and are sent in the
background. What a writer took is either acknowledged or reported as failed, exactly once, and counted.
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headrace.client.batch_encoding import Encoder
from headrace.client.batch_group import BatchGroup
from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.delivery import (
    DeliveriesFailed,
    DeliveryReport,
    Failure,
    FailureList,
    WriteBlocked,
    WriterEnded,
)
from headrace.client.errors import BrokerRefused, ClientClosed
from headrace.client.pending_batch import PendingBatch
from headrace.client.row_pipeline import RowPipeline
from headrace.client.send_queues import SendQueues
from headrace.client.sender import Sender
from headrace.client.topic_wait import await_partitions
from headrace.client.write_columns import Rows, checked_rows
from headrace.errors import HeadraceError
from headrace.ports import Clock
from headrace.system.clock import SystemClock

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnWriter:
    """Writes Arrow record batches and tables to topics. Use it as an async context manager:

        async with Cluster(config) as cluster, ColumnWriter(cluster, topic="events") as writer:
            await writer.write(pa.record_batch({"key": keys, "value": values}))

    Columns are `key` and `value` (binary or string), `headers` (list of struct<key, value>), `timestamp`,
    `topic` and `partition`; `value` or `key` has to be there. A null timestamp means now, a null partition
    that the key decides. The writer's `topic`, if there is one, goes before the column. What a reader adds
    (`offset`, `timestamp_type`) is passed over.

    Leaving the context flushes; leaving it with an error gives up what was not sent yet. `config` has the
    producer's settings, those of the cluster unless given.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        topic: str | None = None,
        config: ClientConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._config = config or cluster.config
        self._clock: Clock = clock or SystemClock()
        self._loop = asyncio.get_running_loop()
        self._report = DeliveryReport()
        self._failures = FailureList()
        self._groups: list[BatchGroup] = [BatchGroup()]
        self._turn = asyncio.Lock()
        self._linger: asyncio.TimerHandle | None = None
        self._lingering: asyncio.Task[None] | None = None
        self._end: HeadraceError | None = None
        self._is_closed = False
        encoder = Encoder(self._config)
        self._queues = SendQueues(self._config, cluster.entropy, self, encoder.split)
        self._sender = Sender(cluster, self._config, self._queues, self._on_fatal)
        self._pipeline = RowPipeline(
            self._config,
            cluster.entropy,
            encoder,
            self._queues,
            enqueue=self._enqueue,
            is_available=self._sender.is_available,
        )

    @property
    def report(self) -> DeliveryReport:
        """What became of the rows so far: counts, and the offsets by partition."""
        return self._report

    async def __aenter__(self) -> "ColumnWriter":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self.abort()

    async def write(self, columns: "pa.RecordBatch | pa.Table") -> None:
        """Take all rows over, to be sent in the background; waits only while `buffer.memory` is used up.

        Before any row is taken: UnusableColumns if one cannot be sent, UnknownTopics if a topic is not there,
        DeliveriesFailed if rows of earlier writes failed and nobody was told. WriteBlocked if there is no
        room for longer than `max.block.ms`; its `rows_taken` will be sent nevertheless. If this call is
        cancelled, `report.accepted` says how many rows were taken in all."""
        self._require_usable()
        config = self._config
        rows = checked_rows(
            columns,
            topic=self._topic,
            now_ms=self._clock.now_ms(),
            record_bytes_max=min(config.max_request_size, config.buffer_memory),
        )
        async with self._turn:
            self._require_usable()
            self._raise_failures()
            await await_partitions(self._cluster, rows, config.max_block_ms)
            await self._take(rows)
        if config.linger_ms == 0:
            await self._close_batches(everything=True)

    async def flush(self) -> None:
        """Send everything and wait until the fate of every row taken so far is known.

        DeliveriesFailed if any failed since this was last said: it names topics, partitions, causes, counts.
        """
        self._require_usable()
        await self._close_batches(everything=True)
        await self._settled()
        self._require_usable()
        self._raise_failures()

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush, and stop. After `timeout_s` seconds what is left is given up, and reported as failed."""
        if self._is_closed:
            return
        try:
            if self._end is None:
                async with asyncio.timeout(timeout_s):
                    await self._close_batches(everything=True)
                    await self._settled()
        except TimeoutError:
            self._give_up(f"the writer was closed, and {timeout_s} s were not enough to send them")
        except BaseException:
            await self.abort()
            raise
        await self._stop()
        self._raise_failures()

    async def abort(self) -> None:
        """Stop at once. Rows that are not acknowledged yet are given up, and counted as failed."""
        if not self._is_closed:
            self._give_up("the writer was closed before they were acknowledged")
            await self._stop()

    # What becomes of batches

    def on_acknowledged(self, batch: PendingBatch, offset_base: int) -> None:
        """A broker has a batch."""
        self._report.on_acknowledged(batch.partition, batch.count, offset_base)
        self._on_done(batch)

    def on_failed(self, batch: PendingBatch, failure: Failure) -> None:
        """A batch was given up."""
        self._report.on_failed(batch.partition, batch.count)
        self._failures.add(failure)
        self._on_done(batch)

    def on_split(self, batch: PendingBatch, parts: list[PendingBatch]) -> None:
        """A batch was too large, and others take its place."""
        for part in parts:
            part.group = batch.group
        if batch.group is not None:
            batch.group.add(len(parts) - 1)
        self._pipeline.memory.take(sum(part.size for part in parts) - batch.size)

    def _on_done(self, batch: PendingBatch) -> None:
        if batch.group is not None:
            batch.group.add(-1)
        self._pipeline.memory.take(-batch.size)

    def _enqueue(self, batches: list[PendingBatch]) -> None:
        group = self._groups[-1]
        for batch in batches:
            batch.group = group
        group.add(len(batches))
        self._queues.add(batches)
        self._sender.wake()

    # The way in

    async def _take(self, rows: list[Rows]) -> None:
        taken = 0
        try:
            for each in rows:
                for piece in self._pipeline.pieces(each):
                    await self._guarded(self._pipeline.make_room(piece))
                    await await_partitions(self._cluster, [piece], self._config.max_block_ms)
                    self._require_usable()
                    self._pipeline.add(piece, self._cluster.metadata)
                    self._report.accepted += piece.count
                    taken += piece.count
                    await self._guarded(self._pipeline.close_full_batches())
                    # The loop does other things between pieces, sending for one.
                    await asyncio.sleep(0)
        except WriteBlocked as error:
            raise WriteBlocked(f"{error.reason} ({taken} rows of this write were taken)", taken) from None
        finally:
            self._arm_linger()

    async def _close_batches(self, *, everything: bool) -> None:
        async with self._turn:
            await self._guarded(self._pipeline.close_batches(everything=everything))
            await self._guarded(self._pipeline.encoded())
            self._arm_linger()

    async def _guarded(self, step: Coroutine[Any, Any, None]) -> None:
        """Rows are in nobody's hands when a step fails that should not: the writer then ends."""
        try:
            await step
        except HeadraceError:
            raise
        except Exception as error:
            self._on_fatal(HeadraceError(f"rows could not be encoded: {type(error).__name__}: {error}"))
            raise

    def _arm_linger(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        due_ms = self._pipeline.due_ms
        if due_ms is not None and not self._is_closed:
            self._linger = self._loop.call_at(due_ms / 1000, self._on_linger)

    def _on_linger(self) -> None:
        self._linger = None
        if self._lingering is None or self._lingering.done():
            self._lingering = self._loop.create_task(self._close_due())

    async def _close_due(self) -> None:
        try:
            await self._close_batches(everything=False)
        except HeadraceError as error:
            self._on_fatal(error)

    # Endings

    async def _settled(self) -> None:
        """Until every batch that there is now is acknowledged or given up."""
        groups = self._groups
        self._groups = [*groups, BatchGroup()]
        for group in groups:
            await group.wait()
        await self._sender.sent()
        self._groups = [group for group in self._groups if group not in groups]

    def _require_usable(self) -> None:
        if self._end is not None:
            self._raise_failures()
            raise WriterEnded(f"the writer ended: {self._end}") from self._end
        if self._is_closed:
            raise ClientClosed("the writer is closed; it takes no more rows")

    def _raise_failures(self) -> None:
        if self._failures:
            report = self._report
            raise DeliveriesFailed(
                self._failures.take(), report.acknowledged, report.failed, report.pending
            ) from self._end

    def _on_fatal(self, error: HeadraceError) -> None:
        if self._end is None and not self._is_closed:
            self._end = error
            self._give_up(str(error), error.code if isinstance(error, BrokerRefused) else None)

    def _give_up(self, reason: str, code: int | None = None) -> None:
        self._queues.fail_all(reason, code)
        for partition, rows in self._pipeline.rows_given_up().items():
            self._report.on_failed(partition, rows)
            self._failures.add(Failure(partition, rows, reason, code))

    async def _stop(self) -> None:
        self._is_closed = True
        if self._linger is not None:
            self._linger.cancel()
        if self._lingering is not None and not self._lingering.done():
            self._lingering.cancel()
            await asyncio.wait([self._lingering])
        await self._sender.close()
        await self._pipeline.close()
