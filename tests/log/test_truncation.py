"""Cutting a log back, and what happens to epochs, producers, watermarks and files then."""

import pytest

from headrace.log.append_origin import AppendOrigin
from headrace.log.partition_log import PartitionLog
from headrace.records.control import ControlType
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import (
    DIRECTORY,
    LEADER_EPOCH,
    NOW_MS,
    SMALL,
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


def test_truncation_removes_every_batch_that_reaches_the_offset(log: PartitionLog) -> None:
    fill(log, 4)
    assert log.truncate_to(7, NOW_MS)
    assert offsets_in(log) == [0, 1, 2, 3, 4, 5]
    assert log.log_end_offset == 7
    assert log.append_as_leader(plain_batch(1), LEADER_EPOCH, NOW_MS).first_offset == 7


def test_truncation_beyond_the_end_changes_nothing_but_idle_epochs(log: PartitionLog) -> None:
    fill(log, 2)
    log.epochs.assign(LEADER_EPOCH + 5, 6)
    assert not log.truncate_to(6, NOW_MS)
    assert log.epochs.entries == [(LEADER_EPOCH, 0)]
    assert offsets_in(log) == [0, 1, 2, 3, 4, 5]


def test_truncation_over_segments_retires_the_later_ones(log: PartitionLog, disk: MemoryDisk) -> None:
    fill(log, 40)
    bases = log.segments.bases
    log.truncate_to(bases[1] + 3, NOW_MS)
    assert log.segments.bases == bases[:2]
    assert offsets_in(log) == list(range(bases[1] + 3))
    retired = [name for name in disk.list_directory(DIRECTORY) if name.endswith(".log.deleted")]
    assert [int(name[:20]) for name in retired] == bases[2:]


def test_truncation_lowers_watermark_recovery_point_and_epochs(log: PartitionLog) -> None:
    for epoch in (1, 2, 3):
        log.append_as_leader(plain_batch(3), epoch, NOW_MS)
    log.advance_high_watermark(9)
    log.mark_flushed(9)
    log.truncate_to(4, NOW_MS)
    assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (4, 4, 4)
    assert log.epochs.entries == [(1, 0), (2, 3)]


def test_truncation_forgets_producers_and_transactions_beyond_it(log: PartitionLog) -> None:
    for sequence in range(3):
        log.append_as_leader(producer_batch(1, sequence, transactional=True), LEADER_EPOCH, NOW_MS)
    log.append_as_leader(producer_batch(2, 0), LEADER_EPOCH, NOW_MS)
    log.append_as_leader(
        marker(1, ControlType.ABORT),
        LEADER_EPOCH,
        NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=1,
    )
    log.advance_high_watermark(5)
    assert log.first_unstable_offset is None
    log.truncate_to(2, NOW_MS)
    assert set(log.producers.entries) == {1}
    assert log.producers.entries[1].last_sequence == 1
    assert log.first_unstable_offset == 0
    assert log.aborted_transactions(0, 100) == []
    assert (
        log.append_as_leader(producer_batch(1, 2, transactional=True), LEADER_EPOCH + 1, NOW_MS).first_offset
        == 2
    )


def test_truncating_below_the_log_start_moves_the_start(log: PartitionLog) -> None:
    fill(log, 4)
    log.advance_log_start(8)
    log.truncate_to(6, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset) == (6, 6)


def test_truncating_fully_begins_anew(log: PartitionLog, disk: MemoryDisk) -> None:
    fill(log, 20)
    log.append_as_leader(producer_batch(1, 0), LEADER_EPOCH, NOW_MS)
    log.truncate_fully(500, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (500, 500, 500)
    assert log.segments.bases == [500]
    assert log.epochs.entries == []
    assert not log.producers.entries
    assert log.append_as_leader(plain_batch(2), LEADER_EPOCH, NOW_MS).first_offset == 500
    assert offsets_in(log) == [500, 501]
    live = [name for name in disk.list_directory(DIRECTORY) if not name.endswith(".deleted")]
    assert live == [
        "00000000000000000500.index",
        "00000000000000000500.log",
        "00000000000000000500.timeindex",
        "leader-epoch-checkpoint",
    ]


def test_truncating_fully_at_the_active_base_replaces_the_segment(log: PartitionLog) -> None:
    fill(log, 1)
    log.truncate_fully(0, NOW_MS)
    assert log.append_as_leader(plain_batch(1), LEADER_EPOCH, NOW_MS).first_offset == 0
    assert offsets_in(log) == [0]


def test_a_follower_far_behind_starts_at_its_leaders_start(log: PartitionLog) -> None:
    log.truncate_fully(100, NOW_MS, log_start_offset=90)
    assert (log.log_start_offset, log.log_end_offset) == (90, 100)


@on_loop
async def test_retired_files_go_after_the_delay(log: PartitionLog, disk: MemoryDisk) -> None:
    fill(log, 40)
    log.truncate_to(3, NOW_MS)
    due_ms = NOW_MS + SMALL.file_delete_delay_ms
    assert log.deletions.next_due_ms == due_ms
    assert await log.delete_due_files(due_ms - 1) == 0
    assert await log.delete_due_files(due_ms) > 0
    assert not [name for name in disk.list_directory(DIRECTORY) if name.endswith(".deleted")]
    assert log.deletions.next_due_ms is None


# By epoch: this log has epoch 1 at 0, 2 at 3, 4 at 6, and ends at 9


@pytest.fixture
def epochal(log: PartitionLog) -> PartitionLog:
    for epoch in (1, 2, 4):
        log.append_as_leader(plain_batch(3), epoch, NOW_MS)
    log.advance_high_watermark(3)
    return log


@pytest.mark.parametrize(
    ("leader_epoch", "leader_end", "end", "is_complete"),
    [
        (4, 8, 8, True),  # the leader has less of the same epoch
        (4, 20, 9, True),  # the leader has more of it
        (2, 5, 5, True),  # the epochs part in the middle of 2
        (2, 8, 6, True),  # the leader wrote more in 2 than we have
        (3, 7, 6, False),  # we know nothing of 3: ask again about 2
        (-1, -1, 3, True),  # the leader knows nothing: down to the high watermark
        (-1, 5, 5, True),  # an old leader that tells an offset only
    ],
)
def test_truncation_by_epoch(
    epochal: PartitionLog, leader_epoch: int, leader_end: int, end: int, is_complete: bool
) -> None:
    assert epochal.truncate_by_epoch(leader_epoch, leader_end, NOW_MS) == (end, is_complete)
    assert epochal.log_end_offset == end
