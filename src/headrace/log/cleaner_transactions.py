"""What compaction has to know of transactions while it walks through a log: which were aborted, and which of
their data it has met, so that a marker stays as long as there is something it decides about."""

from collections.abc import Iterable
from heapq import heapify, heappop
from typing import NamedTuple

from headrace.log.transaction_index import AbortedTransaction
from headrace.records.batch import Batch
from headrace.records.control import ControlType, control_type


class PassedMarker(NamedTuple):
    """Whether a marker decides about nothing any more; and if it aborted data that is still there, its entry
    in the transaction index."""

    is_discardable: bool
    aborted: AbortedTransaction | None


class CleanedTransactions:
    """The transactions at the point a walk through the log has come to."""

    __slots__ = ("_aborted_ongoing", "_aborted_upcoming", "_committed_ongoing", "_with_data")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted_upcoming = [(transaction.first_offset, transaction) for transaction in aborted]
        heapify(self._aborted_upcoming)
        self._aborted_ongoing: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()
        self._committed_ongoing: set[int] = set()

    def on_data(self, batch: Batch) -> bool:
        """Pass a batch of data; returns whether its transaction was aborted."""
        self._begin_aborted(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted_ongoing:
            self._with_data.add(batch.producer_id)
            return True
        self._committed_ongoing.add(batch.producer_id)
        return False

    def on_control(self, batch: Batch) -> PassedMarker:
        """Pass a control batch; returns whether it still is needed, and the aborted transaction it ends."""
        self._begin_aborted(batch.last_offset)
        if not batch.count:
            # Emptied by an earlier round, which kept it for its producer only.
            return PassedMarker(True, None)
        kind = control_type(batch)
        if kind is ControlType.ABORT:
            return self._end_aborted(batch.producer_id)
        if kind is ControlType.COMMIT:
            had_data = batch.producer_id in self._committed_ongoing
            self._committed_ongoing.discard(batch.producer_id)
            return PassedMarker(not had_data, None)
        return PassedMarker(False, None)

    def _end_aborted(self, producer_id: int) -> PassedMarker:
        transaction = self._aborted_ongoing.pop(producer_id, None)
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        return PassedMarker(not had_data, transaction if had_data else None)

    def _begin_aborted(self, offset: int) -> None:
        while self._aborted_upcoming and self._aborted_upcoming[0][0] <= offset:
            _, transaction = heappop(self._aborted_upcoming)
            self._aborted_ongoing.setdefault(transaction.producer_id, transaction)
