"""What a partition remembers about one producer: its epoch, its last five batches and its open transaction.

Entries are plain state: which batches are acceptable is decided in `producer_append`."""

from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.log.log_position import LogPosition
from headrace.types import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

BATCHES_REMEMBERED = 5
SEQUENCE_MAX = 2**31 - 1
NO_COORDINATOR_EPOCH = -1


class RememberedBatch(NamedTuple):
    """One batch of a producer, as far as a retry of it needs to be recognised and answered."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        if self.last_sequence >= self.offset_delta:
            return self.last_sequence - self.offset_delta
        return SEQUENCE_MAX - (self.offset_delta - self.last_sequence) + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """The state of one producer id."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    last_timestamp: int = NO_TIMESTAMP
    transaction_first_offset: int | None = None
    batches: list[RememberedBatch] = field(default_factory=list)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def add_batch(self, epoch: int, batch: RememberedBatch) -> None:
        """Remember a batch; a new epoch forgets the batches of the former one."""
        self.move_to_epoch(epoch)
        self.batches.append(batch)
        if len(self.batches) > BATCHES_REMEMBERED:
            del self.batches[0]
        self.last_timestamp = batch.timestamp

    def move_to_epoch(self, epoch: int) -> None:
        """Take over an epoch; sequences start afresh in each."""
        if self.epoch != epoch:
            self.batches.clear()
            self.epoch = epoch

    def find_duplicate(self, epoch: int, first_sequence: int, last_sequence: int) -> RememberedBatch | None:
        """The remembered batch with exactly these sequences, if the epoch is the current one."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def merge(self, newer: "ProducerEntry") -> None:
        """Take over what one append has added to this producer."""
        self.move_to_epoch(newer.epoch)
        self.batches.extend(newer.batches)
        del self.batches[:-BATCHES_REMEMBERED]
        self.coordinator_epoch = newer.coordinator_epoch
        self.transaction_first_offset = newer.transaction_first_offset
        self.last_timestamp = newer.last_timestamp


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that has begun; `last_offset` is its marker's once there is one."""

    producer_id: int
    first: LogPosition
    last_offset: int | None = None


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class VerificationGuard:
    """Proof that a transaction was verified with its coordinator; each is equal to itself alone.

    An abort marker that arrives between verification and append takes the guard away, so that a stale
    answer of the coordinator can't open the next transaction."""

    __slots__ = ()


NO_VERIFICATION_GUARD = VerificationGuard()


@dataclass(slots=True)
class VerificationEntry:
    """A verification under way for a producer that has no transaction open in this partition yet."""

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def observe(self, sequence: int, epoch: int) -> None:
        """Note a further request of the same producer while verification is under way."""
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
