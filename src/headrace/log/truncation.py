"""Cutting a log back: to an offset, to nothing, or to where it parts from its leader's."""

from typing import TYPE_CHECKING, NamedTuple

from headrace.log.producer_rebuild import rebuild_producers
from headrace.log.segment_files import DELETED_SUFFIX

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def truncate_to(log: "PartitionLog", offset: int, now_ms: int) -> bool:
    """Remove every batch that ends at or after `offset`; True if there was one."""
    if offset < 0:
        raise ValueError(f"{log.partition} cannot be truncated to {offset}")
    log.health.check()
    try:
        if offset >= log.log_end_offset:
            # A former leader may have begun an epoch here without a record in it.
            log.epochs.truncate_from_end(log.log_end_offset)
            log.epochs.flush()
            return False
        if offset < log.segments.first.base_offset:
            truncate_fully(log, offset, now_ms)
            return True
        _truncate_within(log, offset, now_ms)
    except OSError as error:
        raise log.health.fail(f"truncating {log.partition} to {offset}", error) from error
    return True


def _truncate_within(log: "PartitionLog", offset: int, now_ms: int) -> None:
    beyond = [segment for segment in log.segments if segment.base_offset > offset]
    log.remove_segments(beyond, now_ms)
    active = log.segments.active
    active.truncate_to(offset, now_ms)
    log.verifier.on_truncated(active.base_offset, active.size)
    log.set_end(offset)
    if log.epochs.truncate_from_end(offset):
        # What is appended from here on may be of an older epoch, and recovery goes by the file.
        log.epochs.flush()
    log.log_start_offset = min(offset, log.log_start_offset)
    _rebuild(log, now_ms)


def truncate_fully(
    log: "PartitionLog", offset: int, now_ms: int, log_start_offset: int | None = None
) -> None:
    """Remove everything and begin anew at `offset`."""
    log.health.check()
    try:
        old = list(log.segments)
        *others, last = old
        log.remove_segments(others, now_ms)
        last.change_suffix("", DELETED_SUFFIX)
        log.restart_at(offset, now_ms)
        if last.base_offset != offset:
            log.segments.remove(last.base_offset)
            log.verifier.trust(last.base_offset)
        last.close_files()
        log.deletions.add(last.paths, now_ms + log.settings.file_delete_delay_ms)
        log.set_end(offset)
        log.epochs.clear()
        log.epochs.flush()
        log.producers.start_afresh(offset)
        log.log_start_offset = offset if log_start_offset is None else log_start_offset
        _rebuild(log, now_ms)
        log.update_high_watermark(offset)
    except OSError as error:
        raise log.health.fail(f"truncating {log.partition} to nothing at {offset}", error) from error


def _rebuild(log: "PartitionLog", now_ms: int) -> None:
    written = rebuild_producers(
        log.producers,
        log.segments,
        log.log_start_offset,
        log.log_end_offset,
        now_ms,
        stopped_cleanly=False,
    )
    log.sync_later(written)
    log.follow_end()
    # Replaying has brought ended transactions back whose markers are replicated already.
    log.producers.forget_replicated(log.high_watermark)
    log.refresh_first_unstable()


class EpochTruncation(NamedTuple):
    """Where a truncation by epoch has left the log, and whether the leader has to be asked once more."""

    log_end_offset: int
    is_complete: bool


def truncate_by_epoch(log: "PartitionLog", epoch: int, end_offset: int, now_ms: int) -> EpochTruncation:
    """Cut to what this log shares with its leader's, given the leader's answer about an epoch of this log.

    The answer is the largest epoch the leader knows up to that one, and where it ends; -1 where it knows
    neither. If this log has no record of that epoch, the next question is about an earlier one."""
    is_complete = True
    own = log.end_offset_for_epoch(epoch) if epoch >= 0 and end_offset >= 0 else None
    if end_offset < 0:
        offset = log.high_watermark
    elif own is None:
        offset = end_offset
    elif own.epoch == epoch:
        offset = min(own.end_offset, end_offset)
    else:
        offset, is_complete = own.end_offset, False
    truncate_to(log, min(offset, log.log_end_offset), now_ms)
    return EpochTruncation(log.log_end_offset, is_complete)
