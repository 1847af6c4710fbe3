"""Fetching many partitions from all their brokers at once, ahead of who reads, within a bound of memory.

One fetch is under way with each broker. What has arrived waits in `arrived`, batches not decoded yet; while
it and what was asked for would exceed the bound, nothing more is asked for.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from headrace.client.backoff import backoff_ms
from headrace.client.cluster import Cluster
from headrace.client.config import PARTITION_FETCH_BYTES, READ_COMMITTED
from headrace.client.errors import ConnectionLost, CorruptRecords, RequestTimedOut, Unreachable
from headrace.client.fetch_session import LAST_VERSION_BY_NAME, FetchSession, Wanted
from headrace.client.fetched import Fetched, scan
from headrace.client.links import Lane
from headrace.client.metadata import NO_NODE
from headrace.client.position_checks import PositionChecks
from headrace.client.read_errors import Reaction, reaction_to
from headrace.client.read_state import ReadState
from headrace.errors import ErrorCode, HeadraceError
from headrace.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from headrace.types import TopicPartition

#: How long a broker may wait for new records while others of its partitions have to wait for their turn.
_WAIT_MS_HELD_BACK: Final = 50
#: What is asked of a partition at a time if nothing was configured and there is room for it.
_PARTITION_BYTES_MAX: Final = 4 * 1024 * 1024
#: A request that may bring no more than this is not worth its while.
_REQUEST_BYTES_MIN: Final = 64 * 1024


class Fetcher:
    """Keeps `arrived` filled until everything wanted is fetched. `failure` ends it."""

    def __init__(
        self,
        cluster: Cluster,
        states: Mapping[TopicPartition, ReadState],
        *,
        lane: Lane,
        isolation: str,
        prefetch_bytes: int,
        give_up_ms: int | None,
    ) -> None:
        self.arrived: deque[Fetched] = deque()
        self.failure: BaseException | None = None
        self.changed = asyncio.Event()
        self._cluster = cluster
        self._config = cluster.config
        self._loop = asyncio.get_running_loop()
        self._states = states
        self._topics = frozenset(each.topic for each in states)
        self._lane = lane
        self._isolation_level = 1 if isolation == READ_COMMITTED else 0
        self._prefetch_bytes = prefetch_bytes
        self._share_bytes = prefetch_bytes // max(1, len(states))
        self._partition_bytes = self._bytes_per_partition()
        self._buffered_bytes = 0
        self._reserved: dict[int, int] = {}
        self._sessions: dict[int, FetchSession] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._checks = PositionChecks(cluster, lane, give_up_ms)
        self._needs_refresh = False

    @property
    def buffered_bytes(self) -> int:
        """Bytes that have arrived and wait to be taken."""
        return self._buffered_bytes

    async def run(self) -> None:
        """Fetch until all is fetched, or something cannot be got over. Cancel it to stop before that."""
        try:
            while self.failure is None and not all(each.is_fetched for each in self._states.values()):
                self._wake.clear()
                self._checks.look_around(self._states.values())
                wait = self._start_fetches()
                try:
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        except Exception as error:  # noqa: BLE001 whoever reads is told, or would wait for ever
            self._fail(error)
        finally:
            await self._stop()
            self.changed.set()

    def take(self) -> Fetched | None:
        """What has arrived first, if anything has; its memory is the taker's from now on."""
        if not self.arrived:
            return None
        fetched = self.arrived.popleft()
        self._buffered_bytes -= fetched.size
        fetched.state.buffered_bytes -= fetched.size
        self._wake.set()
        return fetched

    async def _stop(self) -> None:
        tasks: list[asyncio.Task[None]] = [*self._tasks.values()]
        if self._refreshing is not None:
            tasks.append(self._refreshing)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
        self._wake.set()
        self.changed.set()

    # Who is asked for what

    def _start_fetches(self) -> float | None:
        """Start whatever can be started; how long to wait until something may have changed by itself."""
        now = self._loop.time()
        for topic in self._topics:
            self._cluster.in_use.use(topic, now)
        by_node: dict[int, list[ReadState]] = {}
        is_held_back: set[int] = set()
        retries = [state.retry_at for state in self._states.values() if self._is_waiting(state, now)]
        for state in self._states.values():
            if state.is_fetched or state.is_in_flight or state.retry_at > now:
                continue
            node_id = self._node_for(state, now)
            if node_id == NO_NODE:
                self._postpone(state)
                retries.append(state.retry_at)
            elif 0 < state.buffered_bytes >= self._share_bytes:
                is_held_back.add(node_id)
            elif node_id not in self._tasks:
                by_node.setdefault(node_id, []).append(state)
        for index, (node_id, states) in enumerate(by_node.items()):
            wait_ms = _WAIT_MS_HELD_BACK if node_id in is_held_back else self._config.fetch_max_wait_ms
            self._start_fetch(node_id, states, len(by_node) - index, wait_ms)
        if self._needs_refresh and self._refreshing is None:
            self._needs_refresh = False
            self._refreshing = self._loop.create_task(self._refresh())
        return max(0.0, min(retries) - now) if retries else None

    def _is_waiting(self, state: ReadState, now: float) -> bool:
        return not state.is_fetched and not state.is_in_flight and state.retry_at > now

    def _node_for(self, state: ReadState, now: float) -> int:
        """The broker to read a partition from: the replica that its leader named, or the leader."""
        metadata = self._cluster.metadata
        if state.replica != NO_NODE:
            if now < state.replica_until and state.replica in metadata.brokers:
                return state.replica
            state.leave_replica()
        leader = metadata.leader_of(*state.partition)
        if leader is None:
            self._cluster.stale(state.partition.topic)
        if self._cluster.in_use.is_stale(state.partition.topic):
            self._needs_refresh = True
        return NO_NODE if leader is None else leader.node_id

    def _start_fetch(self, node_id: int, states: list[ReadState], sharing: int, wait_ms: int) -> None:
        free = self._prefetch_bytes - self._buffered_bytes - sum(self._reserved.values())
        is_nothing_under_way = not self._reserved and not self.arrived
        if free < min(_REQUEST_BYTES_MIN, self._prefetch_bytes) and not is_nothing_under_way:
            return
        self._reserved[node_id] = bytes_max = min(max(free // sharing, 1), self._config.fetch_max_bytes)
        for state in states:
            state.is_in_flight = True
        task = self._loop.create_task(self._fetch(node_id, states, bytes_max, wait_ms))
        self._tasks[node_id] = task
        task.add_done_callback(lambda done: self._on_fetched(node_id, states, done))

    def _on_fetched(self, node_id: int, states: Sequence[ReadState], task: "asyncio.Task[None]") -> None:
        self._tasks.pop(node_id, None)
        self._reserved.pop(node_id, None)
        for state in states:
            state.is_in_flight = False
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _bytes_per_partition(self) -> int:
        """What to ask for at a time: what was configured, or more of a few partitions if nothing was.

        Each fetch is a round trip, and the bound on memory holds either way."""
        configured = self._config.max_partition_fetch_bytes
        if configured != PARTITION_FETCH_BYTES:
            return configured
        return max(configured, min(_PARTITION_BYTES_MAX, self._share_bytes // 2))

    # One fetch

    async def _fetch(self, node_id: int, states: Sequence[ReadState], bytes_max: int, wait_ms: int) -> None:
        states = await self._on_same_history(node_id, states)
        if not states:
            return
        session = self._sessions.setdefault(node_id, FetchSession())
        wanted = {state.partition: self._wanted(state) for state in states}
        uses_ids = all(state.topic_id.int for state in states)
        request = session.request(wanted, uses_ids=uses_ids)
        try:
            reply: FetchResponse = await self._cluster.send(
                node_id,
                FetchRequest(
                    max_wait_ms=wait_ms,
                    min_bytes=self._config.fetch_min_bytes,
                    max_bytes=bytes_max,
                    isolation_level=self._isolation_level,
                    session_id=request.session_id,
                    session_epoch=request.epoch,
                    topics=request.topics,
                    forgotten_topics_data=request.forgotten,
                    rack_id=self._config.client_rack,
                ),
                timeout_ms=self._config.request_timeout_ms + self._config.fetch_max_wait_ms,
                max_version=None if uses_ids else LAST_VERSION_BY_NAME,
                lane=self._lane,
            )
        except BaseException as error:
            session.failed()
            if not isinstance(error, ConnectionLost | RequestTimedOut | Unreachable):
                raise
            self._on_no_reply(states, error)
            return
        if session.answered(reply.error_code, reply.session_id):
            await self._on_reply(node_id, reply, states)
        else:
            self._on_session_error(reply.error_code, states)

    async def _on_same_history(self, node_id: int, states: Sequence[ReadState]) -> list[ReadState]:
        certain = await self._checks.on_same_history(node_id, states)
        for state in states:
            if state not in certain:
                self._distrust(state)
        return certain

    def _wanted(self, state: ReadState) -> Wanted:
        leader = self._cluster.metadata.leader_of(*state.partition)
        epoch = -1 if leader is None else leader.epoch
        return Wanted(state.topic_id, state.fetch_from, epoch, state.bytes_max or self._partition_bytes)

    def _on_no_reply(self, states: Sequence[ReadState], error: HeadraceError) -> None:
        for state in states:
            state.leave_replica()
            self._checks.last_trouble[state.partition] = error
            self._distrust(state)

    def _on_session_error(self, code: int, states: Sequence[ReadState]) -> None:
        """The session is begun anew; only where ids are disputed, what is known has to be looked at first."""
        is_session_only = code in (
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        )
        for state in states:
            self._checks.note_trouble(state, code)
            if is_session_only and state.failures == 0:
                state.failed(self._loop.time(), 0.0)
            elif is_session_only:
                self._postpone(state)
            else:
                self._distrust(state)

    async def _on_reply(self, node_id: int, reply: FetchResponse, states: Sequence[ReadState]) -> None:
        by_key = {(state.partition.topic, state.partition.partition): state for state in states}
        by_key |= {(state.topic_id.hex, state.partition.partition): state for state in states}
        quiet = dict.fromkeys(states)
        for topic in reply.responses:
            key = topic.topic or topic.topic_id.hex
            for data in topic.partitions:
                state = by_key.get((key, data.partition_index))
                if state is None:
                    continue
                if data.error_code:
                    quiet.pop(state, None)
                    await self._on_error(state, data, reply)
                    continue
                state.readable_end = data.last_stable_offset if self._isolation_level else data.high_watermark
                if data.records is not None and len(data.records):
                    quiet.pop(state, None)
                    self._on_records(state, data)
                else:
                    self._on_nothing(state, data)
        # A session's reply leaves out partitions of which there is nothing new: these are well, too.
        for state in quiet:
            state.succeeded()
        if len(quiet) == len(states):
            await self._pass_gaps(node_id, quiet)

    async def _pass_gaps(self, node_id: int, quiet: Iterable[ReadState]) -> None:
        """Where nothing came at all, there may be nothing left before the end that is to be reached."""
        for state in quiet:
            end = await self._checks.end_of_gap(node_id, state, self._isolation_level)
            if end is not None:
                start, state.fetch_from = state.fetch_from, end
                self.arrived.append(Fetched(state, start, end, (), None, 0))
                self.changed.set()

    def _on_records(self, state: ReadState, data: PartitionData) -> None:
        # What was decoded from a frame is bytes, never a range of a file.
        found = scan(data.records, check_crcs=self._config.check_crcs)  # type: ignore[arg-type]
        if found.damage is not None and not found.found:
            raise CorruptRecords(state.partition, state.fetch_from, found.damage)
        if found.end is None:
            # Only brokers of another age cut the first batch short; asking for more brings it.
            state.bytes_max = 2 * max(len(data.records or b""), self._config.max_partition_fetch_bytes)
            return
        if found.end <= state.fetch_from:
            # Nothing of this was asked for.
            self._postpone(state)
            return
        state.succeeded()
        size = len(data.records or b"")
        aborted = data.aborted_transactions if self._isolation_level else None
        start, state.fetch_from = state.fetch_from, found.end
        state.epoch = found.found[-1].leader_epoch
        state.bytes_max = 0
        state.buffered_bytes += size
        self._buffered_bytes += size
        pairs = [(each.producer_id, each.first_offset) for each in aborted] if aborted else None
        self.arrived.append(Fetched(state, start, state.fetch_from, found.found, pairs, size))
        self.changed.set()
        if found.damage is not None:
            raise CorruptRecords(state.partition, state.fetch_from, found.damage)

    def _on_nothing(self, state: ReadState, data: PartitionData) -> None:
        if data.preferred_read_replica != NO_NODE:
            state.replica = data.preferred_read_replica
            state.replica_until = self._loop.time() + self._config.metadata_max_age_ms / 1000

    async def _on_error(self, state: ReadState, data: PartitionData, reply: FetchResponse) -> None:
        reaction = reaction_to(data.error_code)
        self._checks.note_trouble(state, data.error_code)
        leader = data.current_leader
        if leader.leader_id != NO_NODE:
            self._cluster.learn_leader(
                *state.partition, leader.leader_id, leader.leader_epoch, reply.node_endpoints
            )
        if reaction is Reaction.CHECK_RANGE and state.replica != NO_NODE:
            # The replica may be behind; only its leader knows what there is.
            state.leave_replica()
            return
        state.leave_replica()
        if reaction is Reaction.RETRY:
            self._postpone(state)
        elif reaction is Reaction.REFRESH:
            self._distrust(state)
        else:
            await self._checks.judge(state, data.error_code, reaction)
            self._postpone(state)

    # Trouble

    def _distrust(self, state: ReadState) -> None:
        self._cluster.stale(state.partition.topic)
        self._needs_refresh = True
        self._postpone(state)

    def _postpone(self, state: ReadState) -> None:
        config = self._config
        wait = backoff_ms(
            config.retry_backoff_ms, config.retry_backoff_max_ms, state.failures + 1, self._cluster.entropy
        )
        state.failed(self._loop.time(), wait / 1000)

    async def _refresh(self) -> None:
        try:
            await self._cluster.topics(self._topics)
        except HeadraceError as error:
            self._checks.refresh_failed(self._states.values(), error)
        except Exception as error:  # noqa: BLE001 whoever reads is told, or would wait for ever
            self._fail(error)
        finally:
            self._refreshing = None
            self._wake.set()
