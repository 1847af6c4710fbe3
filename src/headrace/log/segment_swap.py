"""Puts a compacted segment into a running log, in place of those it was made from."""

from typing import TYPE_CHECKING

from headrace.errors import HeadraceError
from headrace.log.retention import retire_files
from headrace.log.segment import Segment
from headrace.log.swap import announce_cleaned, install_cleaned

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


def replace_segments(log: "PartitionLog", base_offset: int, replaced: list[int], now_ms: int) -> None:
    """Swap the synced `.cleaned` files at `base_offset` in; readers see the old log or the new one.

    The directory is synced between the renames, so that a crash finds either state or one it can finish."""
    log.health.check()
    old = [segment for segment in map(log.segments.get, replaced) if segment is not None]
    if len(old) != len(replaced) or log.segments.active in old:
        raise HeadraceError(f"the segments of {log.partition} at {replaced} have changed during compaction")
    try:
        announce_cleaned(log.disk, log.directory, base_offset)
        log.disk.sync_directory(log.directory)
        due_ms = now_ms + log.settings.file_delete_delay_ms
        for segment in old:
            retire_files(log, segment, due_ms)
        log.disk.sync_directory(log.directory)
        install_cleaned(log.disk, log.directory, base_offset)
        log.disk.sync_directory(log.directory)
        _take_in(log, base_offset, old, now_ms, due_ms)
    except OSError as error:
        raise log.health.fail(f"swapping in a compacted segment of {log.partition}", error) from error


def _take_in(log: "PartitionLog", base_offset: int, old: list[Segment], now_ms: int, due_ms: int) -> None:
    for segment in old:
        log.segments.remove(segment.base_offset)
        log.verifier.trust(segment.base_offset)
        if segment.base_offset != base_offset:
            snapshot = log.producers.retire_snapshot(segment.base_offset)
            if snapshot is not None:
                log.deletions.add([snapshot], due_ms)
    log.segments.add(Segment.open(log.disk, log.directory, base_offset, log.settings, now_ms))
    log.forget_positions()
