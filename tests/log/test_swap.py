"""Promises of the swap: a kill or power failure at any point leaves the log as it was or as it is to be."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from headrace.log.segment import Segment
from headrace.log.swap import complete_interrupted_swaps, discard_cleaned
from headrace.records.control import ControlType
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk
from tests.support_cleaner import (
    DIRECTORY,
    NOW_MS,
    SETTINGS,
    ScriptedLog,
    Survivor,
    batches_on_disk,
    survivors_on_disk,
    swap_in,
)

PRODUCER = 5


def written_log(segment_bytes: int = 1_000_000) -> ScriptedLog:
    """Three closed segments with duplicates, an aborted transaction and a tombstone, all of it durable."""
    log = ScriptedLog(MemoryDisk(), replace(SETTINGS, segment_bytes=segment_bytes))
    log.append([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    log.append([(b"a", b"x")], producer_id=PRODUCER, transactional=True)
    log.roll()
    log.append([(b"b", b"2"), (b"d", None), (b"e", b"0")])
    log.end(PRODUCER, ControlType.ABORT)
    log.roll()
    log.append([(b"a", b"3"), (b"e", b"1")])
    log.roll()
    log.segments[-1].sync()
    log.disk.open(f"{DIRECTORY}/00000000000000000004.snapshot", create=True).sync()
    log.disk.sync_directory(DIRECTORY)
    return log


def clean_and_swap(log: ScriptedLog) -> None:
    swap_in(log.disk, log.directory, log.clean(log.plan()))


def operations_of(log: ScriptedLog) -> int:
    """How many disk operations a whole round takes."""
    assert isinstance(log.disk, MemoryDisk)
    before = log.disk.operations.total()
    clean_and_swap(log)
    return log.disk.operations.total() - before


def interrupted(segment_bytes: int) -> Iterator[tuple[MemoryDisk, int, Loss]]:
    """A disk for every point at which a round can be cut short, and everything a crash can leave of it."""
    operations = operations_of(written_log(segment_bytes))
    for point in range(operations):
        for loss in Loss:
            log = written_log(segment_bytes)
            assert isinstance(log.disk, MemoryDisk)
            log.disk.crash_after(point)
            with pytest.raises(Crashed):
                clean_and_swap(log)
            log.disk.crash(loss, entropy=SeededEntropy(point))
            yield log.disk, point, loss


def plain_names(disk: MemoryDisk) -> list[str]:
    names = disk.list_directory(DIRECTORY)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
    return names


def before_and_after(segment_bytes: int) -> tuple[list[Survivor], list[Survivor]]:
    log = written_log(segment_bytes)
    before = survivors_on_disk(log.disk)
    clean_and_swap(log)
    return before, survivors_on_disk(log.disk)


def test_one_group_is_as_before_or_as_after_whenever_it_is_interrupted() -> None:
    before, after = before_and_after(1_000_000)
    assert before != after
    outcomes = set()
    for disk, point, loss in interrupted(1_000_000):
        complete_interrupted_swaps(disk, DIRECTORY)
        found = survivors_on_disk(disk)
        assert found in (before, after), (point, loss)
        outcomes.add(found == after)
        check_segments(disk)
    assert outcomes == {True, False}


def test_each_of_several_groups_is_as_before_or_as_after() -> None:
    before, after = before_and_after(200)
    outcomes = set()
    for disk, point, loss in interrupted(200):
        complete_interrupted_swaps(disk, DIRECTORY)
        found = survivors_on_disk(disk)
        assert set(after) <= set(found) <= set(before), (point, loss)
        assert found == sorted(found)
        outcomes.add(tuple(found))
        check_segments(disk)
    assert len(outcomes) > 2


def test_recovery_itself_may_be_interrupted_and_repeated() -> None:
    before, after = before_and_after(1_000_000)
    for disk, point, loss in interrupted(1_000_000):
        if loss is not Loss.NOTHING:
            continue
        for interruption in range(40):
            disk.crash_after(interruption)
            try:
                complete_interrupted_swaps(disk, DIRECTORY)
            except Crashed:
                disk.crash(Loss.NOTHING)
            else:
                disk.heal()
                break
        assert survivors_on_disk(disk) in (before, after), (point, loss)
        check_segments(disk)


def check_segments(disk: MemoryDisk) -> None:
    """Segments follow each other, have sound indexes, and no marker is without what it decides about."""
    names = plain_names(disk)
    bases = sorted(int(name[:20]) for name in names if name.endswith(".log"))
    end = 0
    for base in bases:
        assert base >= end
        segment = Segment.open(disk, DIRECTORY, base, SETTINGS, NOW_MS)
        segment.sanity_check()
        end = segment.next_offset()
    aborted_left = [
        batch for batch in batches_on_disk(disk) if batch.is_transactional and not batch.is_control
    ]
    listed = [
        entry
        for base in bases
        for entry in Segment.open(disk, DIRECTORY, base, SETTINGS, NOW_MS).transaction_index
    ]
    assert bool(aborted_left) == bool(listed)


def test_files_marked_deleted_go_but_not_those_of_the_quorums_snapshots() -> None:
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    for name in ("00000000000000000000.log.deleted", "00000000000000000005-0000000001.checkpoint.deleted"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    assert complete_interrupted_swaps(disk, DIRECTORY).removed == ["00000000000000000000.log.deleted"]
    assert disk.list_directory(DIRECTORY) == ["00000000000000000005-0000000001.checkpoint.deleted"]


def test_a_directory_without_leftovers_is_not_touched() -> None:
    log = written_log()
    assert isinstance(log.disk, MemoryDisk)
    writes = log.disk.operations["sync_directory"]
    recovery = complete_interrupted_swaps(log.disk, DIRECTORY)
    assert recovery.removed == recovery.completed == []
    assert log.disk.operations["sync_directory"] == writes


def test_an_empty_cleaned_segment_replaces_all_files_of_its_base() -> None:
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    for name in ("0.log", "0.index", "0.timeindex", "0.txnindex"):
        disk.open(f"{DIRECTORY}/{0:019d}{name}", create=True).append(b"old")
    for name in ("0.log.swap", "0.index.swap", "0.timeindex.swap"):
        disk.open(f"{DIRECTORY}/{0:019d}{name}", create=True)
    complete_interrupted_swaps(disk, DIRECTORY)
    assert [name[19:] for name in disk.list_directory(DIRECTORY)] == ["0.index", "0.log", "0.timeindex"]
    assert disk.size(f"{DIRECTORY}/00000000000000000000.log") == 0


def test_snapshots_within_the_replaced_range_go_and_the_one_at_its_start_stays() -> None:
    log = written_log()
    plan = log.plan()
    swap_start(log, plan.end_offset)
    for offset in (0, 2, 5, 20):
        log.disk.open(f"{DIRECTORY}/{offset:020d}.snapshot", create=True)
    complete_interrupted_swaps(log.disk, DIRECTORY)
    snapshots = [name for name in log.disk.list_directory(DIRECTORY) if name.endswith(".snapshot")]
    assert [int(name[:20]) for name in snapshots] == [0, 20]


def swap_start(log: ScriptedLog, end: int) -> None:
    """Leave a cleaned segment announced and the old files still there."""
    result = log.clean(log.plan())
    assert result.next_dirty_offset == end
    for name in log.disk.list_directory(DIRECTORY):
        if name.endswith(".cleaned"):
            log.disk.rename(f"{DIRECTORY}/{name}", f"{DIRECTORY}/{name.removesuffix('.cleaned')}.swap")


def test_an_aborted_round_leaves_nothing_behind() -> None:
    log = written_log()
    names = log.disk.list_directory(DIRECTORY)
    log.clean(log.plan())
    assert log.disk.list_directory(DIRECTORY) != names
    assert len(discard_cleaned(log.disk, DIRECTORY)) == 4
    assert log.disk.list_directory(DIRECTORY) == names


def test_a_swap_file_that_is_not_named_by_an_offset_is_refused() -> None:
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    disk.open(f"{DIRECTORY}/stray.log.swap", create=True)
    with pytest.raises(ValueError, match=r"stray\.log\.swap"):
        complete_interrupted_swaps(disk, DIRECTORY)
