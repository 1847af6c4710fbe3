"""Decides on EndTxn, and on ending transactions that have timed out or whose producer was replaced.

With transaction version 2 the epoch tells a retry from the end of the next transaction: the epoch before the
present one repeats the last request, the present one is a new request."""

from dataclasses import dataclass
from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.metadata import EPOCH_MAX, TransactionMetadata
from headrace.transactions.producer_ids import ProducerIdNeeded
from headrace.transactions.states import TransactionState
from headrace.transactions.versions import VERSION_0, bumps_epochs
from headrace.types import NO_PRODUCER_ID

_AT_REST_AFTER: Final = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
_ENDING_FOR: Final = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}


@dataclass(slots=True, frozen=True)
class Ending:
    """A producer that ends its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    client_version: int


def decide_end(
    current: TransactionMetadata | None, wanted: Ending, new_producer_id: int | None, now_ms: int
) -> TransactionMetadata | None:
    """What to write; None if the request is a retry of one that was done."""
    if current is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if bumps_epochs(wanted.client_version):
        return _end_with_own_epoch(current, wanted, new_producer_id, now_ms)
    return _end_within_epoch(current, wanted, now_ms)


def abort_by_fence(
    current: TransactionMetadata, new_producer_id: int | None, server_version: int, now_ms: int
) -> TransactionMetadata:
    """Abort an open transaction on the coordinator's own account, and shut out its producer."""
    if not bumps_epochs(server_version):
        return current.fenced().ending(TransactionState.PREPARE_ABORT, VERSION_0, NO_PRODUCER_ID, now_ms)
    successor = _successor(current, new_producer_id)
    return current.ending(TransactionState.PREPARE_ABORT, server_version, successor, now_ms)


def _end_within_epoch(
    current: TransactionMetadata, wanted: Ending, now_ms: int
) -> TransactionMetadata | None:
    if current.producer_id != wanted.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if current.producer_epoch != wanted.producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if current.state is TransactionState.ONGOING:
        return current.ending(_ENDING_FOR[wanted.commit], VERSION_0, NO_PRODUCER_ID, now_ms)
    if current.state.is_ending:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if current.state is _AT_REST_AFTER[wanted.commit]:
        return None
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _end_with_own_epoch(
    current: TransactionMetadata, wanted: Ending, new_producer_id: int | None, now_ms: int
) -> TransactionMetadata | None:
    if current.state.is_ending:
        # The end of the transaction may bring a new producer id, so nothing can be said about this one yet.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    after_rollover = _repeats_before_rollover(current, wanted)
    if current.producer_id != wanted.producer_id and not after_rollover:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    state = current.state
    is_retry = after_rollover or current.producer_epoch == wanted.producer_epoch + 1
    has_ended = state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    if current.producer_epoch != wanted.producer_epoch and not (is_retry and has_ended):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if is_retry:
        if state is _AT_REST_AFTER[wanted.commit]:
            return None
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if wanted.commit and state is not TransactionState.ONGOING:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    successor = _successor(current, new_producer_id)
    return current.ending(_ENDING_FOR[wanted.commit], wanted.client_version, successor, now_ms)


def _repeats_before_rollover(current: TransactionMetadata, wanted: Ending) -> bool:
    """Whether the request ended the transaction that used up the last epoch of the former producer id."""
    return (
        current.previous_producer_id == wanted.producer_id
        and wanted.producer_epoch == EPOCH_MAX - 1
        and current.producer_epoch == 0
    )


def _successor(current: TransactionMetadata, new_producer_id: int | None) -> int:
    """The producer id that takes over once this one's epochs are used up."""
    if not current.is_epoch_exhausted:
        return NO_PRODUCER_ID
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id
