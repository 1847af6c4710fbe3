"""What recovery puts right, what it reports, and what it must leave alone."""

import pytest

from headrace.log.append_origin import AppendOrigin
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import RecoveryJob, RecoveryReport, recover_files
from headrace.log.settings import LogSettings
from headrace.records.control import ControlType
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import (
    DIRECTORY,
    LEADER_EPOCH,
    NOW_MS,
    PARTITION,
    SMALL,
    UNVERIFIED,
    fill,
    marker,
    offsets_in,
    on_loop,
    open_log,
    producer_batch,
)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


async def closed_log(disk: MemoryDisk, settings: LogSettings = SMALL) -> PartitionLog:
    log = open_log(disk, settings)
    for sequence in range(20):
        log.append_as_leader(producer_batch(1, sequence, transactional=True), LEADER_EPOCH, NOW_MS)
        fill(log, 2)
        kind = ControlType.ABORT if sequence % 3 == 0 else ControlType.COMMIT
        log.append_as_leader(
            marker(1, kind), LEADER_EPOCH, NOW_MS, origin=AppendOrigin.COORDINATOR, transaction_version=1
        )
    log.advance_high_watermark(log.log_end_offset)
    await log.close(NOW_MS)
    return log


def recover(disk: MemoryDisk, recovery_point: int = 0, settings: LogSettings = SMALL) -> RecoveryReport:
    return recover_files(
        disk, RecoveryJob(DIRECTORY, PARTITION, settings, UNVERIFIED, 0, recovery_point, NOW_MS)
    )


def files(disk: MemoryDisk) -> dict[str, bytes]:
    return {name: disk.read(f"{DIRECTORY}/{name}") for name in disk.list_directory(DIRECTORY)}


@on_loop
async def test_recovery_of_a_sound_log_changes_no_file(disk: MemoryDisk) -> None:
    """Indexes, transaction indexes and the snapshot at the end come out as a clean stop wrote them."""
    log = await closed_log(disk)
    before = files(disk)
    report = recover(disk)
    assert report.damage == []
    assert (report.segments_checked, report.log_end_offset) == (len(log.segments), log.log_end_offset)
    after = files(disk)
    assert {name: data for name, data in after.items() if not name.endswith(".snapshot")} == {
        name: data for name, data in before.items() if not name.endswith(".snapshot")
    }
    end = f"{log.log_end_offset:020d}.snapshot"
    assert after[end] == before[end]


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("index", "missing"),
        ("index", "cut"),
        ("index", "garbage"),
        ("timeindex", "missing"),
        ("timeindex", "cut"),
        ("timeindex", "garbage"),
        # A segment without aborted transactions has no such file, so a missing one is not noticed.
        ("txnindex", "cut"),
        ("txnindex", "garbage"),
    ],
)
@on_loop
async def test_damaged_indexes_below_the_recovery_point_are_rebuilt(
    disk: MemoryDisk, suffix: str, damage: str
) -> None:
    """Promise 27: indexes are rebuilt; the batches themselves are not touched."""
    log = await closed_log(disk)
    before = files(disk)
    path = f"{DIRECTORY}/{0:020d}.{suffix}"
    if damage == "missing":
        disk.remove(path)
    elif damage == "cut":
        disk.tear(path, disk.size(path) - 3)
    else:
        disk.replace(path, b"\xff" * (disk.size(path) + 1))
    report = recover(disk, log.log_end_offset)
    again = open_log(disk, recovery_point=log.log_end_offset)
    assert offsets_in(again) == offsets_in(log)
    assert again.aborted_transactions(0, 1_000) == log.aborted_transactions(0, 1_000)
    assert report.damage
    assert disk.read(path) == before[f"{0:020d}.{suffix}"]


@on_loop
async def test_damage_in_the_middle_ends_the_log_there(disk: MemoryDisk) -> None:
    """Promise 27: a flipped bit above the recovery point is reported with file and position, and cut off."""
    log = await closed_log(disk)
    bases = log.segments.bases
    path = f"{DIRECTORY}/{bases[1]:020d}.log"
    disk.flip_bit(path, 70)
    report = recover(disk)
    assert report.log_end_offset == bases[1]
    assert report.segments_removed == len(bases) - 2
    assert report.damage[0].startswith(f"{path} is corrupt at position 0: ")
    again = open_log(disk)
    assert again.log_end_offset == bases[1]
    assert max(offsets_in(again)) < bases[1]


@on_loop
async def test_damage_below_the_recovery_point_is_left_for_readers_to_be_told(disk: MemoryDisk) -> None:
    log = await closed_log(disk)
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", 70)
    report = recover(disk, log.segments.bases[2])
    assert report.log_end_offset == log.log_end_offset
    assert report.bytes_truncated == 0


@on_loop
async def test_a_segment_that_lost_its_predecessors_end_is_dropped(disk: MemoryDisk) -> None:
    """A crash may keep later files and lose the end of earlier ones; a hole is never served."""
    log = await closed_log(disk)
    bases = log.segments.bases
    disk.tear(f"{DIRECTORY}/{bases[1]:020d}.log", 0)
    report = recover(disk)
    assert report.log_end_offset == bases[1]
    assert "does not follow" in report.damage[0]


@on_loop
async def test_gaps_between_segments_of_a_compacted_topic_are_no_loss(disk: MemoryDisk) -> None:
    compacted = LogSettings(
        cleanup_compact=True, segment_bytes=2_000, segment_index_bytes=400, index_interval_bytes=100
    )
    log = await closed_log(disk, compacted)
    bases = log.segments.bases
    disk.tear(f"{DIRECTORY}/{bases[1]:020d}.log", 0)
    report = recover(disk, settings=compacted)
    assert report.log_end_offset == log.log_end_offset
    assert report.damage == []


@on_loop
async def test_leftovers_of_crashes_are_cleared(disk: MemoryDisk) -> None:
    log = await closed_log(disk)
    for name in ("00000000000000009999.index", "00000000000000009999.txnindex"):
        disk.replace(f"{DIRECTORY}/{name}", b"")
    disk.replace(f"{DIRECTORY}/00000000000000009999.log.deleted", b"x")
    disk.replace(f"{DIRECTORY}/00000000000000000000.log.cleaned", b"x")
    again = open_log(disk, clean=True)
    assert again.log_end_offset == log.log_end_offset
    names = disk.list_directory(DIRECTORY)
    assert not [name for name in names if "9999" in name or name.endswith((".cleaned", ".deleted"))]


@on_loop
async def test_an_epoch_without_a_record_is_forgotten(disk: MemoryDisk) -> None:
    log = await closed_log(disk)
    log.epochs.assign(LEADER_EPOCH + 4, log.log_end_offset)
    recover(disk)
    assert open_log(disk).epochs.entries == [(LEADER_EPOCH, 0)]
