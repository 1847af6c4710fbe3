"""Reading: ranges by offset and size, bounds by isolation, offsets by time, damage that is never served."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_errors import CorruptLog, OffsetOutOfRange, StaleRange
from headrace.log.log_parts import LogSurroundings
from headrace.log.log_reads import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    FileRange,
    Isolation,
    LogRead,
)
from headrace.log.partition_log import PartitionLog
from headrace.log.scrub import scrub_log
from headrace.log.settings import LogSettings
from headrace.records.batch import batches
from headrace.records.control import ControlType
from headrace.system.disk import RealDisk
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import (
    DIRECTORY,
    LEADER_EPOCH,
    NOW_MS,
    PARTITION,
    SMALL,
    UNVERIFIED,
    content,
    fill,
    marker,
    offsets_in,
    on_loop,
    open_log,
    plain_batch,
    producer_batch,
)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> PartitionLog:
    return open_log(disk)


def data_of(answer: LogRead) -> bytes:
    assert answer.records is not None
    return answer.records.read()


def batch_size() -> int:
    return len(plain_batch(3))


# By offset and size


def test_a_read_from_the_middle_of_a_batch_returns_the_whole_batch(log: PartitionLog) -> None:
    """Promise 4: a fetch from the middle of a batch returns the whole batch."""
    fill(log, 3)
    answer = log.read(4, batch_size())
    assert [batch.base_offset for batch in batches(data_of(answer))] == [3]
    assert answer.start == (4, 0, batch_size())


def test_a_first_batch_beyond_the_limit_is_returned_nevertheless(log: PartitionLog) -> None:
    """Promise 4: a first batch larger than the limits is still returned (KIP-74)."""
    fill(log, 2)
    assert len(data_of(log.read(0, 1))) == batch_size()
    cut = log.read(0, 1, min_one_message=False)
    assert len(data_of(cut)) == 1
    assert cut.first_batch_incomplete
    assert log.read(0, 0, min_one_message=False).records is None


def test_a_read_is_cut_at_its_limit_and_at_the_end_of_the_segment(log: PartitionLog) -> None:
    fill(log, 40)
    assert len(data_of(log.read(0, 2 * batch_size() + 5))) == 2 * batch_size() + 5
    assert len(data_of(log.read(0, 1_000_000))) == log.segments.first.size


def test_reads_go_on_over_segments_to_the_end(log: PartitionLog) -> None:
    fill(log, 40)
    assert len(log.segments) > 2
    assert offsets_in(log) == list(range(120))


@pytest.mark.parametrize("offset", [-1, 1, 10])
def test_offsets_outside_the_log_are_out_of_range(log: PartitionLog, offset: int) -> None:
    fill(log, 3)
    log.advance_log_start(2)
    with pytest.raises(OffsetOutOfRange, match=rf"offset {offset} of topic-0.*2 to 9") as refused:
        log.read(offset, 100)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_end_is_empty_and_not_out_of_range(log: PartitionLog) -> None:
    fill(log, 1)
    assert log.read(3, 100) == (log.end, None, False, None)


def test_gaps_are_passed(log: PartitionLog) -> None:
    log.append_as_follower(plain_batch(1, base_offset=3, leader_epoch=0), 0, NOW_MS)
    log.append_as_follower(plain_batch(1, base_offset=30, leader_epoch=0), 0, NOW_MS)
    assert [batch.base_offset for batch in batches(data_of(log.read(4, 1)))] == [30]
    assert offsets_in(log) == [3, 30]


# Bounds


def test_nothing_beyond_the_high_watermark_is_seen(log: PartitionLog) -> None:
    for _ in range(3):
        log.append_as_leader(plain_batch(3), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(6)
    assert offsets_in(log, Isolation.HIGH_WATERMARK) == [0, 1, 2, 3, 4, 5]
    assert offsets_in(log, Isolation.LOG_END) == list(range(9))
    assert log.read(6, 100, Isolation.HIGH_WATERMARK).records is None
    assert log.read(8, 100, Isolation.HIGH_WATERMARK).start.offset == 8


def test_the_high_watermark_never_moves_back_under_a_leader(log: PartitionLog) -> None:
    """Promise 6: the high watermark never moves back."""
    fill(log, 2)
    assert not log.advance_high_watermark(3)
    assert log.high_watermark == 6
    with pytest.raises(ValueError, match="beyond the end"):
        log.advance_high_watermark(7)


def test_a_leaders_high_watermark_is_taken_as_far_as_the_log_reaches(log: PartitionLog) -> None:
    fill(log, 2)
    assert log.update_high_watermark(100) == 6
    log.advance_log_start(3)
    assert log.update_high_watermark(1) == 3


def test_committed_reads_name_aborted_transactions_of_their_range_only(log: PartitionLog) -> None:
    for producer in (1, 2, 3):
        log.append_as_leader(producer_batch(producer, 0, 5, transactional=True), LEADER_EPOCH, NOW_MS)
        log.append_as_leader(
            marker(producer, ControlType.ABORT),
            LEADER_EPOCH,
            NOW_MS,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=1,
        )
        fill(log, 10)
    log.advance_high_watermark(log.log_end_offset)
    everything = [(each.producer_id, each.first_offset) for each in log.aborted_transactions(0, 1_000)]
    assert everything == [(1, 0), (2, 36), (3, 72)]
    answer = log.read(40, 200, Isolation.COMMITTED)
    assert answer.aborted is not None
    assert [each.producer_id for each in answer.aborted] == [2]
    assert log.read(0, 200, Isolation.HIGH_WATERMARK).aborted is None
    assert log.read(log.log_end_offset, 200, Isolation.COMMITTED).aborted == []


# By time


def timed(log: PartitionLog, *timestamps: int) -> None:
    for timestamp in timestamps:
        log.append_as_leader(plain_batch(2, timestamp=timestamp), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)


def test_the_first_offset_at_or_after_a_time_is_found(log: PartitionLog) -> None:
    """Promise 7: the first offset whose timestamp ≥ t, none if there is none, with the leader epoch."""
    timed(log, 100, 200, 150, 300)
    assert log.offset_for_timestamp(0) == (100, 0, LEADER_EPOCH)
    assert log.offset_for_timestamp(101) == (101, 1, LEADER_EPOCH)
    assert log.offset_for_timestamp(102) == (200, 2, LEADER_EPOCH)
    assert log.offset_for_timestamp(202) == (300, 6, LEADER_EPOCH)
    assert log.offset_for_timestamp(302) is None


def test_times_are_found_across_segments_and_after_the_log_start(log: PartitionLog) -> None:
    """Promise 7, over many segments."""
    timed(log, *range(1_000, 5_000, 10))
    assert len(log.segments) > 3
    for timestamp in range(995, 5_000, 333):
        expected = max(0, (timestamp - 1_000 + 9) // 10)
        found = log.offset_for_timestamp(timestamp)
        assert found is not None
        if (timestamp - 1_000) % 10 == 1:
            assert found.offset == (timestamp - 1_000) // 10 * 2 + 1
        else:
            assert found.offset == expected * 2
    log.advance_log_start(101)
    assert log.offset_for_timestamp(0) == (1_501, 101, LEADER_EPOCH)


def test_the_codes_of_list_offsets(log: PartitionLog) -> None:
    """Promise 7: -1 latest, -2 earliest, -3 max timestamp, -4 earliest local; no remote storage."""
    assert log.offset_for_timestamp(EARLIEST_TIMESTAMP) == (-1, 0, None)
    assert log.offset_for_timestamp(LATEST_TIMESTAMP) == (-1, 0, None)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) is None
    timed(log, 100, 900, 200)
    log.advance_log_start(1)
    assert log.offset_for_timestamp(LATEST_TIMESTAMP) == (-1, 6, LEADER_EPOCH)
    assert log.offset_for_timestamp(EARLIEST_TIMESTAMP) == (-1, 1, LEADER_EPOCH)
    assert log.offset_for_timestamp(EARLIEST_LOCAL_TIMESTAMP) == (-1, 1, LEADER_EPOCH)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == (901, 3, LEADER_EPOCH)
    assert log.offset_for_timestamp(LATEST_TIERED_TIMESTAMP) == (-1, -1, -1)
    assert log.offset_for_timestamp(EARLIEST_PENDING_UPLOAD_TIMESTAMP) == (-1, -1, -1)


def test_the_latest_offset_is_capped_by_isolation(log: PartitionLog) -> None:
    """Promise 7: -1 latest, capped by isolation; nothing beyond the bound is found by time either."""
    timed(log, 100)
    log.append_as_leader(producer_batch(1, 0, transactional=True, timestamp=500), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(3)
    timed_later = plain_batch(1, timestamp=700)
    log.append_as_leader(timed_later, LEADER_EPOCH, NOW_MS)
    latest = [log.offset_for_timestamp(LATEST_TIMESTAMP, each) for each in Isolation]
    assert [found.offset for found in latest if found is not None] == [4, 3, 2]
    assert log.offset_for_timestamp(400, Isolation.COMMITTED) is None
    assert log.offset_for_timestamp(400, Isolation.HIGH_WATERMARK) == (500, 2, LEADER_EPOCH)
    assert log.offset_for_timestamp(MAX_TIMESTAMP, Isolation.HIGH_WATERMARK) is None
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == (700, 3, LEADER_EPOCH)


def test_the_largest_time_of_a_log_append_time_batch_is_its_first_record(disk: MemoryDisk) -> None:
    log = open_log(disk, LogSettings(message_timestamp_type="LogAppendTime", segment_index_bytes=400))
    log.append_as_leader(plain_batch(3), LEADER_EPOCH, NOW_MS)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == (NOW_MS, 0, LEADER_EPOCH)


def test_the_end_of_an_epoch_is_where_the_next_one_begins(log: PartitionLog) -> None:
    log.append_as_leader(plain_batch(3), 2, NOW_MS)
    log.append_as_leader(plain_batch(3), 5, NOW_MS)
    assert log.end_offset_for_epoch(5) == (5, 6)
    assert log.end_offset_for_epoch(3) == (2, 3)
    assert log.end_offset_for_epoch(1) == (1, 0)
    assert log.end_offset_for_epoch(6) is None
    assert log.latest_epoch == 5


# Damage


@on_loop
async def test_a_flipped_bit_is_found_on_the_first_read_and_never_served(disk: MemoryDisk) -> None:
    """Promise 27: a flipped bit is detected, reported with file and position, and never served."""
    log = open_log(disk)
    fill(log, 40)
    await log.close(NOW_MS)
    size = batch_size()
    path = f"{DIRECTORY}/00000000000000000000.log"
    disk.flip_bit(path, 3 * size + 70, 2)

    again = open_log(disk, clean=True)
    # What lies before is served up to the damage, and not a byte more.
    assert len(data_of(again.read(0, 10_000))) == 3 * size
    with pytest.raises(CorruptLog) as found:
        again.read(9, 10_000)
    assert found.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (found.value.path, found.value.position) == (path, 3 * size)
    # What lies beyond is not affected.
    assert [batch.base_offset for batch in batches(data_of(again.read(12, size)))] == [12]


@on_loop
async def test_checked_bytes_are_not_read_again(disk: MemoryDisk) -> None:
    log = open_log(disk)
    fill(log, 40)
    await log.close(NOW_MS)
    again = open_log(disk, clean=True)
    reads = []
    for _ in range(2):
        before = disk.operations["read"]
        again.read(0, 10_000)
        reads.append(disk.operations["read"] - before)
    assert reads[1] < reads[0]


@on_loop
async def test_a_scrub_names_every_damaged_place(disk: MemoryDisk) -> None:
    """Promise 27: detected also after it was read, by reading everything again."""
    log = open_log(disk)
    fill(log, 40)
    await log.close(NOW_MS)
    again = open_log(disk, clean=True)
    assert offsets_in(again) == list(range(120))
    assert scrub_log(again) == []
    size = batch_size()
    second = again.segments.bases[1]
    disk.flip_bit(f"{DIRECTORY}/00000000000000000000.log", 2 * size + 65)
    disk.flip_bit(f"{DIRECTORY}/{second:020d}.log", 16)
    found = scrub_log(again)
    assert [(each.path, each.position) for each in found] == [
        (f"{DIRECTORY}/00000000000000000000.log", 2 * size),
        (f"{DIRECTORY}/{second:020d}.log", 0),
    ]


# Ranges that are being sent


def open_log_at(disk: RealDisk, tmp_path: Path) -> PartitionLog:
    surroundings = LogSurroundings(disk, SeededEntropy(), DirectoryHealth(str(tmp_path)))
    request = OpenRequest(f"{tmp_path}/topic-0", PARTITION, SMALL, UNVERIFIED)
    return open_partition(surroundings, request, NOW_MS)


def sent(range_: FileRange, descriptor: int) -> bytes:
    return os.pread(descriptor, range_.length, range_.position)


def test_rolling_a_preallocated_segment_copies_nothing_for_those_who_read_it(tmp_path: Path) -> None:
    """Nobody was handed the room beyond the end, so it is cut off in place."""
    settings = replace(SMALL, preallocate=True)
    surroundings = LogSurroundings(RealDisk(), SeededEntropy(), DirectoryHealth(str(tmp_path)))
    log = open_partition(
        surroundings, OpenRequest(f"{tmp_path}/topic-0", PARTITION, settings, UNVERIFIED), NOW_MS
    )
    fill(log, 2)
    path, size = Path(log.segments.first.log.path), log.segments.first.size
    file_before = path.stat()
    assert file_before.st_size == settings.segment_bytes
    range_ = log.read(0, 10_000).records
    assert range_ is not None
    with range_.pin() as descriptor:
        before = sent(range_, descriptor)
        log.roll(NOW_MS)
        assert (path.stat().st_ino, path.stat().st_size) == (file_before.st_ino, size)
        assert sent(range_, descriptor) == before


@on_loop
async def test_a_pinned_range_survives_deletion_truncation_and_new_bytes(tmp_path: Path) -> None:
    """Promise 29: a file range that is being sent stays valid."""
    log = open_log_at(RealDisk(), tmp_path)
    fill(log, 40)
    ranges = [log.read(offset, 10_000).records for offset in (0, log.segments.active.base_offset)]
    first, last = ranges
    assert first is not None
    assert last is not None
    expected = first.read(), last.read()
    with first.pin() as old, last.pin() as current:
        log.advance_log_start(log.segments.bases[1])
        assert log.delete_old_segments(NOW_MS) == 1
        await log.delete_due_files(NOW_MS + SMALL.file_delete_delay_ms)
        log.truncate_to(log.segments.active.base_offset + 3, NOW_MS)
        log.append_as_leader(plain_batch(9, timestamp=NOW_MS + 1), LEADER_EPOCH + 1, NOW_MS)
        assert (sent(first, old), sent(last, current)) == expected
    with pytest.raises(StaleRange, match="truncated"), last.pin():
        pass


@on_loop
async def test_a_range_whose_file_is_gone_can_not_be_pinned_any_more(tmp_path: Path) -> None:
    """Promise 29: neither foreign bytes nor a spinning connection: whoever comes late has to read again."""
    log = open_log_at(RealDisk(), tmp_path)
    fill(log, 40)
    late = log.read(0, 10_000).records
    assert late is not None
    log.advance_log_start(log.segments.bases[1])
    log.delete_old_segments(NOW_MS)
    with late.pin() as descriptor:
        # Renamed, not yet unlinked.
        assert len(sent(late, descriptor)) == late.length
    late.file.close()
    await log.delete_due_files(NOW_MS + SMALL.file_delete_delay_ms)
    with pytest.raises(StaleRange, match="deleted"), late.pin():
        pass


def test_an_error_of_the_medium_on_reading_takes_the_directory_offline(disk: MemoryDisk) -> None:
    """Promise 30: an I/O error takes the log directory offline with a clear message."""
    fill(open_log(disk), 3)
    log = open_log(disk)
    disk.fail(when=lambda operation: operation.kind == "read")
    with pytest.raises(KafkaError, match="reading topic-0 in log directory /logs failed") as failed:
        log.read(0, 100)
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.health.failure is not None


def test_content_of_an_empty_log_is_nothing(log: PartitionLog) -> None:
    assert content(log) == b""
