"""Which segments go by time, size and log start, and which never do."""

from dataclasses import replace

import pytest

from headrace.errors import ErrorCode
from headrace.log.log_errors import LogDirectoryOffline, OffsetOutOfRange
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import LogSettings
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import (
    DIRECTORY,
    LEADER_EPOCH,
    NOW_MS,
    SMALL,
    fill,
    offsets_in,
    on_loop,
    open_log,
    plain_batch,
)

HOUR_MS = 3_600_000


def log_with(**changes: object) -> tuple[PartitionLog, MemoryDisk]:
    disk = MemoryDisk()
    settings: LogSettings = replace(SMALL, **changes)  # type: ignore[arg-type]
    return open_log(disk, settings), disk


def age(log: PartitionLog, *hours: int) -> None:
    """One segment for each age."""
    for hour in hours:
        log.append_as_leader(plain_batch(2, timestamp=NOW_MS - hour * HOUR_MS), LEADER_EPOCH, NOW_MS)
        log.roll(NOW_MS)
    log.advance_high_watermark(log.log_end_offset)


def test_old_segments_go_by_the_records_time() -> None:
    log, _ = log_with(retention_ms=5 * HOUR_MS)
    age(log, 9, 6, 5, 1)
    assert log.delete_old_segments(NOW_MS) == 2
    assert log.log_start_offset == 4
    assert offsets_in(log) == [4, 5, 6, 7]


def test_a_young_segment_protects_those_behind_it() -> None:
    log, _ = log_with(retention_ms=5 * HOUR_MS)
    age(log, 9, 1, 8)
    assert log.delete_old_segments(NOW_MS) == 1


def test_records_without_time_count_from_the_files_time() -> None:
    log, disk = log_with(retention_ms=1_000)
    log.append_as_leader(plain_batch(1, timestamp=-1), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(1)
    written_ms = disk.modified_ms(f"{DIRECTORY}/00000000000000000000.log")
    assert log.delete_old_segments(written_ms + 1_000) == 0
    assert log.delete_old_segments(written_ms + 1_001) == 1


def test_the_active_segment_goes_too_once_it_is_old() -> None:
    log, _ = log_with(retention_ms=HOUR_MS)
    log.append_as_leader(plain_batch(2, timestamp=NOW_MS - 2 * HOUR_MS), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(2)
    assert log.delete_old_segments(NOW_MS) == 1
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    assert log.segments.bases == [2]
    assert log.delete_old_segments(NOW_MS) == 0


def test_segments_beyond_the_size_go_oldest_first() -> None:
    log, _ = log_with()
    fill(log, 60)
    sizes = [segment.size for segment in log.segments]
    log.update_settings(replace(SMALL, retention_bytes=sum(sizes) - sizes[0] - sizes[1]))
    assert log.delete_old_segments(NOW_MS) == 2
    assert log.size == sum(sizes[2:])


def test_nothing_beyond_the_high_watermark_goes() -> None:
    log, _ = log_with(retention_ms=0)
    for _ in range(3):
        log.append_as_leader(plain_batch(2, timestamp=1), LEADER_EPOCH, NOW_MS)
        log.roll(NOW_MS)
    log.advance_high_watermark(3)
    assert log.delete_old_segments(NOW_MS) == 1
    assert log.log_start_offset == 2


def test_deleted_records_take_whole_segments_with_them() -> None:
    """Promise 26, the log's part: DeleteRecords moves the start at once and frees segments later."""
    log, _ = log_with(cleanup_delete=False, cleanup_compact=True, retention_ms=0)
    fill(log, 40)
    bases = log.segments.bases
    assert log.advance_log_start(bases[2] + 1)
    assert offsets_in(log)[0] == bases[2]
    assert log.delete_old_segments(NOW_MS) == 2
    assert log.segments.bases == bases[2:]
    assert log.log_start_offset == bases[2] + 1
    assert not log.advance_log_start(bases[2])


def test_deleting_beyond_the_high_watermark_is_out_of_range() -> None:
    log, _ = log_with()
    fill(log, 1)
    log.append_as_leader(plain_batch(1), LEADER_EPOCH, NOW_MS)
    with pytest.raises(OffsetOutOfRange, match="beyond its high watermark 3") as refused:
        log.advance_log_start(4)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_log_start_moves_epochs_along() -> None:
    log, _ = log_with()
    for epoch in (1, 2, 3):
        log.append_as_leader(plain_batch(3), epoch, NOW_MS)
    log.advance_high_watermark(9)
    log.advance_log_start(4)
    assert log.epochs.entries == [(2, 4), (3, 6)]


@on_loop
async def test_files_are_renamed_at_once_and_unlinked_after_the_delay() -> None:
    log, disk = log_with(retention_ms=5 * HOUR_MS)
    age(log, 9, 6, 1)
    log.delete_old_segments(NOW_MS)
    names = disk.list_directory(DIRECTORY)
    assert {name.removesuffix(".deleted") for name in names if name.endswith(".deleted")} == {
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.index",
        "00000000000000000002.log",
        "00000000000000000002.snapshot",
        "00000000000000000002.timeindex",
    }
    assert await log.delete_due_files(NOW_MS + SMALL.file_delete_delay_ms) == 7
    assert not [name for name in disk.list_directory(DIRECTORY) if name.endswith(".deleted")]


@on_loop
async def test_a_failure_to_unlink_takes_the_directory_offline() -> None:
    """Promise 30."""
    log, disk = log_with(retention_ms=5 * HOUR_MS)
    age(log, 9, 1)
    log.delete_old_segments(NOW_MS)
    disk.fail(when=lambda operation: operation.kind == "remove")
    with pytest.raises(LogDirectoryOffline, match="deleting old segments"):
        await log.delete_due_files(NOW_MS + SMALL.file_delete_delay_ms)


@on_loop
async def test_a_restart_drops_what_waited_for_deletion() -> None:
    log, disk = log_with(retention_ms=5 * HOUR_MS)
    age(log, 9, 6, 1)
    log.delete_old_segments(NOW_MS)
    await log.close(NOW_MS)
    again = open_log(disk, clean=True)
    assert again.log_start_offset == 4
    assert not [name for name in disk.list_directory(DIRECTORY) if name.endswith(".deleted")]
