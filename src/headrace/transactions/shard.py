"""The transactional ids of one partition of `__transaction_state`.

Operations decide and hand out records; only `replay` changes what is known of an id. An id with a record on
its way is closed to further requests until that is committed: producers are told to come back."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from headrace.coordinator.shard import CoordinatorRecord, Decision, ShardContext
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.disk_records.transaction_state import TransactionLogKey, TransactionLogValue
from headrace.protocol.message import Message
from headrace.transactions.add_partitions import Participation, decide_added, missing_partitions
from headrace.transactions.end_transaction import Ending, abort_by_fence, decide_end
from headrace.transactions.init_producer_id import NewSession, decide_session
from headrace.transactions.log_records import key_of, metadata_of, value_of
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.versions import FEATURE, bumps_epochs, record_version
from headrace.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition

if TYPE_CHECKING:
    from headrace.metadata.delta import MetadataDelta
    from headrace.metadata.image import MetadataImage

TOMBSTONES_PER_BATCH: Final = 500

T = TypeVar("T")


class ProducerSession(NamedTuple):
    """The id and epoch that a producer goes on with."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_PRODUCER_EPOCH


NO_SESSION: Final = ProducerSession()


class ShardEvents(Protocol):
    """Who tells partitions of outcomes."""

    def on_ending(
        self, shard: "TransactionShard", metadata: TransactionMetadata, *, is_committed: bool
    ) -> None:
        """An outcome is written. It may be one of before a restart, of which partitions perhaps know.

        Unless `is_committed`, nobody may be told before everything that the shard has is committed."""

    def on_unloaded(self, shard: "TransactionShard") -> None:
        """Another coordinator sees to this shard's outcomes."""


class TransactionShard:
    """A `coordinator.shard.Shard`."""

    __slots__ = ("_decided", "_events", "_image", "in_flight", "index", "transactions")

    def __init__(self, context: ShardContext, events: ShardEvents) -> None:
        self.index, _, self._image = context
        self._events = events
        self.transactions: dict[str, TransactionMetadata] = {}
        self.in_flight: set[str] = set()
        # What was decided knows the epoch before the last one, which the record does not carry.
        self._decided: dict[str, TransactionMetadata] = {}

    @property
    def server_version(self) -> int:
        """The transaction version that the cluster has agreed on."""
        return self._image.feature_level(FEATURE)

    # What the runtime asks

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, key: Message, value: Message | None
    ) -> None:
        """Take over what was written of one transactional id."""
        assert isinstance(key, TransactionLogKey)
        transactional_id = key.transactional_id
        if value is None:
            self.transactions.pop(transactional_id, None)
            return
        assert isinstance(value, TransactionLogValue)
        decided = self._decided.pop(transactional_id, None)
        self.transactions[transactional_id] = decided or metadata_of(transactional_id, value)

    def replay_end_transaction_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The topic is written outside of transactions: there is nothing that a marker would end."""

    def on_loaded(self, image: "MetadataImage") -> None:
        """Requests come from here on; partitions are told of outcomes that they may not know."""
        for metadata in tuple(self.transactions.values()):
            if metadata.state.is_ending:
                self._events.on_ending(self, metadata, is_committed=False)

    def on_new_metadata_image(self, image: "MetadataImage", delta: "MetadataDelta") -> None:
        """The transaction version is looked up when it is needed."""

    def on_unloaded(self) -> None:
        """Another node has these ids now."""
        self._events.on_unloaded(self)

    def state(self) -> Any:
        """What the log adds up to. Without tagged fields, the log has no other producer ids either."""
        knows_all = record_version(self.server_version) > 0
        return {key: _on_disk(metadata, knows_all) for key, metadata in self.transactions.items()}

    # What producers ask

    def begin_session(
        self, wanted: NewSession, new_producer_id: int | None, now_ms: int
    ) -> Decision[ProducerSession | None]:
        """A session of a producer; None if what the one before has left open has to be aborted first."""
        current = self._settled(wanted.transactional_id)
        decided = decide_session(current, wanted, new_producer_id, self.server_version, now_ms)
        if decided.state.is_ending:
            return self._write(decided, None)
        return self._write(decided, ProducerSession(decided.producer_id, decided.producer_epoch))

    def add_partitions(self, wanted: Participation, client_version: int, now_ms: int) -> Decision[None]:
        """Let partitions take part in a transaction, which the first of them begins."""
        current = self._settled(wanted.transactional_id)
        decided = decide_added(current, wanted, client_version, now_ms)
        return Decision((), None) if decided is None else self._write(decided, None)

    def missing_partitions(self, wanted: Participation) -> frozenset[TopicPartition]:
        """The partitions that do not take part."""
        return missing_partitions(self.transactions.get(wanted.transactional_id), wanted)

    def end(self, wanted: Ending, new_producer_id: int | None, now_ms: int) -> Decision[ProducerSession]:
        """The outcome of a transaction. With transaction version 2, the producer goes on in another epoch."""
        current = self._settled(wanted.transactional_id)
        decided = decide_end(current, wanted, new_producer_id, now_ms)
        last = current if decided is None else decided.completed(now_ms)
        assert last is not None
        session = ProducerSession(last.producer_id, last.producer_epoch)
        if not bumps_epochs(wanted.client_version):
            session = NO_SESSION
        return Decision((), session) if decided is None else self._write(decided, session)

    # What the coordinator does of its own accord

    def complete(self, ending: TransactionMetadata, now_ms: int) -> Decision[None]:
        """All partitions know the outcome."""
        if self.transactions.get(ending.transactional_id) is not ending:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return self._write(ending.completed(now_ms), None)

    def abort_timed_out(
        self, transactional_id: str, new_producer_id: int | None, now_ms: int
    ) -> Decision[bool]:
        """Abort a transaction if it is open after its time; whether it was."""
        current = self._settled(transactional_id)
        if current is None or not current.has_timed_out(now_ms):
            return Decision((), False)
        return self._write(abort_by_fence(current, new_producer_id, self.server_version, now_ms), True)

    def timed_out(self, now_ms: int) -> list[str]:
        """The ids of transactions that are open for too long."""
        return [
            transactional_id
            for transactional_id, metadata in self.transactions.items()
            if metadata.has_timed_out(now_ms) and transactional_id not in self.in_flight
        ]

    def expire(self, idle_ms: int, now_ms: int) -> Decision[int]:
        """Forget ids that nobody has used for long; the reply is how many, up to a limit per batch."""
        expired = []
        for transactional_id, metadata in self.transactions.items():
            if not metadata.state.may_expire or metadata.last_update_ms > now_ms - idle_ms:
                continue
            if transactional_id not in self.in_flight:
                expired.append(transactional_id)
                if len(expired) == TOMBSTONES_PER_BATCH:
                    break
        self.in_flight.update(expired)
        records = [CoordinatorRecord(key_of(transactional_id)) for transactional_id in expired]
        return Decision(records, len(expired), on_done=partial(self._on_expired, expired))

    # Writing

    def _settled(self, transactional_id: str) -> TransactionMetadata | None:
        if transactional_id in self.in_flight:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return self.transactions.get(transactional_id)

    def _write(self, decided: TransactionMetadata, reply: T) -> Decision[T]:
        transactional_id = decided.transactional_id
        version = record_version(self.server_version)
        record = CoordinatorRecord(key_of(transactional_id), value_of(decided, version), version)
        self.in_flight.add(transactional_id)
        self._decided[transactional_id] = decided
        return Decision((record,), reply, on_done=partial(self._on_written, decided))

    def _on_written(self, decided: TransactionMetadata, error: BaseException | None) -> None:
        self.in_flight.discard(decided.transactional_id)
        self._decided.pop(decided.transactional_id, None)
        # A record that was not committed in time is in the log all the same, and will be.
        if decided.state.is_ending and self.transactions.get(decided.transactional_id) is decided:
            self._events.on_ending(self, decided, is_committed=error is None)

    def _on_expired(self, transactional_ids: Iterable[str], error: BaseException | None) -> None:
        self.in_flight.difference_update(transactional_ids)


def _on_disk(metadata: TransactionMetadata, knows_all: bool) -> TransactionMetadata:
    metadata = replace(metadata, last_producer_epoch=NO_PRODUCER_EPOCH)
    if knows_all:
        return metadata
    return replace(
        metadata, previous_producer_id=NO_PRODUCER_ID, next_producer_id=NO_PRODUCER_ID, client_version=0
    )
