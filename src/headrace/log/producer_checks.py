"""Puts the batches of one append before the producer state: duplicates, verification, sequences, epochs."""

from dataclasses import dataclass, field

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.log_position import LogPosition
from headrace.log.producer_append import ProducerAppend
from headrace.log.producer_entry import (
    NO_VERIFICATION_GUARD,
    CompletedTransaction,
    RememberedBatch,
    VerificationGuard,
)
from headrace.log.producer_state import ProducerState
from headrace.records.batch import Batch


@dataclass(slots=True)
class ProducerChanges:
    """What an append would change about producers; `duplicate` means that nothing is to be written."""

    appends: dict[int, ProducerAppend] = field(default_factory=dict)
    completed: list[CompletedTransaction] = field(default_factory=list)
    verified: list[int] = field(default_factory=list)
    duplicate: RememberedBatch | None = None


def check_producers(
    state: ProducerState,
    found: list[Batch],
    place: LogPosition,
    origin: AppendOrigin,
    guard: VerificationGuard,
    transaction_version: int,
) -> ProducerChanges:
    """Check every batch of an append that begins at `place`; nothing is changed by it."""
    changes = ProducerChanges()
    position = place.position
    for batch in found:
        if batch.producer_id >= 0:
            if origin is AppendOrigin.CLIENT:
                changes.duplicate = _find_duplicate(state, batch)
                if changes.duplicate is not None:
                    return changes
            if batch.is_transactional and origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
                _require_verified(state, batch, guard)
            first = LogPosition(batch.base_offset, place.segment_base, position)
            collect(state, changes, batch, first, origin, transaction_version)
        position += batch.size
    return changes


def collect(
    state: ProducerState,
    changes: ProducerChanges,
    batch: Batch,
    first: LogPosition | None,
    origin: AppendOrigin,
    transaction_version: int,
) -> None:
    """Add one batch of a producer to the changes."""
    producer_id = batch.producer_id
    append = changes.appends.get(producer_id)
    if append is None:
        append = changes.appends[producer_id] = state.prepare(producer_id, origin)
    completed = append.append(batch, first if batch.is_transactional else None, transaction_version)
    if completed is not None:
        changes.completed.append(completed)
    if batch.is_transactional and not _is_next_transaction_waiting(state, batch):
        changes.verified.append(producer_id)


def _find_duplicate(state: ProducerState, batch: Batch) -> RememberedBatch | None:
    entry = state.entries.get(batch.producer_id)
    if entry is None:
        return None
    return entry.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence)


def _require_verified(state: ProducerState, batch: Batch, guard: VerificationGuard) -> None:
    """A transaction may be opened only if the coordinator has said that it knows of it."""
    producer_id = batch.producer_id
    if state.has_ongoing_transaction(producer_id, batch.producer_epoch):
        return
    entry = state.entries.get(producer_id)
    if entry is not None and batch.producer_epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {batch.producer_epoch} of producer {producer_id} in {state.name} is below the last seen "
            f"epoch {entry.epoch}",
        )
    if batch.is_control or not state.settings.transaction_verification_enabled:
        return
    verification = state.verifications.get(producer_id)
    if guard is NO_VERIFICATION_GUARD or verification is None or verification.guard is not guard:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"the batch of producer {producer_id} in {state.name} is not part of a verified transaction",
        )


def _is_next_transaction_waiting(state: ProducerState, batch: Batch) -> bool:
    """With transaction version 2, a marker of the epoch under verification ended the transaction before."""
    verification = state.verifications.get(batch.producer_id)
    return (
        verification is not None
        and verification.supports_epoch_bump
        and batch.is_control
        and batch.producer_epoch == verification.epoch
    )
