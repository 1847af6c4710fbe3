"""Brings producer state to an offset: the newest snapshot up to it, and the log replayed from there."""

from headrace.log.append_origin import AppendOrigin
from headrace.log.log_errors import CorruptLog
from headrace.log.producer_checks import ProducerChanges, collect
from headrace.log.producer_entry import CompletedTransaction
from headrace.log.producer_state import ProducerState
from headrace.log.segment import Segment
from headrace.log.segment_list import SegmentList
from headrace.log.segment_scan import scan_checked
from headrace.ports import File
from headrace.records.batch import Batch


def rebuild_producers(
    producers: ProducerState,
    segments: SegmentList,
    log_start: int,
    log_end: int,
    now_ms: int,
    *,
    stopped_cleanly: bool,
) -> list[File]:
    """Let the state stand at `log_end`; returns snapshot files that were written and want to be synced.

    Without any snapshot a cleanly stopped log had no producers, so it need not be read."""
    written: list[File] = []
    snapshot_bases = {segment.base_offset for segment in _last_two(segments)}
    if stopped_cleanly and not producers.snapshot_offsets:
        for offset in sorted({*snapshot_bases, log_end}):
            producers.end_offset = offset
            _snapshot(producers, written)
        return written
    had_nothing = producers.is_empty and producers.end_offset >= log_end
    producers.reload(log_start, log_end, now_ms)
    if log_end > producers.end_offset and not had_nothing:
        for segment in segments.covering(producers.end_offset, log_end):
            start = max(segment.base_offset, producers.end_offset, log_start)
            producers.end_offset = start
            if segment.base_offset in snapshot_bases:
                _snapshot(producers, written)
            _replay(producers, segment, start, log_end)
    producers.end_offset = log_end
    _snapshot(producers, written)
    return written


def _last_two(segments: SegmentList) -> list[Segment]:
    active = segments.active
    before = segments.before(active.base_offset)
    return [active] if before is None else [before, active]


def _snapshot(producers: ProducerState, written: list[File]) -> None:
    file = producers.take_snapshot()
    if file is not None:
        written.append(file)


def _replay(producers: ProducerState, segment: Segment, start: int, end: int) -> None:
    place = segment.translate(start)
    if place is None:
        return
    last = segment.translate(end)
    position_end = segment.size if last is None else last.position
    try:
        for checked in scan_checked(segment.log, segment.base_offset, place.position, position_end):
            if checked.producer_id >= 0:
                replay_batch(producers, Batch(checked.chunk, checked.start))
    except CorruptLog:
        # What can't be trusted can't be replayed either; readers of that stretch are told about it.
        return


def replay_batch(producers: ProducerState, batch: Batch) -> tuple[CompletedTransaction, int] | None:
    """Take over one batch that is on disk already; returns the transaction it ends and the last stable
    offset then, if it ends one."""
    changes = ProducerChanges()
    collect(producers, changes, batch, None, AppendOrigin.REPLICATION, 0)
    for append in changes.appends.values():
        producers.update(append)
    for completed in changes.completed:
        stable_offset = producers.stable_offset_after(completed)
        producers.complete(completed)
        return completed, stable_offset
    return None
