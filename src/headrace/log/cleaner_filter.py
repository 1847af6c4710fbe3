"""Which batches and records survive compaction, and in what form. Reads and writes no files.

A record goes if a later one of the compacted range has its key, a tombstone also once the delete horizon of
its batch has passed, and all data of aborted transactions. A batch that its producer or the next round would
miss stays, empty. A marker goes when no data of its transaction is left and its horizon has passed, too."""

from headrace.log.cleaner_plan import CleanPlan, CleanStats
from headrace.log.cleaner_transactions import CleanedTransactions
from headrace.log.offset_map import OffsetMap
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import BytesLike
from headrace.records.batch import Batch
from headrace.records.filter import empty_batch, filter_batch
from headrace.records.spans import iter_keys

NOTHING = b""


class RetentionFilter:
    """Takes the batches of a log in order and hands back what to write in their place.

    `aborted` collects the entries for the transaction index of the segment being written."""

    __slots__ = ("_horizon_new", "_offsets", "_plan", "_stats", "_transactions", "aborted")

    def __init__(
        self, plan: CleanPlan, offsets: OffsetMap, transactions: CleanedTransactions, stats: CleanStats
    ) -> None:
        self._plan = plan
        self._offsets = offsets
        self._transactions = transactions
        self._stats = stats
        self._horizon_new = plan.now_ms + plan.settings.delete_retention_ms
        self.aborted: list[AbortedTransaction] = []

    def retained(self, batch: Batch) -> BytesLike:
        """The batch as it was, with fewer records, without any, or nothing."""
        self._stats.bytes_read += batch.size
        out = self._control(batch) if batch.is_control else self._data(batch)
        self._stats.bytes_written += len(out)
        return out

    def _control(self, batch: Batch) -> BytesLike:
        marker = self._transactions.on_control(batch)
        if marker.aborted is not None:
            self.aborted.append(marker.aborted)
        horizon = batch.delete_horizon_ms
        is_due = marker.is_discardable and horizon is not None and horizon <= self._plan.now_ms
        if is_due or not batch.count:
            return self._without_records(batch)
        self._stats.records_read += batch.count
        self._stats.records_written += batch.count
        if marker.is_discardable and horizon is None:
            return filter_batch(batch, _any, delete_horizon_ms=self._horizon_new)
        return batch.data

    def _data(self, batch: Batch) -> BytesLike:
        if self._transactions.on_data(batch) or not batch.count:
            return self._without_records(batch)
        kept, has_tombstone = self._records_kept(batch)
        self._stats.records_read += batch.count
        self._stats.records_written += len(kept)
        if not kept:
            return self._without_records(batch)
        horizon = self._horizon_new if has_tombstone and not batch.has_delete_horizon else None
        if len(kept) == batch.count and horizon is None:
            return batch.data
        return filter_batch(batch, kept.__contains__, delete_horizon_ms=horizon)

    def _records_kept(self, batch: Batch) -> tuple[set[int], bool]:
        """The offset deltas of the records that stay, and whether a tombstone is among them."""
        base = batch.base_offset
        last_mapped = self._offsets.last_offset
        last_offset_of = self._offsets.finder()
        horizon = batch.delete_horizon_ms
        keeps_tombstones = horizon is None or self._plan.now_ms < horizon
        kept = set()
        has_tombstone = False
        for delta, key, has_value in iter_keys(batch):
            offset = base + delta
            if offset <= last_mapped:
                if key is None:
                    self._stats.keyless_records += 1
                    continue
                if last_offset_of(key) > offset or not (has_value or keeps_tombstones):
                    continue
            kept.add(delta)
            has_tombstone |= not has_value
        return kept, has_tombstone

    def _without_records(self, batch: Batch) -> BytesLike:
        """An empty batch where one is needed: for its producer, or to mark how far this round has come."""
        if batch.next_offset != self._plan.end_offset and not self._is_last_of_producer(batch):
            return NOTHING
        return batch.data if not batch.count else empty_batch(batch)

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self._plan.last_records.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.data_offset is not None:
            return batch.last_offset == last.data_offset
        return batch.is_control and batch.producer_epoch == last.epoch


def _any(_: int) -> bool:
    return True
