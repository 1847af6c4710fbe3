"""Decides whether a producer's batches may be appended, and what they would change.

One `ProducerAppend` collects the changes of one producer over the batches of one append. Nothing is
changed before the bytes are written: the caller merges the result into the producer state afterwards."""

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.log_position import LogPosition
from headrace.log.producer_entry import (
    SEQUENCE_MAX,
    CompletedTransaction,
    OpenTransaction,
    ProducerEntry,
    RememberedBatch,
    VerificationEntry,
)
from headrace.records.batch import Batch
from headrace.records.control import ControlType, EndTransactionMarker, read_end_transaction_marker
from headrace.types import NO_PRODUCER_EPOCH, NO_SEQUENCE

TRANSACTION_VERSION_UNKNOWN = -1
EPOCH_MAX = 2**15 - 1


class ProducerAppend:
    """The pending changes of one producer in one append."""

    __slots__ = ("current", "name", "origin", "started", "updated", "verification")

    def __init__(
        self,
        name: str,
        current: ProducerEntry,
        origin: AppendOrigin,
        verification: VerificationEntry | None,
    ) -> None:
        self.name = name
        self.current = current
        self.origin = origin
        self.verification = verification
        self.updated = ProducerEntry(
            current.producer_id,
            current.epoch,
            current.coordinator_epoch,
            current.last_timestamp,
            current.transaction_first_offset,
        )
        self.started: list[OpenTransaction] = []

    def append(
        self, batch: Batch, first: LogPosition | None, transaction_version: int
    ) -> CompletedTransaction | None:
        """Take one batch; returns the transaction it ends, if it is a marker that ends one."""
        if batch.is_control:
            if batch.count == 0:
                return None
            marker = read_end_transaction_marker(batch)
            return self._append_marker(marker, batch, transaction_version)
        self.append_data(batch, first or LogPosition(batch.base_offset))
        return None

    def append_data(self, batch: Batch, first: LogPosition) -> None:
        """Check a data batch and note it, opening a transaction where it is the first of one."""
        self._check_epoch(batch.producer_epoch, first.offset, TRANSACTION_VERSION_UNKNOWN)
        if self.origin is AppendOrigin.CLIENT:
            self._check_sequence(batch.producer_epoch, batch.base_sequence, first.offset)
        updated = self.updated
        last_offset = batch.last_offset
        updated.add_batch(
            batch.producer_epoch,
            RememberedBatch(
                batch.last_sequence, last_offset, last_offset - first.offset, batch.max_timestamp
            ),
        )
        if updated.transaction_first_offset is not None:
            if not batch.is_transactional:
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"producer {updated.producer_id} has a transaction open in {self.name}, "
                    f"but its batch at offset {first.offset} is not transactional",
                )
        elif batch.is_transactional:
            updated.transaction_first_offset = first.offset
            self.started.append(OpenTransaction(updated.producer_id, first))

    def _append_marker(
        self, marker: EndTransactionMarker, batch: Batch, transaction_version: int
    ) -> CompletedTransaction | None:
        if transaction_version == TRANSACTION_VERSION_UNKNOWN:
            if self.origin is not AppendOrigin.REPLICATION:
                raise ValueError("a transaction marker needs the transaction version it is written under")
            # Followers and recovery see the bytes alone; the leader has applied the stricter rule already.
            transaction_version = 0
        offset = batch.base_offset
        self._check_epoch(batch.producer_epoch, offset, transaction_version)
        self._check_coordinator_epoch(marker.coordinator_epoch, offset)
        updated = self.updated
        completed = None
        if updated.transaction_first_offset is not None:
            completed = CompletedTransaction(
                updated.producer_id,
                updated.transaction_first_offset,
                offset,
                marker.type is ControlType.ABORT,
            )
        updated.move_to_epoch(batch.producer_epoch)
        updated.coordinator_epoch = marker.coordinator_epoch
        updated.transaction_first_offset = None
        updated.last_timestamp = batch.max_timestamp
        return completed

    def _check_epoch(self, epoch: int, offset: int, transaction_version: int) -> None:
        known = self.updated.epoch
        strict = transaction_version >= 2
        if epoch > known or (epoch == known and not strict):
            return
        if strict and epoch == known and self._is_marker_retry(epoch):
            return
        if self.origin is AppendOrigin.REPLICATION:
            return
        comparison = "not above" if strict else "below"
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {epoch} of producer {self.updated.producer_id} at offset {offset} in {self.name} is "
            f"{comparison} the last seen epoch {known}",
        )

    def _is_marker_retry(self, epoch: int) -> bool:
        """With transaction version 2 each marker raises the epoch, so an equal one repeats the last."""
        return self.updated.transaction_first_offset is None or epoch == EPOCH_MAX

    def _check_coordinator_epoch(self, epoch: int, offset: int) -> None:
        known = self.updated.coordinator_epoch
        if known > epoch and self.origin is not AppendOrigin.REPLICATION:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"the marker of producer {self.updated.producer_id} at offset {offset} in {self.name} comes "
                f"from coordinator epoch {epoch}, but epoch {known} is known",
            )

    def _check_sequence(self, epoch: int, first_sequence: int, offset: int) -> None:
        verification = self.verification
        current = self.current
        if verification is not None:
            if verification.supports_epoch_bump and first_sequence != 0 and not current.batches:
                self._refuse_sequence(first_sequence, offset, "expected 0 of a producer without state here")
            if first_sequence > verification.lowest_sequence:
                self._refuse_sequence(
                    first_sequence, offset, f"{verification.lowest_sequence} is the earliest seen"
                )
        updated = self.updated
        if epoch != updated.epoch:
            if first_sequence != 0 and updated.epoch != NO_PRODUCER_EPOCH:
                self._refuse_sequence(
                    first_sequence, offset, f"expected 0 in the new epoch {epoch} after epoch {updated.epoch}"
                )
            return
        if updated.batches:
            last_sequence = updated.last_sequence
        elif epoch == current.epoch:
            last_sequence = current.last_sequence
        else:
            last_sequence = NO_SEQUENCE
        if current.epoch != NO_PRODUCER_EPOCH and not _follows(last_sequence, first_sequence):
            self._refuse_sequence(first_sequence, offset, f"the last sequence was {last_sequence}")

    def _refuse_sequence(self, sequence: int, offset: int, reason: str) -> None:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"sequence {sequence} of producer {self.updated.producer_id} at offset {offset} in {self.name} "
            f"is out of order: {reason}",
        )


def _follows(last_sequence: int, next_sequence: int) -> bool:
    if next_sequence == last_sequence + 1:
        return True
    return next_sequence == 0 and last_sequence == SEQUENCE_MAX
