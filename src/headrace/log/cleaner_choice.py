"""Which part of a log may be compacted, how dirty it is, and what a worker is told about it."""

from dataclasses import dataclass
from typing import NamedTuple

from headrace.log.cleaner_plan import CleanPlan, LastRecord, SegmentToClean
from headrace.log.partition_log import PartitionLog
from headrace.log.segment import Segment
from headrace.log.settings import LONG_MAX, CleanerSettings
from headrace.log.transaction_index import AbortedTransaction


class FirstDirty(NamedTuple):
    """Where compaction goes on, and why that is not where the checkpoint says, if so."""

    offset: int
    correction: str | None


@dataclass(slots=True, frozen=True)
class LogToClean:
    """A compacted log as it stands: what is clean, what is dirty and cleanable, and how urgent that is.

    `delay_ms` is by how much `max.compaction.lag.ms` has been exceeded."""

    log: PartitionLog
    first_dirty: FirstDirty
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    delay_ms: int

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough, or has been dirty for too long."""
        if not self.dirty_bytes:
            return False
        return self.delay_ms > 0 or self.dirty_ratio > self.log.settings.min_cleanable_dirty_ratio


def examine(log: PartitionLog, checkpoint: int | None, now_ms: int) -> LogToClean:
    """Find out how far a log was cleaned and how far it could be.

    The active segment, anything at or beyond the last stable offset, and segments with records younger than
    `min.compaction.lag.ms` stay as they are."""
    first_dirty = _first_dirty(log, checkpoint)
    closed = [segment for segment in log.segments if segment is not log.segments.active]
    dirty_start = _segment_start(log, first_dirty.offset)
    dirty = [segment for segment in closed if segment.base_offset >= dirty_start]
    end_offset = _segment_start(log, max(first_dirty.offset, _first_uncleanable(log, dirty, now_ms)))
    return LogToClean(
        log=log,
        first_dirty=first_dirty,
        end_offset=end_offset,
        clean_bytes=sum(segment.size for segment in closed if segment.base_offset < first_dirty.offset),
        dirty_bytes=sum(segment.size for segment in dirty if segment.base_offset < end_offset),
        delay_ms=_compaction_delay_ms(dirty, log.settings.max_compaction_lag_ms, now_ms),
    )


def plan_of(candidate: LogToClean, settings: CleanerSettings, now_ms: int) -> CleanPlan:
    """The work for one round, with this worker's share of the buffer and of the rate."""
    log = candidate.log
    closed = [segment for segment in log.segments if segment.base_offset < candidate.end_offset]
    return CleanPlan(
        name=str(log.partition),
        directory=log.directory,
        segments=tuple(_describe(segment) for segment in closed),
        first_dirty_offset=candidate.first_dirty.offset,
        end_offset=candidate.end_offset,
        now_ms=now_ms,
        settings=log.settings,
        dedupe_bytes=settings.dedupe_buffer_bytes // settings.threads,
        dedupe_load_factor=settings.dedupe_buffer_load_factor,
        bytes_per_second=settings.io_max_bytes_per_second / settings.threads,
        last_records=_last_records(log),
        aborted_later=_aborted_later(log, candidate.end_offset),
    )


def _first_dirty(log: PartitionLog, checkpoint: int | None) -> FirstDirty:
    start = log.log_start_offset
    if checkpoint is None:
        return FirstDirty(start, None)
    if checkpoint < start:
        return FirstDirty(start, f"its first dirty offset {checkpoint} lies before its start {start}")
    if checkpoint > log.log_end_offset:
        end = log.log_end_offset
        return FirstDirty(start, f"its first dirty offset {checkpoint} lies beyond its end {end}")
    return FirstDirty(checkpoint, None)


def _first_uncleanable(log: PartitionLog, dirty: list[Segment], now_ms: int) -> int:
    bound = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        young = (each.base_offset for each in dirty if each.largest_timestamp > now_ms - lag_ms)
        bound = min(bound, next(young, bound))
    return bound


def _segment_start(log: PartitionLog, offset: int) -> int:
    """The base offset of the segment that holds `offset`: segments are cleaned as a whole."""
    segment = log.segments.floor(offset)
    return log.segments.first.base_offset if segment is None else segment.base_offset


def _compaction_delay_ms(dirty: list[Segment], lag_max_ms: int, now_ms: int) -> int:
    if lag_max_ms == LONG_MAX:
        return 0
    timestamps = (segment.first_batch_timestamp for segment in dirty)
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=LONG_MAX)
    return max(0, now_ms - max(lag_max_ms, 0) - earliest)


def _describe(segment: Segment) -> SegmentToClean:
    offsets, times = segment.offset_index, segment.time_index
    return SegmentToClean(
        segment.base_offset, segment.size, len(offsets) * offsets.ENTRY.size, len(times) * times.ENTRY.size
    )


def _last_records(log: PartitionLog) -> dict[int, LastRecord]:
    return {
        producer_id: LastRecord(entry.last_data_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in log.producers.entries.items()
    }


def _aborted_later(log: PartitionLog, end_offset: int) -> tuple[AbortedTransaction, ...]:
    """Transactions with data below `end_offset` whose marker lies beyond it."""
    return tuple(
        transaction
        for segment in log.segments.from_base(end_offset)
        for transaction in segment.transaction_index
        if transaction.first_offset < end_offset
    )
