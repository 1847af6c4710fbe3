"""One shard in its partition: decisions become batches, batches become state, and replies wait for both.

Appending is synchronous on the event loop, and a record is replayed only once it is in the log: a failed
append leaves no trace in the state. Who reads state that is not committed yet waits until it is."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from headrace.coordinator.joined_writes import EncodedRecord, JoinedWrites
from headrace.coordinator.keyed_timers import KeyedTimers
from headrace.coordinator.refusals import loading, not_coordinator, told
from headrace.coordinator.shard import CoordinatorRecord, Decision, Operation, Records, Shard, TimedOperation
from headrace.coordinator.timers import Timer, TimerQueue
from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.producer_append import TRANSACTION_VERSION_UNKNOWN
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.ports import Clock
from headrace.protocol.prefixed import CoordinatorRecords
from headrace.records.builder import build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

logger: Final = logging.getLogger("headrace.coordinator")

#: What a record takes besides its key and value, at most.
RECORD_OVERHEAD: Final = 32
BATCH_OVERHEAD: Final = 61

S = TypeVar("S", bound=Shard)
T = TypeVar("T")
#: Makes a reply of a failure, as the client of a coordinator is told of it.
Refuse: TypeAlias = Callable[[KafkaError], T]


class ShardState(Enum):
    """Where a shard is in its life; Kafka's metrics name them so."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class Producer(NamedTuple):
    """The producer in whose transaction records are written."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH
    guard: VerificationGuard = NO_VERIFICATION_GUARD


NO_PRODUCER: Final = Producer()


class ShardSettings(NamedTuple):
    """How the records of a topic are written."""

    codec: CoordinatorRecords
    compression: Compression = Compression.NONE
    write_timeout_ms: int = 5_000
    linger_ms: int = -1
    """How long writes that join wait for others; -1 for a round of the event loop."""


class Waiting:
    """Somebody who is answered once everything below an offset is committed."""

    __slots__ = ("_answer", "_decision", "_timer", "offset")

    def __init__(self, decision: Decision[Any], answer: Callable[[BaseException | None, Any], None]) -> None:
        self._decision = decision
        self._answer: Callable[[BaseException | None, Any], None] | None = answer
        self._timer: Timer | None = None
        self.offset = -1

    def park(self, offset: int, timers: TimerQueue, timeout_ms: int) -> None:
        self.offset = offset
        self._timer = timers.start(timeout_ms, self._give_up)

    def finish(self, error: BaseException | None = None) -> None:
        answer, self._answer = self._answer, None
        if self._timer is not None:
            self._timer.cancel()
        if answer is None:
            return
        if self._decision.on_done is not None:
            try:
                self._decision.on_done(error)
            except Exception as failure:
                # Others wait for the same partition, and must not suffer for it.
                logger.error("what follows from a write failed", exc_info=failure)
                error = error or failure
        answer(error, self._decision.reply)

    def _give_up(self) -> None:
        self.finish(KafkaError(ErrorCode.REQUEST_TIMED_OUT))


class HostedShard(Generic[S]):
    """A shard that is loaded, served and let go of with the leadership of its partition."""

    __slots__ = (
        "_clock",
        "_joined",
        "_on_out_of_sync",
        "_parked",
        "_settings",
        "_timers",
        "end_offset",
        "epoch",
        "index",
        "partition",
        "shard",
        "state",
        "timers",
    )

    def __init__(
        self,
        index: int,
        partition: Partition,
        settings: ShardSettings,
        clock: Clock,
        timers: TimerQueue,
        on_out_of_sync: Callable[["HostedShard[S]"], None],
    ) -> None:
        self.index = index
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.state = ShardState.LOADING
        self.shard: S | None = None
        self.end_offset = 0
        self.timers = KeyedTimers(timers, self.perform)
        self._settings = settings
        self._clock = clock
        self._timers = timers
        self._on_out_of_sync = on_out_of_sync
        self._parked: deque[Waiting] = deque()
        self._joined = JoinedWrites[Waiting](self._write_joined, settings.linger_ms)

    def active(self) -> S:
        """The shard, if requests may be put to it."""
        if self.state is ShardState.ACTIVE and self.shard is not None:
            return self.shard
        raise loading() if self.state is ShardState.LOADING else not_coordinator()

    # Operations

    def write(
        self,
        operation: Operation[S, T],
        future: "asyncio.Future[T]",
        refuse: Refuse[T] | None,
        producer: Producer,
        joins: bool,
    ) -> None:
        """Decide, append, replay; the future gets the reply when it is committed, or the failure."""
        try:
            shard = self.active()
            if not joins:
                self._joined.flush()
            now_ms = self._clock.now_ms()
            decision = operation(shard, now_ms)
            waiting = Waiting(decision, partial(_resolve, future, refuse))
            if joins and decision.records and decision.is_replayed:
                self._joined.add(decision.records, self._encoded(decision.records, now_ms), waiting)
            else:
                self._take(decision, waiting, now_ms, producer)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it was
            fail(future, refuse, error)

    def perform(self, operation: TimedOperation, outcome: Callable[[BaseException | None], None]) -> None:
        """Likewise for an operation that is due by time."""
        try:
            self.active()
            self._joined.flush()
            now_ms = self._clock.now_ms()
            decision = operation(now_ms)
            waiting = Waiting(decision, lambda error, _: outcome(error))
            self._take(decision, waiting, now_ms, NO_PRODUCER)
        except Exception as error:  # noqa: BLE001 - a timer that fails is logged by whoever set it
            outcome(error)

    def read(
        self, reading: Callable[[S, int], T], future: "asyncio.Future[T]", refuse: Refuse[T] | None
    ) -> None:
        """What the shard says, as soon as all that it is founded on is committed."""
        try:
            shard = self.active()
            self._joined.flush()
            reply = reading(shard, self._clock.now_ms())
            self._park_or_finish(Waiting(Decision((), reply), partial(_resolve, future, refuse)))
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it was
            fail(future, refuse, error)

    def complete_transaction(
        self,
        producer: Producer,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
        future: "asyncio.Future[None]",
    ) -> None:
        """Write the marker that ends a producer's transaction in this partition."""
        try:
            shard = self.active()
            self._joined.flush()
            now_ms = self._clock.now_ms()
            marker = build_end_transaction_marker(
                ControlType.COMMIT if committed else ControlType.ABORT,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=now_ms,
            )
            self._append(marker, now_ms, NO_PRODUCER, transaction_version)
            self._replaying(
                partial(shard.replay_end_transaction_marker, producer.producer_id, producer.epoch, committed)
            )
            self._park_or_finish(Waiting(Decision((), None), partial(_resolve, future, None)))
        except Exception as error:  # noqa: BLE001 - whoever asked is told, whatever it was
            fail(future, None, error)

    # Writing

    def _take(self, decision: Decision[Any], waiting: Waiting, now_ms: int, producer: Producer) -> None:
        try:
            if decision.records:
                self._write(decision, now_ms, producer)
        except Exception as error:  # noqa: BLE001 - told to whoever waits
            waiting.finish(error)
            return
        self._park_or_finish(waiting)

    def _write(self, decision: Decision[Any], now_ms: int, producer: Producer) -> None:
        encoded = self._encoded(decision.records, now_ms)
        is_atomic = decision.is_atomic or producer.producer_id != NO_PRODUCER_ID
        start = 0
        for end in [len(encoded)] if is_atomic else self._cuts(encoded):
            self._write_batch(
                decision.records[start:end], encoded[start:end], decision.is_replayed, now_ms, producer
            )
            start = end

    def _cuts(self, encoded: list[EncodedRecord]) -> list[int]:
        """Where records that may be spread over batches are cut so that each fits."""
        limit = self.partition.leader_log.settings.max_message_bytes - BATCH_OVERHEAD
        cuts, size = [], 0
        for index, (_, key, value, _) in enumerate(encoded):
            needed = RECORD_OVERHEAD + len(key) + len(value or b"")
            if size and size + needed > limit:
                cuts.append(index)
                size = 0
            size += needed
        return [*cuts, len(encoded)]

    def _write_joined(
        self, records: list[CoordinatorRecord], encoded: list[EncodedRecord], waiting: list[Waiting]
    ) -> None:
        try:
            self._write_batch(records, encoded, True, self._clock.now_ms(), NO_PRODUCER)
        except Exception as error:  # noqa: BLE001 - told to all who wait
            for each in waiting:
                each.finish(error)
            return
        for each in waiting:
            self._park_or_finish(each)

    def _write_batch(
        self,
        records: Records,
        encoded: list[EncodedRecord],
        is_replayed: bool,
        now_ms: int,
        producer: Producer,
    ) -> None:
        batch = build_batch(
            encoded,
            compression=self._settings.compression,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=producer.producer_id != NO_PRODUCER_ID,
        )
        offset = self._append(batch, now_ms, producer, TRANSACTION_VERSION_UNKNOWN)
        shard = self.active()
        if is_replayed:
            self._replaying(partial(_replay_all, shard, offset, producer, records))

    def _append(self, batch: bytes, now_ms: int, producer: Producer, transaction_version: int) -> int:
        """The first offset of the batch."""
        partition = self.partition
        if partition.leader_log.log_end_offset != self.end_offset:
            logger.error(
                "%s ends at %d but its state at %d: somebody else has written to it, so it is loaded anew",
                partition.name,
                partition.leader_log.log_end_offset,
                self.end_offset,
            )
            self._on_out_of_sync(self)
            raise not_coordinator()
        info = partition.append(
            bytearray(batch),
            ACKS_ALL,
            now_ms,
            origin=AppendOrigin.COORDINATOR,
            guard=producer.guard,
            transaction_version=transaction_version,
        )
        self.end_offset = info.last_offset + 1
        return info.first_offset

    def _replaying(self, replay: Callable[[], None]) -> None:
        try:
            replay()
        except Exception as error:
            # The log has what the state has not: only a load brings them together again.
            logger.error(
                "replaying what was written to %s failed, so it is loaded anew",
                self.partition.name,
                exc_info=error,
            )
            self._on_out_of_sync(self)
            raise not_coordinator() from error

    def _encoded(self, records: Records, now_ms: int) -> list[EncodedRecord]:
        codec = self._settings.codec
        encode_key, encode_value = codec.encode_key, codec.encode_value
        found: list[EncodedRecord] = []
        for key, value, version, encoded in records:
            if encoded is None:
                encoded = encode_key(key), None if value is None else encode_value(value, version)
            found.append((now_ms, *encoded, ()))
        return found

    # Waiting for replicas

    @property
    def is_committed(self) -> bool:
        """Whether everything that was written is on all replicas in sync."""
        return self.partition.leader_log.high_watermark >= self.end_offset

    def _park_or_finish(self, waiting: Waiting) -> None:
        if not self._parked and self.is_committed:
            waiting.finish()
            return
        waiting.park(self.end_offset, self._timers, self._settings.write_timeout_ms)
        self._parked.append(waiting)
        self.partition.waits[self] = None

    def on_progress(self, partition: Partition) -> None:
        """The high watermark may have moved."""
        if partition.log is None or not partition.is_leader:
            return
        committed, parked = partition.log.high_watermark, self._parked
        while parked and parked[0].offset <= committed:
            parked.popleft().finish()
        if not parked:
            partition.waits.pop(self, None)

    # Its life

    def activate(self, shard: S, end_offset: int) -> None:
        """Everything is replayed: serve."""
        self.shard = shard
        self.end_offset = end_offset
        self.state = ShardState.ACTIVE

    def close(self, state: ShardState = ShardState.CLOSED) -> None:
        """Answer whoever waits that this is not the coordinator, and forget the state."""
        self.state = state
        self.partition.waits.pop(self, None)
        parked, self._parked = self._parked, deque()
        for waiting in (*parked, *self._joined.abandon()):
            waiting.finish(not_coordinator())
        shard, self.shard = self.shard, None
        if shard is not None:
            try:
                shard.on_unloaded()
            except Exception as error:
                logger.error("unloading %s failed", self.partition.name, exc_info=error)
        self.timers.cancel_all()


def _replay_all(shard: Shard, offset: int, producer: Producer, records: Records) -> None:
    producer_id, epoch, _ = producer
    for key, value, _, _ in records:
        shard.replay(offset, producer_id, epoch, key, value)
        offset += 1


def _resolve(
    future: "asyncio.Future[T]", refuse: Refuse[T] | None, error: BaseException | None, reply: T
) -> None:
    if error is not None:
        fail(future, refuse, error)
    elif not future.done():
        future.set_result(reply)


def fail(future: "asyncio.Future[T]", refuse: Refuse[T] | None, error: BaseException) -> None:
    """Tell whoever waits what went wrong: as a reply if there is a form for it, else as it is."""
    if future.done():
        return
    if refuse is None:
        future.set_exception(error)
        return
    if not isinstance(error, KafkaError):
        logger.error("an operation of a coordinator failed: %s", error, exc_info=error)
    future.set_result(refuse(told(error)))
