"""Decides on InitProducerId for a transactional id: a new session, or first the end of the old one."""

from dataclasses import dataclass

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.end_transaction import abort_by_fence
from headrace.transactions.metadata import TransactionMetadata, is_epoch_exhausted
from headrace.transactions.producer_ids import ProducerIdNeeded
from headrace.transactions.states import TransactionState
from headrace.types import NO_PRODUCER_EPOCH


@dataclass(slots=True, frozen=True)
class ProducerIdAndEpoch:
    """What a producer says it has."""

    producer_id: int
    epoch: int


@dataclass(slots=True, frozen=True)
class NewSession:
    """A producer that asks for an id and an epoch; `expected` is what it had, if it goes on from there."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None


def decide_session(
    current: TransactionMetadata | None,
    wanted: NewSession,
    new_producer_id: int | None,
    server_version: int,
    now_ms: int,
) -> TransactionMetadata:
    """What to write. If that is the abort of an open transaction, the producer has to ask again afterwards.

    Raises `ProducerIdNeeded` where a new producer id is due and none was handed in."""
    if current is None:
        current = TransactionMetadata(
            wanted.transactional_id, _given(new_producer_id), wanted.timeout_ms, now_ms
        )
    if current.state.is_ending:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    expected = wanted.expected
    if expected is not None and not _may_be_of(current, expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state is TransactionState.ONGOING:
        return abort_by_fence(current, new_producer_id, server_version, now_ms)
    if current.is_epoch_exhausted and (expected is None or expected.epoch == current.producer_epoch):
        return current.with_new_producer_id(
            _given(new_producer_id), wanted.timeout_ms, now_ms, remembers_epoch=expected is not None
        )
    if current.is_epoch_exhausted:
        # Kafka fails in the same way: there is neither an epoch to give nor a reason for a new id.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return current.with_epoch_raised(wanted.timeout_ms, None if expected is None else expected.epoch, now_ms)


def _may_be_of(current: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether whoever has this id and epoch may be the producer that the coordinator knows.

    An id of which nothing is known any more is anybody's; one that ran out of epochs has been replaced,
    perhaps without the producer's having heard of it."""
    if current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id:
        return True
    return expected.producer_id == current.previous_producer_id and is_epoch_exhausted(expected.epoch)


def _given(producer_id: int | None) -> int:
    if producer_id is None:
        raise ProducerIdNeeded
    return producer_id
