"""Tells every partition of a transaction its outcome, again and again until each has it.

An outcome that is durable is carried out whatever happens: markers are sent again after a restart, since
nobody knows which partitions had theirs. Partitions that are deleted meanwhile need none."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Coroutine
from typing import Final

from headrace.coordinator.refusals import told
from headrace.coordinator.runtime import CoordinatorRuntime
from headrace.errors import ErrorCode, KafkaError
from headrace.replication.cluster_view import ClusterView
from headrace.transactions.markers import (
    Marker,
    MarkerOutcomes,
    MarkerWriter,
    OtherBrokers,
    marker_of,
)
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.shard import TransactionShard
from headrace.types import TopicPartition

RETRY_SECONDS: Final = 0.05

logger: Final = logging.getLogger("headrace.transactions")

_DONE: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION}
)
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class Sending:
    """One transaction whose partitions are being told."""

    __slots__ = ("ending", "is_committed", "left", "marker", "refusal", "shard", "task", "waits_for_log")

    def __init__(
        self, shard: TransactionShard, ending: TransactionMetadata, marker: Marker, is_committed: bool
    ) -> None:
        self.shard = shard
        self.ending = ending
        self.marker = marker
        self.left = set(ending.partitions)
        self.is_committed = is_committed
        self.waits_for_log = False
        self.refusal: str | None = None
        self.task: asyncio.Task[None] | None = None

    def take(self, outcomes: MarkerOutcomes) -> None:
        """Note which partitions have their marker, and whether one will never take it."""
        for partition, code in outcomes.items():
            if code in _DONE:
                self.left.discard(partition)
            elif code not in _RETRIABLE:
                self.refusal = f"{partition} has refused the marker with {code.name}"


class MarkerSender:
    """The `shard.ShardEvents` of all shards. `other_brokers` is None on a node that is alone."""

    __slots__ = ("_cluster", "_due", "_local", "_node_id", "_other_brokers", "_runtime", "_sendings")

    def __init__(
        self,
        node_id: int,
        cluster: ClusterView,
        local: MarkerWriter,
        other_brokers: OtherBrokers | None = None,
    ) -> None:
        self._node_id = node_id
        self._cluster = cluster
        self._local = local
        self._other_brokers = other_brokers
        self._runtime: CoordinatorRuntime[TransactionShard] | None = None
        self._due: list[Sending] = []
        self._sendings: dict[tuple[int, str], Sending] = {}

    @property
    def pending(self) -> int:
        """How many transactions have partitions that do not know their outcome."""
        return len(self._sendings)

    @property
    def waiting_for_log(self) -> int:
        """How many transactions are over but could not be noted as such."""
        return sum(sending.waits_for_log for sending in self._sendings.values())

    @property
    def waiting_for_leader(self) -> int:
        """How many markers are for partitions that nobody leads who could be reached."""
        return sum(
            self._writer_for(self._cluster_leader(partition)) is None
            for sending in self._sendings.values()
            for partition in sending.left
        )

    def attach(self, runtime: CoordinatorRuntime[TransactionShard]) -> None:
        """Where the end of the sending is noted."""
        self._runtime = runtime

    # What shards tell

    def on_ending(
        self, shard: TransactionShard, metadata: TransactionMetadata, *, is_committed: bool
    ) -> None:
        """Begin to send, once whoever has asked for the outcome is answered."""
        assert self._runtime is not None
        hosted = self._runtime.shards.get(shard.index)
        if hosted is None or hosted.shard is not shard:
            return
        if not self._due:
            asyncio.get_running_loop().call_soon(self._begin_due)
        sending = Sending(shard, metadata, marker_of(metadata, hosted.epoch), is_committed)
        self._due.append(sending)
        self._sendings[shard.index, metadata.transactional_id] = sending

    def on_unloaded(self, shard: TransactionShard) -> None:
        """Another coordinator sees to these outcomes."""
        for key, sending in tuple(self._sendings.items()):
            if sending.shard is shard:
                del self._sendings[key]
                if sending.task is not None:
                    sending.task.cancel()

    # Sending

    def _begin_due(self) -> None:
        due, self._due = self._due, []
        for sending in due:
            if self._is_current(sending):
                self._begin(sending)

    def _is_current(self, sending: Sending) -> bool:
        key = sending.shard.index, sending.ending.transactional_id
        return self._sendings.get(key) is sending

    def _begin(self, sending: Sending) -> None:
        """Do all of it at once if nothing has to be waited for."""
        waits: list[Awaitable[MarkerOutcomes]] = []
        if sending.is_committed:
            waits = self._send(sending)
            if not sending.left:
                completion = self._complete(sending)
                if completion.done() and completion.exception() is None:
                    self._forget(sending)
                    return
                self._start(sending, self._finish(sending, completion))
                return
        self._start(sending, self._run(sending, waits))

    def _start(self, sending: Sending, run: Coroutine[None, None, None]) -> None:
        name = f"telling partitions of {sending.ending.transactional_id}"
        sending.task = asyncio.get_running_loop().create_task(run, name=name)
        sending.task.add_done_callback(_report)

    async def _run(self, sending: Sending, waits: list[Awaitable[MarkerOutcomes]]) -> None:
        if not sending.is_committed:
            try:
                while not sending.is_committed:
                    await self._await_committed(sending)
            except KafkaError as error:
                self._give_up(sending, str(error))
                return
            waits = self._send(sending)
        while True:
            for outcomes in await asyncio.gather(*waits):
                sending.take(outcomes)
            if sending.refusal is not None:
                # Another coordinator, or another epoch of the producer, has taken over.
                self._give_up(sending, sending.refusal)
                return
            if not sending.left:
                break
            await asyncio.sleep(RETRY_SECONDS)
            waits = self._send(sending)
        await self._finish(sending, self._complete(sending))

    async def _await_committed(self, sending: Sending) -> None:
        """The outcome itself must be on all replicas before the first partition hears of it."""
        assert self._runtime is not None
        try:
            await self._runtime.read(sending.shard.index, lambda shard, now_ms: None)
            sending.is_committed = True
        except KafkaError as error:
            if told(error).code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                raise
            await asyncio.sleep(RETRY_SECONDS)

    def _send(self, sending: Sending) -> list[Awaitable[MarkerOutcomes]]:
        """Send the markers that are left; what has to be waited for."""
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for partition in sorted(sending.left):
            leader = self._cluster_leader(partition)
            if leader is None:
                logger.info(
                    "%s is gone: it needs no marker of %s", partition, sending.ending.transactional_id
                )
                sending.left.discard(partition)
            else:
                by_leader[leader].append(partition)
        waits: list[Awaitable[MarkerOutcomes]] = []
        for leader, partitions in by_leader.items():
            writer = self._writer_for(leader)
            if writer is None:
                continue
            outcomes = writer.write(sending.marker, partitions)
            if isinstance(outcomes, dict):
                sending.take(outcomes)
            else:
                waits.append(outcomes)
        return waits

    def _cluster_leader(self, partition: TopicPartition) -> int | None:
        found = self._cluster.leader_of(*partition)
        return None if found is None else found.leader

    def _writer_for(self, leader: int | None) -> MarkerWriter | None:
        if leader == self._node_id:
            return self._local
        if leader is None or self._other_brokers is None:
            return None
        return self._other_brokers.writer_for(leader)

    def _complete(self, sending: Sending) -> "asyncio.Future[None]":
        assert self._runtime is not None
        ending = sending.ending
        return self._runtime.write(sending.shard.index, lambda shard, now_ms: shard.complete(ending, now_ms))

    async def _finish(self, sending: Sending, completion: "asyncio.Future[None]") -> None:
        """Note that the transaction is over; if that can't be written now, then later."""
        while True:
            try:
                await completion
                break
            except KafkaError as error:
                if told(error).code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._give_up(sending, str(error))
                    return
                sending.waits_for_log = True
                await asyncio.sleep(RETRY_SECONDS)
                if sending.shard.transactions.get(sending.ending.transactional_id) is not sending.ending:
                    # It was written after all, only not committed in time.
                    break
                completion = self._complete(sending)
        self._forget(sending)

    def _forget(self, sending: Sending) -> None:
        if self._is_current(sending):
            del self._sendings[sending.shard.index, sending.ending.transactional_id]

    def _give_up(self, sending: Sending, reason: str) -> None:
        logger.warning("no more markers are sent for %s: %s", sending.ending.transactional_id, reason)
        self._forget(sending)


def _report(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("%s failed", task.get_name(), exc_info=error)
