"""Which segments are old enough, or too many, to go; and how they go: renamed at once, unlinked later."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.log.segment import Segment
from headrace.log.segment_files import DELETED_SUFFIX

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

Condition = Callable[[Segment, Segment | None], bool]


def delete_old_segments(log: "PartitionLog", now_ms: int) -> int:
    """Apply the log start and, where `cleanup.policy` has delete, `retention.bytes` and `retention.ms`."""
    log.health.check()
    try:
        removed = _delete(log, _before_log_start(log), now_ms)
        if log.settings.cleanup_delete:
            removed += _delete_by_size(log, now_ms)
            removed += _delete_by_time(log, now_ms)
        return removed
    except OSError as error:
        raise log.health.fail(f"deleting old segments of {log.partition}", error) from error


def _before_log_start(log: "PartitionLog") -> Condition:
    def condition(_: Segment, following: Segment | None) -> bool:
        return following is not None and following.base_offset <= log.log_start_offset

    return condition


def _delete_by_size(log: "PartitionLog", now_ms: int) -> int:
    excess = log.size - log.settings.retention_bytes
    if log.settings.retention_bytes < 0 or excess < 0:
        return 0

    def condition(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _delete(log, condition, now_ms)


def _delete_by_time(log: "PartitionLog", now_ms: int) -> int:
    retention_ms = log.settings.retention_ms
    if retention_ms < 0:
        return 0
    return _delete(log, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms, now_ms)


def _delete(log: "PartitionLog", condition: Condition, now_ms: int) -> int:
    """Delete from the oldest on as long as the condition holds and the high watermark has passed."""
    deletable: list[Segment] = []
    segments = list(log.segments)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        end = log.log_end_offset if following is None else following.base_offset
        if end > log.high_watermark or (following is None and segment.size == 0):
            break
        if not condition(segment, following):
            break
        deletable.append(segment)
    if not deletable:
        return 0
    if len(deletable) == len(segments):
        log.roll(now_ms)
    following = log.segments.after(deletable[-1].base_offset)
    assert following is not None
    log.advance_log_start(max(log.log_start_offset, following.base_offset))
    log.remove_segments(deletable, now_ms)
    return len(deletable)


def remove_segments(log: "PartitionLog", segments: list[Segment], now_ms: int) -> None:
    """Take segments and their producer snapshots out; the files go after `file.delete.delay.ms`."""
    due_ms = now_ms + log.settings.file_delete_delay_ms
    for segment in segments:
        retire_files(log, segment, due_ms)
        log.segments.remove(segment.base_offset)
        log.verifier.trust(segment.base_offset)
        snapshot = log.producers.retire_snapshot(segment.base_offset)
        if snapshot is not None:
            log.deletions.add([snapshot], due_ms)


def retire_files(log: "PartitionLog", segment: Segment, due_ms: int) -> None:
    """Rename a segment's files so that a restart drops them, and queue them for unlinking."""
    segment.change_suffix("", DELETED_SUFFIX)
    segment.close_files()
    log.deletions.add(segment.paths, due_ms)
