"""Appending: offsets, epochs, timestamps, refusals that leave no trace, duplicates, rolls and failures."""

import errno
from contextlib import suppress

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.health import DirectoryHealth
from headrace.log.log_errors import LogDirectoryOffline, OffsetsOutOfOrder, UnexpectedAppendOffset
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_entry import NO_VERIFICATION_GUARD
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.records.batch import Batch, batches
from headrace.records.compression import Compression
from headrace.records.control import ControlType
from headrace.records.rules import RecordsRefused
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import (
    DIRECTORY,
    LEADER_EPOCH,
    LOGS,
    NOW_MS,
    SMALL,
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


def lead(log: PartitionLog, data: bytearray, **options: object) -> tuple[int, int]:
    info = log.append_as_leader(data, LEADER_EPOCH, NOW_MS, **options)  # type: ignore[arg-type]
    return info.first_offset, info.last_offset


def refusal(log: PartitionLog, data: bytearray, **options: object) -> KafkaError:
    """The refusal of an append, which must leave the log as it was."""
    before, end = content(log), log.log_end_offset
    with pytest.raises(KafkaError) as refused:
        lead(log, data, **options)
    assert content(log) == before
    assert log.log_end_offset == end
    return refused.value


def test_a_leader_assigns_offsets_and_its_epoch(log: PartitionLog) -> None:
    assert lead(log, plain_batch(3)) == (0, 2)
    assert lead(log, plain_batch(2)) == (3, 4)
    stored = list(batches(content(log)))
    assert [(batch.base_offset, batch.leader_epoch) for batch in stored] == [(0, 3), (3, 3)]
    assert all(batch.crc_is_valid() for batch in stored)
    assert log.log_end_offset == 5
    assert log.epochs.entries == [(LEADER_EPOCH, 0)]


def test_an_append_tells_what_a_produce_response_needs(log: PartitionLog) -> None:
    fill(log, 2)
    log.advance_log_start(4)
    info = log.append_as_leader(plain_batch(2, timestamp=NOW_MS - 9), LEADER_EPOCH, NOW_MS)
    assert (info.first_offset, info.last_offset, info.log_start_offset) == (6, 7, 4)
    assert (info.max_timestamp, info.log_append_time) == (NOW_MS - 8, -1)
    assert not info.is_duplicate


def test_log_append_time_sets_the_batch_and_leaves_the_records(disk: MemoryDisk) -> None:
    """Promise 12: LogAppendTime rewrites the batch's max timestamp and attribute, not the records."""
    log = open_log(disk, LogSettings(message_timestamp_type="LogAppendTime", segment_index_bytes=400))
    sent = plain_batch(2, timestamp=5)
    payload = bytes(sent[61:])
    info = log.append_as_leader(sent, LEADER_EPOCH, NOW_MS)
    (stored,) = batches(content(log))
    assert info.log_append_time == NOW_MS
    assert (stored.max_timestamp, stored.timestamp_type) == (NOW_MS, 1)
    assert bytes(stored.payload) == payload
    assert stored.crc_is_valid()


@pytest.mark.parametrize("codec", list(Compression))
def test_producer_compression_keeps_the_bytes_as_they_came(log: PartitionLog, codec: Compression) -> None:
    """Promise 13: `producer` keeps the bytes as they came."""
    sent = plain_batch(5, compression=codec)
    after_epoch = bytes(sent[16:])
    lead(log, sent)
    assert content(log)[16:] == after_epoch


def test_a_topics_codec_is_applied(disk: MemoryDisk) -> None:
    """Promise 13: compression follows the topic's `compression.type`."""
    log = open_log(disk, LogSettings(compression_type="zstd", segment_index_bytes=400))
    lead(log, plain_batch(5, compression=Compression.LZ4))
    (stored,) = batches(content(log))
    assert stored.compression is Compression.ZSTD
    assert offsets_in(log) == [0, 1, 2, 3, 4]


def test_a_record_without_key_is_refused_on_a_compacted_topic(disk: MemoryDisk) -> None:
    """Promise 8: INVALID_RECORD with the record's index; nothing of a rejected batch is written."""
    log = open_log(disk, LogSettings(cleanup_compact=True, segment_index_bytes=400))
    refused = refusal(log, plain_batch(keys=[b"a", None, b"c"]))
    assert refused.code == ErrorCode.INVALID_RECORD
    assert isinstance(refused, RecordsRefused)
    assert [error.batch_index for error in refused.record_errors] == [1]


def test_a_batch_over_the_maximum_is_too_large(disk: MemoryDisk) -> None:
    """Promise 8: over `max.message.bytes`: MESSAGE_TOO_LARGE."""
    log = open_log(disk, LogSettings(max_message_bytes=200, segment_index_bytes=400))
    assert refusal(log, plain_batch(1, size=300)).code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_wrong_checksum_is_corruption(log: PartitionLog) -> None:
    """Promise 8: a wrong CRC: CORRUPT_MESSAGE."""
    sent = plain_batch(1)
    sent[-1] ^= 1
    assert refusal(log, sent).code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("timestamp", [NOW_MS - 1_001, NOW_MS + 2_001])
def test_timestamps_outside_the_bounds_are_refused(disk: MemoryDisk, timestamp: int) -> None:
    """Promise 8: timestamps outside `message.timestamp.{before,after}.max.ms`: INVALID_TIMESTAMP."""
    log = open_log(
        disk,
        LogSettings(
            message_timestamp_before_max_ms=1_000,
            message_timestamp_after_max_ms=2_000,
            segment_index_bytes=400,
        ),
    )
    assert refusal(log, plain_batch(1, timestamp=timestamp)).code == ErrorCode.INVALID_TIMESTAMP


def test_an_append_larger_than_a_segment_is_refused(log: PartitionLog) -> None:
    assert refusal(log, plain_batch(1, size=2_100)).code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_a_settings_update_changes_the_rules(log: PartitionLog) -> None:
    lead(log, plain_batch(keys=[None]))
    log.update_settings(LogSettings(cleanup_compact=True, segment_index_bytes=400))
    assert refusal(log, plain_batch(keys=[None])).code == ErrorCode.INVALID_RECORD


# Idempotence


def test_a_retried_batch_returns_its_original_offset_and_is_not_written_twice(log: PartitionLog) -> None:
    """Promise 14: the last five batches are recognised."""
    for sequence in range(6):
        lead(log, producer_batch(1, sequence))
    before = content(log)
    for sequence in range(1, 6):
        info = log.append_as_leader(producer_batch(1, sequence), LEADER_EPOCH, NOW_MS)
        assert (info.first_offset, info.last_offset, info.is_duplicate) == (sequence, sequence, True)
    assert content(log) == before
    assert refusal(log, producer_batch(1, 0)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, producer_batch(1, 7)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@on_loop
async def test_a_retry_after_a_restart_is_recognised(disk: MemoryDisk) -> None:
    """Promise 14: also after restart."""
    log = open_log(disk)
    for sequence in range(6):
        lead(log, producer_batch(1, sequence))
    await log.close(NOW_MS)
    again = open_log(disk, clean=True)
    info = again.append_as_leader(producer_batch(1, 5), LEADER_EPOCH, NOW_MS)
    assert (info.first_offset, info.is_duplicate) == (5, True)
    assert refusal(again, producer_batch(1, 7)).code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert lead(again, producer_batch(1, 6)) == (6, 6)


def test_a_follower_recognises_the_retry_after_a_fail_over(log: PartitionLog) -> None:
    """Promise 14: also after fail-over: producer state comes with the replicated batches."""
    follower = open_log(MemoryDisk())
    for sequence in range(3):
        lead(log, producer_batch(1, sequence))
    follower.append_as_follower(content(log), LEADER_EPOCH, NOW_MS)
    info = follower.append_as_leader(producer_batch(1, 1), LEADER_EPOCH + 1, NOW_MS)
    assert (info.first_offset, info.is_duplicate) == (1, True)


def test_an_old_producer_epoch_is_refused(log: PartitionLog) -> None:
    """Promise 14: an old epoch is INVALID_PRODUCER_EPOCH."""
    lead(log, producer_batch(1, 0, epoch=1))
    assert refusal(log, producer_batch(1, 1, epoch=0)).code == ErrorCode.INVALID_PRODUCER_EPOCH


# Transactions


def test_an_unverified_transactional_batch_is_refused(disk: MemoryDisk) -> None:
    log = open_log(disk, producers=ProducerStateSettings())
    batch = producer_batch(1, 0, transactional=True)
    assert refusal(log, batch).code == ErrorCode.INVALID_TXN_STATE
    guard = log.start_verification(1, 0, 0, False, NOW_MS)
    assert lead(log, producer_batch(1, 0, transactional=True), guard=guard) == (0, 0)
    # From here on the open transaction is proof enough.
    assert log.start_verification(1, 1, 0, False, NOW_MS) is NO_VERIFICATION_GUARD
    assert lead(log, producer_batch(1, 1, transactional=True)) == (1, 1)


def test_a_guard_does_not_outlive_the_marker_that_came_between(disk: MemoryDisk) -> None:
    """Promise 16, the log's part: a delayed produce can't enter the next transaction."""
    log = open_log(disk, producers=ProducerStateSettings())
    stale = log.start_verification(1, 0, 0, False, NOW_MS)
    lead(log, marker(1, ControlType.ABORT), origin=AppendOrigin.COORDINATOR, transaction_version=1)
    batch = producer_batch(1, 0, transactional=True)
    assert refusal(log, batch, guard=stale).code == ErrorCode.INVALID_TXN_STATE
    fresh = log.start_verification(1, 0, 0, False, NOW_MS)
    assert fresh is not stale
    assert lead(log, producer_batch(1, 0, transactional=True), guard=fresh) == (1, 1)


def test_a_verification_of_an_old_epoch_is_refused_early(log: PartitionLog) -> None:
    lead(log, producer_batch(1, 0, epoch=2))
    with pytest.raises(KafkaError) as refused:
        log.start_verification(1, 0, 1, False, NOW_MS)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_committed_readers_stop_at_the_first_open_transaction(log: PartitionLog) -> None:
    """Promise 15: nothing beyond the last stable offset is seen, and no aborted transaction goes untold."""
    lead(log, plain_batch(1))
    lead(log, producer_batch(1, 0, 2, transactional=True))
    lead(log, producer_batch(2, 0, transactional=True))
    log.advance_high_watermark(4)
    assert (log.first_unstable_offset, log.last_stable_offset) == (1, 1)
    assert offsets_in(log, Isolation.COMMITTED) == [0]
    lead(log, marker(1, ControlType.ABORT), origin=AppendOrigin.COORDINATOR, transaction_version=1)
    assert log.last_stable_offset == 1
    log.advance_high_watermark(5)
    assert log.last_stable_offset == 3
    answer = log.read(0, 10_000, Isolation.COMMITTED)
    assert answer.aborted is not None
    assert [(each.producer_id, each.first_offset, each.last_offset) for each in answer.aborted] == [(1, 1, 4)]
    lead(log, marker(2), origin=AppendOrigin.COORDINATOR, transaction_version=1)
    log.advance_high_watermark(6)
    assert (log.first_unstable_offset, log.last_stable_offset) == (None, 6)


# Followers


def test_a_follower_writes_what_the_leader_wrote_gaps_included(log: PartitionLog) -> None:
    first = plain_batch(2, base_offset=5, leader_epoch=2)
    second = plain_batch(1, base_offset=40, leader_epoch=4)
    info = log.append_as_follower(first + second, 4, NOW_MS)
    assert (info.first_offset, info.last_offset) == (5, 40)
    assert log.read(0, 10_000).records.read() == bytes(first + second)  # type: ignore[union-attr]
    assert log.log_end_offset == 41
    assert log.epochs.entries == [(2, 5), (4, 40)]


def test_a_follower_refuses_offsets_before_its_end(log: PartitionLog) -> None:
    log.append_as_follower(plain_batch(2, base_offset=5, leader_epoch=0), 0, NOW_MS)
    with pytest.raises(UnexpectedAppendOffset) as refused:
        log.append_as_follower(plain_batch(2, base_offset=6, leader_epoch=0), 0, NOW_MS)
    assert (refused.value.first_offset, refused.value.last_offset) == (6, 7)
    backwards = plain_batch(1, base_offset=9, leader_epoch=0) + plain_batch(1, base_offset=8)
    with pytest.raises(OffsetsOutOfOrder):
        log.append_as_follower(backwards, 0, NOW_MS)
    assert log.log_end_offset == 7


def test_a_follower_leaves_out_batches_of_a_leader_it_does_not_know_yet(log: PartitionLog) -> None:
    known = plain_batch(1, base_offset=0, leader_epoch=3)
    unknown = plain_batch(1, base_offset=1, leader_epoch=4)
    log.append_as_follower(known + unknown, 3, NOW_MS)
    assert content(log) == bytes(known)
    assert log.append_as_follower(unknown, 3, NOW_MS).first_offset == -1


def test_a_follower_leaves_out_an_incomplete_batch_and_refuses_a_corrupt_one(log: PartitionLog) -> None:
    whole, torn = plain_batch(1, leader_epoch=0), plain_batch(1, base_offset=1, leader_epoch=0)
    log.append_as_follower(whole + torn[:-3], 0, NOW_MS)
    assert content(log) == bytes(whole)
    torn[-1] ^= 8
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(torn, 0, NOW_MS)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert content(log) == bytes(whole)


def test_the_quorum_leader_brings_its_own_offsets_and_epochs(log: PartitionLog) -> None:
    batch = plain_batch(2, base_offset=0, leader_epoch=7)
    log.append_as_leader(batch, 7, NOW_MS, origin=AppendOrigin.RAFT_LEADER)
    other = plain_batch(2, base_offset=2, leader_epoch=6)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(other, 7, NOW_MS, origin=AppendOrigin.RAFT_LEADER)
    assert refused.value.code == ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 2


# Rolling


def test_segments_roll_by_size(log: PartitionLog) -> None:
    fill(log, 40)
    assert len(log.segments) > 2
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    assert log.producers.snapshot_offsets == log.segments.bases[1:]


def test_segments_roll_by_the_records_time(disk: MemoryDisk) -> None:
    log = open_log(disk, LogSettings(segment_ms=1_000, segment_index_bytes=400))
    lead(log, plain_batch(1, timestamp=NOW_MS))
    lead(log, plain_batch(1, timestamp=NOW_MS + 1_000))
    assert log.segments.bases == [0]
    lead(log, plain_batch(1, timestamp=NOW_MS + 1_001))
    assert log.segments.bases == [0, 2]


def test_segments_roll_when_an_index_is_full(disk: MemoryDisk) -> None:
    log = open_log(disk, LogSettings(index_interval_bytes=1, segment_index_bytes=8 * 4))
    for _ in range(20):
        lead(log, plain_batch(1))
    assert len(log.segments) > 3


def test_segments_roll_when_offsets_leave_an_indexs_reach(log: PartitionLog) -> None:
    log.append_as_follower(plain_batch(1, leader_epoch=0), 0, NOW_MS)
    far = 2**31 + 5
    log.append_as_follower(plain_batch(1, base_offset=far, leader_epoch=0), 0, NOW_MS)
    assert log.segments.bases == [0, far]
    assert log.read(1, 1_000).start == (1, far, 0)


def test_rolling_an_empty_segment_changes_nothing(log: PartitionLog) -> None:
    assert log.roll(NOW_MS) is log.segments.active
    assert log.segments.bases == [0]


def test_a_roll_keeps_the_high_watermark_readable(log: PartitionLog) -> None:
    fill(log, 1)
    log.roll(NOW_MS)
    assert log.high_watermark_position() == (3, 3, 0)
    assert offsets_in(log, Isolation.HIGH_WATERMARK) == [0, 1, 2]


# Failures of the medium


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_takes_the_directory_offline_and_leaves_nothing(disk: MemoryDisk, error: int) -> None:
    """Promise 30: a full disk or an I/O error: a clear message, and never an acknowledgement."""
    told: list[LogDirectoryOffline] = []
    log = open_log(disk, health=DirectoryHealth(LOGS, told.append))
    fill(log, 2)
    before = disk.read(f"{DIRECTORY}/00000000000000000000.log")
    disk.fail(error, when=lambda operation: operation.kind == "append")
    with pytest.raises(
        LogDirectoryOffline, match=rf"appending to topic-0 in log directory {LOGS}"
    ) as offline:
        lead(log, producer_batch(9, 0))
    assert offline.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert disk.read(f"{DIRECTORY}/00000000000000000000.log") == before
    assert log.log_end_offset == 6
    assert 9 not in log.producers.entries
    assert len(told) == 1
    with pytest.raises(LogDirectoryOffline, match="is offline"):
        lead(log, plain_batch(1))
    with pytest.raises(LogDirectoryOffline, match="is offline"):
        log.read(0, 100)
    assert len(told) == 1


def test_a_full_disk_keeps_what_was_acknowledged(disk: MemoryDisk) -> None:
    """Promise 30: after room is made, a restart finds all that was acknowledged and nothing torn."""
    disk.capacity_bytes = 12_000
    log = open_log(disk)
    acknowledged = 0
    while log.health.failure is None:
        with suppress(LogDirectoryOffline):
            acknowledged = lead(log, plain_batch(3, size=50))[1] + 1
    assert acknowledged > 0
    disk.capacity_bytes = None
    again = open_log(disk)
    assert again.log_end_offset >= acknowledged
    assert offsets_in(again)[:acknowledged] == list(range(acknowledged))


def test_batches_are_views_of_what_was_sent() -> None:
    """The leader stamps the buffer it was given instead of copying it."""
    log = open_log(MemoryDisk())
    fill(log, 1)
    sent = plain_batch(1)
    lead(log, sent)
    assert Batch(memoryview(sent)).base_offset == 3
