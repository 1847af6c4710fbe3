"""Reading partitions as Arrow columns: several brokers at once, ahead of who reads, within a bound of memory.

A reader hands out what there is in order of offsets for each partition. It never moves a position by itself:
one that is gone, or means something else by now, is an error.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Final
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.column_decoding import ColumnDecoder, Columns, columns_schema
from headrace.client.errors import BrokerRefused, ClientClosed, CorruptRecords, TopicRecreated
from headrace.client.fetching import Fetcher
from headrace.client.metadata import TopicMetadata
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.client.read_state import ReadState
from headrace.errors import ErrorCode
from headrace.types import TopicPartition

PREFETCH_BYTES: Final = 64 * 1024 * 1024
_PLACES: Final = (EARLIEST, LATEST)

__all__ = ["PREFETCH_BYTES", "ColumnReader", "Columns", "columns_schema"]


class ColumnReader:
    """Reads partitions from given positions on: an async context manager and an async iterator of `Columns`.

    `positions` are the offsets to start at, or EARLIEST or LATEST of `headrace.client.offsets`. With `until`
    a partition is read up to that offset (which is not part of it), and the iteration ends when all are done;
    partitions that are not in it have no end. `isolation` is `read_committed` or `read_uncommitted`.
    `expected_ids` are ids that topics must have; without them the ids found at the start count. With `views`
    keys and values stay in the received bytes (`binary_view`); `plain` has the topic as plain strings.
    `give_up_ms` is how long a partition may be without a broker that serves it; None waits for ever, and the
    default is `default.api.timeout.ms` with `until` and for ever without.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, int],
        *,
        until: Mapping[TopicPartition, int] | None = None,
        isolation: str | None = None,
        prefetch_bytes: int = PREFETCH_BYTES,
        expected_ids: Mapping[str, UUID] | None = None,
        views: bool = False,
        plain: bool = False,
        give_up_ms: int | None = -1,
    ) -> None:
        if until is not None and (without := set(until) - set(positions)):
            raise ValueError(f"`until` has partitions without a position: {sorted(without)}")
        if unusable := {each: at for each, at in positions.items() if at < 0 and at not in _PLACES}:
            raise ValueError(f"positions are offsets, EARLIEST or LATEST: {unusable}")
        self._cluster = cluster
        self._start = dict(positions)
        self._until = dict(until or {})
        self._isolation = isolation or cluster.config.isolation_level
        self._prefetch_bytes = prefetch_bytes
        self._expected_ids = dict(expected_ids or {})
        self._decoder = ColumnDecoder(views=views, plain=plain)
        self._give_up_ms = self._patience(give_up_ms)
        self._states: dict[TopicPartition, ReadState] = {}
        self._fetcher: Fetcher | None = None
        self._task: asyncio.Task[None] | None = None
        self._lane = cluster.new_lane("reader")
        self._pieces: Iterator[Columns] = iter(())
        self._current: ReadState | None = None
        self._damage: CorruptRecords | None = None

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The position after what was handed out, for each partition."""
        return {each: state.position for each, state in self._states.items()}

    @property
    def buffered_bytes(self) -> int:
        """Bytes that were fetched and not taken yet."""
        return self._fetcher.buffered_bytes if self._fetcher is not None else 0

    async def __aenter__(self) -> "ColumnReader":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Columns]:
        return self

    async def __anext__(self) -> Columns:
        columns = await self.next()
        if columns is None:
            raise StopAsyncIteration
        return columns

    async def start(self) -> None:
        """Find the topics and begin to fetch; raises UnknownTopics, TopicRecreated or BrokerRefused."""
        if self._fetcher is not None:
            return
        await self._find_topics()
        await self._find_positions()
        self._fetcher = Fetcher(
            self._cluster,
            self._states,
            lane=self._lane,
            isolation=self._isolation,
            prefetch_bytes=self._prefetch_bytes,
            give_up_ms=self._give_up_ms,
        )
        self._task = asyncio.create_task(self._fetcher.run(), name=f"headrace {self._lane}")

    async def close(self) -> None:
        """Stop fetching and let go of connections and memory."""
        task, self._task = self._task, None
        self._pieces = iter(())
        try:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        finally:
            if self._fetcher is not None:
                self._fetcher.arrived.clear()
                # Whoever still waits for records is told that none will come.
                self._fetcher.changed.set()
            await self._cluster.close_lane(self._lane)

    async def next(self) -> Columns | None:
        """The next records, waiting for them if need be; None when every partition has reached its end.

        Raises what keeps the reader from going on, once everything before that was handed out; it does so
        again when it is asked again.
        """
        # Whoever reads without a pause would keep the loop from fetching on, and from everything else.
        await asyncio.sleep(0)
        while True:
            if self._damage is not None:
                raise self._damage
            columns = self._next_piece()
            if columns is not None:
                return columns
            fetcher = self._fetcher
            if fetcher is None or self._task is None:
                raise ClientClosed("the reader is not open: use `async with ColumnReader(...)`")
            fetched = fetcher.take()
            if fetched is not None:
                self._current = fetched.state
                self._pieces = self._decoder.decode(fetched)
                continue
            if fetcher.failure is not None:
                raise fetcher.failure
            if all(state.is_done for state in self._states.values()):
                return None
            fetcher.changed.clear()
            await fetcher.changed.wait()

    def _next_piece(self) -> Columns | None:
        """The next non-empty piece of what is being decoded; the position moves with it."""
        state = self._current
        try:
            for columns in self._pieces:
                if state is not None:
                    state.position = columns.end
                if len(columns):
                    return columns
        except CorruptRecords as damage:
            # What was fetched behind it stays where it is: nothing is skipped.
            self._damage = damage
            raise
        return None

    def _patience(self, give_up_ms: int | None) -> int | None:
        if give_up_ms is None or give_up_ms >= 0:
            return give_up_ms
        return self._cluster.config.default_api_timeout_ms if self._until else None

    async def _find_topics(self) -> None:
        topics = await self._topics_as_of_now({each.topic for each in self._start})
        for each, position in self._start.items():
            topic = topics[each.topic]
            if each.partition not in topic.partitions:
                count = len(topic.partitions)
                reason = f"the topic has {count} partition{'s' * (count != 1)}"
                raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason, str(each))
            expected = self._expected_ids.get(each.topic)
            if expected is not None and topic.has_id and topic.topic_id != expected:
                raise TopicRecreated(each.topic, expected, topic.topic_id)
            self._states[each] = ReadState(each, position, self._until.get(each), topic.topic_id)

    async def _topics_as_of_now(self, names: set[str]) -> Mapping[str, TopicMetadata]:
        """The topics that there are, not those that there were when somebody asked last.

        Where an id is expected, what is known will do if it has that id.
        """
        known = self._cluster.metadata.topics
        for name in names:
            if name in known and known[name].topic_id != self._expected_ids.get(name):
                self._cluster.stale(name)
        return await self._cluster.topics(names)

    async def _find_positions(self) -> None:
        """Turn EARLIEST and LATEST into offsets."""
        wanted = {each: state.position for each, state in self._states.items() if state.position < 0}
        if not wanted:
            return
        found = await list_offsets(self._cluster, wanted, isolation=self._isolation)
        for each, offset in found.items():
            self._states[each].position = self._states[each].fetch_from = offset.offset
