"""One round of compaction: reads closed segments, writes `.cleaned` ones, and touches nothing else.

This is the part that runs in a worker process. Whoever asked for it swaps the result in, or discards it."""

from collections.abc import Callable, Iterator
from typing import Final

from headrace.log.cleaned_segment import CleanedSegment
from headrace.log.cleaner_filter import RetentionFilter
from headrace.log.cleaner_plan import (
    CleanedGroup,
    CleanPlan,
    CleanResult,
    CleanStats,
    SegmentToClean,
    group_segments,
)
from headrace.log.cleaner_transactions import CleanedTransactions
from headrace.log.offset_map import OffsetMap
from headrace.log.segment_files import log_path, transaction_index_path
from headrace.log.segment_scan import scan_checked
from headrace.log.throttle import Throttle
from headrace.log.transaction_index import AbortedTransaction, TransactionIndex
from headrace.ports import Disk, Pace
from headrace.records.batch import Batch
from headrace.records.spans import iter_keys

# Steps in which progress is told to the throttle; smaller ones would cost more than they smooth.
THROTTLE_BYTES: Final = 256 * 1024


def clean(open_disk: Callable[[], Disk], open_pace: Callable[[], Pace], plan: CleanPlan) -> CleanResult:
    """Do a round of compaction. The arguments can be pickled if the two factories are classes."""
    return CleaningRound(open_disk(), open_pace(), plan).run()


class CleaningRound:
    """The state of one round."""

    __slots__ = ("_aborted", "_disk", "_offsets", "_pace", "_plan", "_stats", "_throttle", "_unpaced")

    def __init__(self, disk: Disk, pace: Pace, plan: CleanPlan) -> None:
        self._disk = disk
        self._pace = pace
        self._plan = plan
        self._throttle = Throttle(plan.bytes_per_second, pace)
        self._unpaced = 0
        self._stats = CleanStats()
        self._offsets = OffsetMap(plan.dedupe_bytes, plan.dedupe_load_factor)
        self._offsets.last_offset = plan.first_dirty_offset - 1
        self._aborted = self._aborted_transactions()

    def run(self) -> CleanResult:
        """Learn the last offset of every key that fits, then rewrite every segment up to there."""
        started_ms = self._pace.monotonic_ms()
        self._map_dirty_segments()
        self._stats.map_ms = self._pace.monotonic_ms() - started_ms
        self._stats.map_utilisation = self._offsets.utilisation
        next_dirty = self._offsets.last_offset + 1
        segments = [segment for segment in self._plan.segments if segment.base_offset < next_dirty]
        transactions = CleanedTransactions(self._aborted)
        retention = RetentionFilter(self._plan, self._offsets, transactions, self._stats)
        groups = [
            self._clean_group(group, retention)
            for group in group_segments(segments, self._plan.settings, self._plan.end_offset)
        ]
        self._disk.sync_directory(self._plan.directory)
        self._stats.elapsed_ms = self._pace.monotonic_ms() - started_ms
        return CleanResult(tuple(groups), next_dirty, self._stats)

    def _aborted_transactions(self) -> list[AbortedTransaction]:
        aborted = list(self._plan.aborted_later)
        for segment in self._plan.segments:
            path = transaction_index_path(self._plan.directory, segment.base_offset)
            index = TransactionIndex(self._disk, path, segment.base_offset)
            aborted += index
            index.close()
        return aborted

    # The offset map

    def _map_dirty_segments(self) -> None:
        plan = self._plan
        start = plan.first_dirty_offset
        transactions = CleanedTransactions(each for each in self._aborted if each.last_offset >= start)
        bounds = [*(segment.base_offset for segment in plan.segments), plan.end_offset][1:]
        for segment, following in zip(plan.segments, bounds, strict=True):
            if following > start:
                if not self._map_segment(segment, transactions):
                    return
                # Offsets that are missing at a segment's end have been dealt with, too.
                self._offsets.last_offset = following - 1

    def _map_segment(self, segment: SegmentToClean, transactions: CleanedTransactions) -> bool:
        """Enter a segment's keys; returns false if the map filled up on the way."""
        start = self._plan.first_dirty_offset
        for batch in self._batches(segment):
            self._stats.map_bytes_read += batch.size
            self._stats.map_records_read += batch.count
            is_mapped = batch.last_offset < start
            if batch.is_control:
                transactions.on_control(batch)
            elif not transactions.on_data(batch) and not is_mapped and not self._map_batch(batch, start):
                return False
            if not is_mapped:
                self._offsets.last_offset = batch.last_offset
        return True

    def _map_batch(self, batch: Batch, start: int) -> bool:
        """Enter a batch's keys from the offset `start` on; returns false if the map filled up on the way."""
        base = batch.base_offset
        records = iter_keys(batch)
        if base >= start:
            return self._offsets.put_all(base, records)
        return self._offsets.put_all(base, (each for each in records if base + each[0] >= start))

    # The rewrite

    def _clean_group(self, group: list[SegmentToClean], retention: RetentionFilter) -> CleanedGroup:
        plan = self._plan
        cleaned = CleanedSegment(self._disk, plan.directory, group[0].base_offset, plan.settings)
        for segment in group:
            for batch in self._batches(segment):
                retained = retention.retained(batch)
                if retained:
                    cleaned.append(retained)
                    self._passed(len(retained))
        cleaned.add_aborted(retention.aborted)
        retention.aborted.clear()
        cleaned.finish()
        return CleanedGroup(group[0].base_offset, tuple(each.base_offset for each in group), cleaned.size)

    # Both

    def _batches(self, segment: SegmentToClean) -> Iterator[Batch]:
        """A segment's batches, their checksums verified: damage must not be given a new, valid checksum."""
        file = self._disk.open(log_path(self._plan.directory, segment.base_offset))
        for found in scan_checked(file, segment.base_offset, 0, segment.size):
            self._passed(found.size)
            yield Batch(found.chunk, found.start)
        file.close()

    def _passed(self, count: int) -> None:
        self._unpaced += count
        if self._unpaced >= THROTTLE_BYTES:
            self._throttle.passed(self._unpaced)
            self._unpaced = 0
