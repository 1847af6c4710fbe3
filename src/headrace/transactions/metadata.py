"""What the coordinator knows of one transactional id, and how it may change.

Metadata is a value: every transition makes a new one. Whether a request may bring a transition about is
decided elsewhere (`init_producer_id`, `add_partitions`, `end_transaction`); here is only what it changes."""

from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.states import TransactionState
from headrace.transactions.versions import VERSION_0, bumps_epochs
from headrace.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

EPOCH_MAX: Final = 2**15 - 1
TIMEOUT_NEVER_MS: Final = 2**31 - 1
_NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()


def is_epoch_exhausted(epoch: int) -> bool:
    """Whether a producer may not be given a higher epoch: the last one is kept to fence it with."""
    return epoch >= EPOCH_MAX - 1


class IllegalTransition(Exception):
    """A transition that no request may lead to: a bug, never a client's mistake."""


@dataclass(slots=True, frozen=True)
class TransactionMetadata:
    """One transactional id.

    `previous_producer_id` is the id before the last transition, `next_producer_id` the one that takes over
    when the transaction has ended. `last_producer_epoch` is the epoch before the last one that was given to
    the producer; it is not on disk, and not known after a restart. `client_version` is the transaction
    version of the producer, `start_ms` when its transaction began."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = _NO_PARTITIONS
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    client_version: int = VERSION_0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the next epoch needs a new producer id."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def commits(self) -> bool:
        """Whether the transaction that is ending is committed."""
        return self.state is TransactionState.PREPARE_COMMIT

    def has_timed_out(self, now_ms: int) -> bool:
        """Whether the transaction is open for longer than its producer asked for."""
        if self.state is not TransactionState.ONGOING or self.timeout_ms == TIMEOUT_NEVER_MS:
            return False
        return self.start_ms + self.timeout_ms < now_ms

    # Given to a producer

    def with_epoch_raised(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> "TransactionMetadata":
        """A new session of the producer. One that names the epoch it had is recognised when it retries."""
        if self.is_epoch_exhausted:
            raise IllegalTransition(
                f"producer {self.producer_id} of {self.transactional_id} has no epoch left"
            )
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
                last_epoch = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                # It asks again since it has not heard the answer, which still stands.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return self._at_rest(timeout_ms, now_ms, self.producer_id, epoch, last_epoch)

    def with_new_producer_id(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, remembers_epoch: bool
    ) -> "TransactionMetadata":
        """A new session under another producer id, since the epochs of this one are used up."""
        last_epoch = self.producer_epoch if remembers_epoch else NO_PRODUCER_EPOCH
        return self._at_rest(timeout_ms, now_ms, producer_id, 0, last_epoch)

    def _at_rest(
        self, timeout_ms: int, now_ms: int, producer_id: int, epoch: int, last_epoch: int
    ) -> "TransactionMetadata":
        return self._moved(
            TransactionState.EMPTY,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=_NO_PARTITIONS,
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    # In the course of a transaction

    def with_partitions(
        self, added: frozenset[TopicPartition], now_ms: int, client_version: int
    ) -> "TransactionMetadata":
        """More partitions take part; the first ones begin the transaction."""
        begun = self.state is TransactionState.ONGOING
        return self._moved(
            TransactionState.ONGOING,
            partitions=self.partitions | added,
            start_ms=self.start_ms if begun else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def ending(
        self, state: TransactionState, client_version: int, next_producer_id: int, now_ms: int
    ) -> "TransactionMetadata":
        """The outcome is decided. With transaction version 2 the producer's epoch ends with it."""
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if bumps_epochs(client_version):
            last_epoch = epoch
            if epoch < EPOCH_MAX:
                epoch += 1
            elif state is not TransactionState.PREPARE_ABORT:
                raise IllegalTransition(f"no epoch is left to commit {self.transactional_id} with")
        return self._moved(
            state,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            next_producer_id=next_producer_id,
            # What was not begun has no time of its own, yet one has to be written.
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self) -> "TransactionMetadata":
        """Under an epoch that nobody was given, so that the producer of this one is shut out."""
        epoch = min(self.producer_epoch + 1, EPOCH_MAX)
        return replace(self, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """All partitions know the outcome. A producer id that takes over does so here."""
        state = TransactionState.COMPLETE_COMMIT if self.commits else TransactionState.COMPLETE_ABORT
        producer_id, epoch = self.producer_id, self.producer_epoch
        if bumps_epochs(self.client_version) and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._moved(
            state,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_PRODUCER_ID,
            partitions=_NO_PARTITIONS,
            last_update_ms=now_ms,
        )

    def _moved(self, state: TransactionState, **changes: Any) -> "TransactionMetadata":
        if self.state not in state.predecessors:
            raise IllegalTransition(
                f"{self.transactional_id} can't go from {self.state.name} to {state.name}"
            )
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)
