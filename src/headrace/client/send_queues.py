"""What may be sent, when and in which order, and what a reply means for it: a state machine without I/O.

The rules are those of Kafka's own producer. Each partition's batches are written in their order, over
retries, changes of leaders and restarts. Replies, time and leaders come in as arguments; what is to be sent
comes out, and what became of batches goes to a `Deliveries`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from headrace.client.backoff import backoff_ms
from headrace.client.config import ClientConfig
from headrace.client.delivery import NO_OFFSET, Failure, RecordError
from headrace.client.errors import error_name
from headrace.client.metadata import Leader
from headrace.client.partition_queue import PartitionQueue
from headrace.client.pending_batch import NO_IDENTITY, Identity, PendingBatch
from headrace.errors import ErrorCode
from headrace.ports import Entropy
from headrace.types import NO_SEQUENCE, TopicPartition

EPOCH_MAX: Final = 2**15 - 1

FATAL: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
RETRIABLE: Final = frozenset(int(code) for code in ErrorCode if code.is_retriable)
_SEQUENCE_LOST: Final = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
# Only these are said before anything is written; after the other ones that can be retried it may be there.
_SURELY_NOT_WRITTEN: Final = _SEQUENCE_LOST | {
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_ID,
}


class Answer(NamedTuple):
    """What a broker said of one batch, or what is known instead of it."""

    code: int = ErrorCode.NONE
    message: str | None = None
    offset_base: int = NO_OFFSET
    offset_log_start: int = NO_OFFSET
    record_errors: tuple[RecordError, ...] = ()
    never_left: bool = False

    @property
    def text(self) -> str:
        name = error_name(self.code)
        return f"{name}: {self.message}" if self.message and self.message != name else name


class Deliveries(Protocol):
    """Who is told what became of a batch: each of them exactly once."""

    def on_acknowledged(self, batch: PendingBatch, offset_base: int) -> None: ...

    def on_failed(self, batch: PendingBatch, failure: Failure) -> None: ...

    def on_split(self, batch: PendingBatch, parts: list[PendingBatch]) -> None: ...


@dataclass(slots=True)
class Drained:
    """What is to be sent to whom now; topics without a known leader; when to look again, None if never."""

    requests: dict[int, list[PendingBatch]] = field(default_factory=dict)
    leaderless: set[str] = field(default_factory=set)
    again_at_ms: float | None = None

    def look_again(self, at_ms: float) -> None:
        """Look again at that time, or earlier."""
        if self.again_at_ms is None or at_ms < self.again_at_ms:
            self.again_at_ms = at_ms


Split = Callable[[PendingBatch], list[PendingBatch]]
LeaderOf = Callable[[str, int], Leader | None]


class SendQueues:
    """All batches that wait or are under way. `identity` is None as long as one is needed and not known."""

    def __init__(self, config: ClientConfig, entropy: Entropy, deliveries: Deliveries, split: Split) -> None:
        self._config = config
        self._entropy = entropy
        self._deliveries = deliveries
        self._split = split
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._busy: dict[TopicPartition, PartitionQueue] = {}
        self._restarting: dict[TopicPartition, PartitionQueue] = {}
        self.is_idempotent = config.enable_idempotence
        self.identity: Identity | None = None if config.enable_idempotence else NO_IDENTITY

    def __bool__(self) -> bool:
        """Whether any batch waits for its fate."""
        return bool(self._busy)

    def __iter__(self) -> Iterator[PendingBatch]:
        for queue in self._busy.values():
            yield from queue

    @property
    def needs_identity(self) -> bool:
        return self.identity is None

    def waiting(self, partition: TopicPartition) -> int:
        """How many batches wait for a partition."""
        queue = self._queues.get(partition)
        return 0 if queue is None else len(queue)

    def add(self, batches: Iterable[PendingBatch]) -> None:
        """Take batches in, in their order."""
        for batch in batches:
            queue = self._queues.get(batch.partition)
            if queue is None:
                queue = self._queues[batch.partition] = PartitionQueue(batch.partition)
            queue.fresh.append(batch)
            self._busy.setdefault(batch.partition, queue)

    def drain(self, leader_of: LeaderOf, can_send_to: Callable[[int], bool], now_ms: float) -> Drained:
        """The requests that may be sent now: one for each broker, one batch of a partition in each."""
        self._restart_where_needed()
        drained = Drained()
        bytes_left: dict[int, int] = {}
        for partition, queue in list(self._busy.items()):
            leader = leader_of(*partition)
            if leader is None:
                drained.leaderless.add(partition.topic)
            elif can_send_to(leader.node_id):
                left = bytes_left.get(leader.node_id, self._config.max_request_size)
                request = drained.requests.get(leader.node_id, [])
                batch = self._next(queue, leader, now_ms, drained)
                if batch is not None and (not request or batch.size <= left):
                    request.append(self._sent(queue, batch, leader))
                    drained.requests[leader.node_id] = request
                    bytes_left[leader.node_id] = left - batch.size
        return drained

    def on_answer(self, batch: PendingBatch, answer: Answer, now_ms: float) -> None:
        """What came of a request with this batch. If the batch was given up meanwhile, it is too late."""
        batch.is_sent = False
        if batch.is_done:
            return
        queue = self._queues[batch.partition]
        if answer.code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            # A duplicate that the broker remembers no offset of was written by an earlier request.
            offset = NO_OFFSET if answer.code else answer.offset_base
            queue.acknowledge(batch)
            self._deliveries.on_acknowledged(batch, offset)
        elif answer.code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            parts = self._split(batch)
            queue.replace(batch, parts)
            batch.is_done = True
            self._deliveries.on_split(batch, parts)
        elif self._may_retry(queue, batch, answer, now_ms):
            self._retry(batch, answer, now_ms)
        else:
            self._refused(queue, batch, answer)
        self._after(queue)

    def expire(self, now_ms: float) -> float | None:
        """Give up batches that have taken too long; when the next one will have, None if there is none."""
        next_ms: float | None = None
        for queue in list(self._busy.values()):
            for batch in list(queue):
                due_ms = batch.created_ms + self._config.delivery_timeout_ms
                if due_ms > now_ms:
                    next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
                    # Those behind it are not older; the parts of a split one are as old as it.
                    break
                self._give_up(queue, batch, self._too_late(batch))
            self._after(queue)
        return next_ms

    def fail_all(self, reason: str, code: int | None = None) -> None:
        """Give up everything."""
        for queue in list(self._busy.values()):
            for batch in list(queue):
                self._give_up(queue, batch, reason, code)
            self._after(queue)

    # Sending

    def _next(
        self, queue: PartitionQueue, leader: Leader, now_ms: float, drained: Drained
    ) -> PendingBatch | None:
        """The one batch of a partition that may be sent to its leader now."""
        if queue.has_retries:
            return self._next_retry(queue, leader, now_ms, drained)
        if not queue.fresh or queue.wants_restart or queue.is_unresolved or self.identity is None:
            return None
        if queue.sequenced:
            is_stale = queue.identity != self.identity
            is_crowded = len(queue.sequenced) >= self._config.max_in_flight_requests_per_connection
            # What is under way to the former leader may still be written: it comes first.
            is_elsewhere = queue.node_in_use != leader.node_id
            if is_stale or is_crowded or is_elsewhere or (self.is_idempotent and not queue.is_known):
                return None
        return queue.fresh[0]

    def _next_retry(
        self, queue: PartitionQueue, leader: Leader, now_ms: float, drained: Drained
    ) -> PendingBatch | None:
        """Only the first in line is sent again, and nothing else until its fate is known."""
        first = queue.sequenced[0]
        if first.is_sent or (queue.wants_restart and not first.is_uncertain):
            return None
        if now_ms < first.retry_at_ms and first.leader_tried == leader:
            drained.look_again(first.retry_at_ms)
            return None
        return first

    def _sent(self, queue: PartitionQueue, batch: PendingBatch, leader: Leader) -> PendingBatch:
        if queue.fresh and queue.fresh[0] is batch:
            queue.take_fresh(self.identity or NO_IDENTITY)
        batch.is_sent = True
        batch.leader_tried = leader
        # Whoever was served goes to the end of the line.
        self._busy[queue.partition] = self._busy.pop(queue.partition)
        return batch

    def _restart_where_needed(self) -> None:
        """Begin again with sequence 0 where sequences were lost, under the next epoch (KIP-360)."""
        ready = [queue for queue in self._restarting.values() if queue.can_restart]
        if not ready or self.identity is None:
            return
        if self.identity.epoch >= EPOCH_MAX:
            # The epochs of this producer id are used up; the queues restart under the next one.
            self.identity = None
            return
        self.identity = Identity(self.identity.producer_id, self.identity.epoch + 1)
        for queue in ready:
            queue.restart(self.identity)
            del self._restarting[queue.partition]

    # Answers

    def _may_retry(self, queue: PartitionQueue, batch: PendingBatch, answer: Answer, now_ms: float) -> bool:
        if batch.attempts >= self._config.retries:
            return False
        if now_ms >= batch.created_ms + self._config.delivery_timeout_ms:
            return False
        if self.is_idempotent and answer.code in _SEQUENCE_LOST:
            self._lost_sequence(queue, batch, answer)
            return True
        return answer.code in RETRIABLE

    def _lost_sequence(self, queue: PartitionQueue, batch: PendingBatch, answer: Answer) -> None:
        """The broker misses what comes before the batch. Unless that is still on its way, there is a gap."""
        if batch is not queue.sequenced[0]:
            return
        if answer.code == ErrorCode.UNKNOWN_PRODUCER_ID and answer.offset_log_start == NO_OFFSET:
            # The partition has just moved away; its new leader will tell.
            return
        queue.none_was_written()
        queue.wants_restart = True

    def _retry(self, batch: PendingBatch, answer: Answer, now_ms: float) -> None:
        batch.attempts += 1
        batch.last_error = answer.text
        self._note(batch, answer)
        config = self._config
        batch.retry_at_ms = now_ms + backoff_ms(
            config.retry_backoff_ms, config.retry_backoff_max_ms, batch.attempts, self._entropy
        )

    def _note(self, batch: PendingBatch, answer: Answer) -> None:
        """Remember that the batch may be written, if it may."""
        if answer.code in RETRIABLE and not answer.never_left and answer.code not in _SURELY_NOT_WRITTEN:
            batch.is_uncertain = True

    def _refused(self, queue: PartitionQueue, batch: PendingBatch, answer: Answer) -> None:
        """The batch will not be written. Its sequences are lost, and those behind it need others."""
        queue.wants_restart = self.is_idempotent
        self._note(batch, answer)
        self._give_up(queue, batch, answer.text, answer.code, answer.record_errors)

    # Endings

    def _too_late(self, batch: PendingBatch) -> str:
        limit = f"not acknowledged within delivery.timeout.ms={self._config.delivery_timeout_ms}"
        if batch.last_error is not None:
            return f"{limit}; the last error was {batch.last_error}"
        if batch.is_sent:
            return f"{limit}; the broker did not answer"
        if self.needs_identity:
            return f"{limit}; no producer id could be had"
        return f"{limit}; it was never sent, its leader was unknown, unreachable or busy"

    def _give_up(
        self,
        queue: PartitionQueue,
        batch: PendingBatch,
        reason: str,
        code: int | None = None,
        record_errors: tuple[RecordError, ...] = (),
    ) -> None:
        if batch.sequence != NO_SEQUENCE and not queue.wants_restart:
            # Whether its sequences were written shows when those behind it are answered.
            queue.is_unresolved = True
        queue.remove(batch)
        may_be_written = batch.is_sent or batch.is_uncertain
        failure = Failure(batch.partition, batch.count, reason, code, record_errors, may_be_written)
        self._deliveries.on_failed(batch, failure)

    def _after(self, queue: PartitionQueue) -> None:
        queue.settle()
        if queue.wants_restart:
            self._restarting[queue.partition] = queue
        if not queue:
            self._busy.pop(queue.partition, None)
