"""From rows to batches that wait to be sent: routed, collected, encoded, within the memory there is.

Rows go through in the order in which they were written. Whoever is cancelled on the way loses nothing that
was taken: encoding goes on, and who comes next waits for it.
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headrace.client.batch_encoding import Encoder
from headrace.client.config import ClientConfig
from headrace.client.delivery import WriteBlocked
from headrace.client.metadata import Metadata, TopicMetadata
from headrace.client.open_rows import Cut, OpenRows
from headrace.client.partitioner import weights_of
from headrace.client.pending_batch import PendingBatch
from headrace.client.routing import Layout, Router
from headrace.client.send_queues import SendQueues
from headrace.client.write_columns import Rows
from headrace.client.write_memory import WriteMemory
from headrace.ports import Entropy
from headrace.types import TopicPartition

# Rows are taken in pieces of this size, a few milliseconds of work, between which the loop does other things.
_PIECE_BYTES_MAX: Final = 4 * 1024 * 1024
_PIECE_ROWS_MAX: Final = 16_384
_PIECES_IN_MEMORY_MIN: Final = 4
_GROWTH_UNTIL_NEXT_CUT: Final = 1.5

Enqueue = Callable[[list[PendingBatch]], None]


class RowPipeline:
    """The way of rows into `queues`. `enqueue` takes batches over; the memory of each is released by
    `memory.take(-batch.size)` when its fate is known. `is_available` says whether a broker keeps up."""

    def __init__(
        self,
        config: ClientConfig,
        entropy: Entropy,
        encoder: Encoder,
        queues: SendQueues,
        *,
        enqueue: Enqueue,
        is_available: Callable[[int], bool],
    ) -> None:
        batch_bytes = min(config.batch_size, config.max_request_size)
        self.memory = WriteMemory(config.buffer_memory)
        self._config = config
        self._encoder = encoder
        self._queues = queues
        self._enqueue = enqueue
        self._is_available = is_available
        self._loop = asyncio.get_running_loop()
        self._router = Router(batch_bytes, entropy.random, ignores_keys=config.partitioner_ignore_keys)
        self._open = OpenRows(batch_bytes)
        self._cut_at_bytes = float(batch_bytes)
        self._encoding: asyncio.Task[None] | None = None
        self._in_encoding: Cut | None = None

    def pieces(self, rows: Rows) -> Iterator[Rows]:
        """Rows in the portions in which they are taken."""
        bytes_max = min(_PIECE_BYTES_MAX, self._config.buffer_memory // _PIECES_IN_MEMORY_MIN)
        return rows.pieces(max(bytes_max, 1), _PIECE_ROWS_MAX)

    @property
    def due_ms(self) -> float | None:
        """When the oldest rows have waited long enough, by the loop's time; None if there are none."""
        written_ms = self._open.written_ms
        return None if written_ms is None else written_ms + self._config.linger_ms

    async def make_room(self, piece: Rows) -> None:
        """Wait until there is memory for rows; WriteBlocked if that takes longer than `max.block.ms`."""
        size = int(piece.sizes.sum())
        if not self.memory.has_room(size):
            await self._wait_for_memory(size)

    def add(self, piece: Rows, metadata: Metadata) -> None:
        """Take rows in. Their topics and the partitions that they ask for are in the metadata."""
        layouts = {topic: self._layout(metadata.topics[topic]) for topic in piece.topics}
        slots = self._router.route(piece, layouts)
        self._open.add(piece.batch, slots, piece.sizes, self._now_ms)
        self.memory.take(int(piece.sizes.sum()))

    async def close_full_batches(self) -> None:
        """Encode what is full or due, unless it is too little yet to look."""
        if self._open.bytes >= self._cut_at_bytes:
            await self.close_batches(everything=False)

    async def close_batches(self, *, everything: bool) -> None:
        """Have the rows of batches that are full or due, or all, encoded and passed on. It may be that this
        goes on after the call; `encoded` waits for it."""
        await self.encoded()
        now_ms = self._now_ms
        older_than_ms = math.inf if everything else now_ms - self._config.linger_ms
        cut = self._open.cut(older_than_ms=older_than_ms)
        self._cut_at_bytes = max(self._open.batch_bytes, self._open.bytes * _GROWTH_UNTIL_NEXT_CUT)
        if cut is None:
            return
        self._router.batches_closed(cut.closed_early)
        self._in_encoding = cut
        if self._encoder.is_quick(cut):
            self._pass_on(cut, self._encoder.encode_now(cut, self._router.slots))
        else:
            self._encoding = self._loop.create_task(self._encode(cut))

    async def encoded(self) -> None:
        """Until the batches before are passed on. Cancelling this does not cancel that."""
        if self._encoding is not None:
            await asyncio.shield(self._encoding)
            self._encoding = None

    def rows_given_up(self) -> dict[TopicPartition, int]:
        """Let go of all rows that are not in batches yet; how many there were, by partition."""
        counts = self._open.counts()
        cut, self._in_encoding = self._in_encoding, None
        size = self._open.bytes
        self._open.clear()
        if cut is not None:
            size += cut.bytes_estimated
            for place, slot in enumerate(cut.slots):
                rows = int(cut.firsts[place + 1] - cut.firsts[place])
                counts[slot] = counts.get(slot, 0) + rows
        self.memory.take(-size)
        return {self._router.slots[slot]: count for slot, count in counts.items()}

    async def close(self) -> None:
        """Let go of threads and of what they are doing."""
        if self._encoding is not None:
            self._encoding.cancel()
            await asyncio.wait([self._encoding])
            if not self._encoding.cancelled():
                # Whoever closes has given up on the rows, and on what went wrong with them.
                self._encoding.exception()
        self._encoder.close()

    @property
    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    async def _encode(self, cut: Cut) -> None:
        self._pass_on(cut, await self._encoder.encode(cut, self._router.slots))

    def _pass_on(self, cut: Cut, batches: list[PendingBatch]) -> None:
        if self._in_encoding is not cut:
            # The rows were given up meanwhile.
            return
        self._in_encoding = None
        self.memory.take(sum(batch.size for batch in batches) - cut.bytes_estimated)
        self._enqueue(batches)

    async def _wait_for_memory(self, size: int) -> None:
        """Rows that wait for more of their kind would wait for ever here: they leave first."""
        wait_ms = self._config.max_block_ms
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self.close_batches(everything=True)
                await self.encoded()
                await self.memory.wait(size)
        except TimeoutError:
            raise WriteBlocked(
                f"no room for more rows within max.block.ms={wait_ms}: {self.memory.used} of buffer.memory="
                f"{self.memory.limit} bytes wait for brokers; are they reachable and quick enough?"
            ) from None

    def _layout(self, topic: TopicMetadata) -> Layout:
        return Layout(len(topic.partitions), lambda: self._weights(topic))

    def _weights(self, topic: TopicMetadata) -> Mapping[int, int]:
        """How much to prefer each partition that has a leader, or each of all if none has."""
        led = [found for found in topic.partitions.values() if found.leader >= 0]
        quick = [found for found in led if self._is_available(found.leader)]
        choice = [found.partition for found in quick or led or topic.partitions.values()]
        if not self._config.partitioner_adaptive_partitioning_enable:
            return dict.fromkeys(choice, 1)
        return weights_of(
            {index: self._queues.waiting(TopicPartition(topic.name, index)) for index in choice}
        )
