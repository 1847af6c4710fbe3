"""What happens to a log while others still hold on to it, or to what was written about it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.log import checkpoints
from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_errors import LogDirectoryOffline, StaleRange
from headrace.log.settings import LogSettings
from headrace.ports import BytesLike
from headrace.system.disk import RealDisk
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Loss, MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_log import NOW_MS, SMALL, fill, offsets_in, on_loop, open_log, plain_batch

T = TypeVar("T")
A0 = TopicPartition("a", 0)
PATH = "/data"


async def open_at(
    disk: MemoryDisk | RealDisk, path: str = PATH, settings: LogSettings = SMALL
) -> LogDirectory:
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    return await LogDirectory.open(ports, path, DirectorySettings(lambda _: settings), NOW_MS)


class GatedDisk(RealDisk):
    """A real disk whose threads begin when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        async def run() -> T:
            self.waiting.set()
            await self.gate.wait()
            return call()

        return run()


@on_loop
async def test_a_partition_deleted_during_a_flush_leaves_its_directory_online(tmp_path: Path) -> None:
    disk = GatedDisk()
    directory = await open_at(disk, str(tmp_path))
    log = directory.create(A0, NOW_MS)
    fill(log, 3)
    flush = asyncio.ensure_future(log.flush(NOW_MS))
    await disk.waiting.wait()
    directory.retire(A0, NOW_MS)
    disk.gate.set()
    await flush
    assert directory.health.failure is None
    disk.close()


@on_loop
async def test_a_partition_whose_files_are_gone_is_not_flushed(tmp_path: Path) -> None:
    disk = RealDisk()
    directory = await open_at(disk, str(tmp_path))
    log = directory.create(A0, NOW_MS)
    fill(log, 3)
    directory.retire(A0, NOW_MS)
    await directory.delete_due(NOW_MS + SMALL.file_delete_delay_ms)
    await log.flush(NOW_MS)
    assert directory.health.failure is None
    disk.close()


@on_loop
async def test_a_flush_goes_on_where_a_partition_has_moved_to(tmp_path: Path) -> None:
    disk = GatedDisk()
    directory = await open_at(disk, str(tmp_path))
    log = directory.create(A0, NOW_MS, is_future=True)
    fill(log, 3)
    flush = asyncio.ensure_future(log.flush(NOW_MS))
    await disk.waiting.wait()
    directory.promote_future(A0, NOW_MS)
    disk.gate.set()
    await flush
    assert log.recovery_point == log.log_end_offset
    assert directory.health.failure is None
    disk.close()


@on_loop
async def test_a_range_of_a_deleted_topic_never_becomes_one_of_its_successor(tmp_path: Path) -> None:
    """Promise 29, with a topic that is deleted and created again before the range is sent."""
    disk = RealDisk()
    directory = await open_at(disk, str(tmp_path))
    fill(directory.create(A0, NOW_MS), 3)
    records = directory.logs[A0].read(0, 1000).records
    assert records is not None
    directory.retire(A0, NOW_MS)
    fill(directory.create(A0, NOW_MS), 3)
    with pytest.raises(StaleRange), records.pin():
        pass
    with pytest.raises(StaleRange):
        records.read()
    disk.close()


@on_loop
async def test_a_range_of_a_segment_that_is_gone_is_stale(tmp_path: Path) -> None:
    disk = RealDisk()
    directory = await open_at(disk, str(tmp_path))
    log = directory.create(A0, NOW_MS)
    fill(log, 60)
    records = log.read(0, 1000).records
    assert records is not None
    log.advance_log_start(log.log_end_offset)
    log.delete_old_segments(NOW_MS)
    await log.delete_due_files(NOW_MS + SMALL.file_delete_delay_ms)
    with pytest.raises(StaleRange):
        records.read()
    disk.close()


@on_loop
async def test_a_new_topic_does_not_start_where_the_one_before_it_did() -> None:
    """A deleted topic's log start must not cost its successor of the same name its records."""
    disk = MemoryDisk()
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 20)
    directory.logs[A0].advance_log_start(50)
    await directory.write_log_starts()
    directory.retire(A0, NOW_MS)
    fill(directory.create(A0, NOW_MS), 3)
    await directory.logs[A0].flush(NOW_MS)
    disk.crash(Loss.EVERYTHING)

    again = await open_at(disk)
    assert offsets_in(again.logs[A0]) == list(range(9))


@on_loop
async def test_a_failing_medium_during_recovery_is_the_directorys_failure_alone() -> None:
    """Promise 30: the node goes on with its other directories."""
    disk = MemoryDisk()
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 3)
    disk.crash(Loss.NOTHING)
    disk.fail(when=lambda operation: operation.kind == "read" and operation.path.endswith(".log"))
    with pytest.raises(LogDirectoryOffline):
        await open_at(disk)


class SlowReplaceDisk(RealDisk):
    """A real disk on which the first replacement of a file waits to be let through."""

    def __init__(self) -> None:
        super().__init__()
        self.held = threading.Event()
        self.let_through = threading.Event()
        self.contents: list[bytes] = []
        self.begun = 0

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        self.begun += 1
        return super().off_loop(call)

    def replace(self, path: str, data: BytesLike) -> None:
        if path.endswith(checkpoints.REPLICATION_OFFSET) and not self.held.is_set():
            self.held.set()
            self.let_through.wait()
        super().replace(path, data)
        if path.endswith(checkpoints.REPLICATION_OFFSET):
            self.contents.append(bytes(data))


@on_loop
async def test_an_abandoned_checkpoint_is_not_written_over_a_later_one(tmp_path: Path) -> None:
    disk = SlowReplaceDisk()
    directory = await open_at(disk, str(tmp_path))
    log = directory.create(A0, NOW_MS)
    fill(log, 1)
    first = asyncio.ensure_future(directory.write_high_watermarks())
    await asyncio.get_running_loop().run_in_executor(None, disk.held.wait)
    first.cancel()
    fill(log, 1)
    second = asyncio.ensure_future(directory.write_high_watermarks())
    for _ in range(5):
        await asyncio.sleep(0)
    assert disk.begun == 1
    disk.let_through.set()
    await second
    assert [content.split()[-1] for content in disk.contents] == [b"3", b"6"]
    assert checkpoints.read_offsets(disk, f"{tmp_path}/{checkpoints.REPLICATION_OFFSET}") == {A0: 6}
    disk.close()


@on_loop
async def test_a_recovery_point_is_not_passed_on_to_a_successor() -> None:
    disk = MemoryDisk()
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 100)
    await directory.logs[A0].flush(NOW_MS)
    await directory.write_recovery_points()
    directory.retire(A0, NOW_MS)
    directory.create(A0, NOW_MS)
    await directory.flush_rolled(NOW_MS)
    assert checkpoints.read_offsets(disk, f"{PATH}/{checkpoints.RECOVERY_POINT}") == {A0: 0}


@on_loop
async def test_a_truncated_log_has_its_recovery_point_written_again() -> None:
    disk = MemoryDisk()
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS)
    fill(log, 100)
    await log.flush(NOW_MS)
    await directory.write_recovery_points()
    log.truncate_to(30, NOW_MS)
    await directory.flush_rolled(NOW_MS)
    assert checkpoints.read_offsets(disk, f"{PATH}/{checkpoints.RECOVERY_POINT}") == {A0: 30}


@on_loop
async def test_records_of_an_older_epoch_after_a_truncation_survive_a_crash() -> None:
    """A short-lived leader's epoch is cut off; the next leader's log goes on with the epoch before it."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.append_as_follower(plain_batch(3, base_offset=0, leader_epoch=4), 4, NOW_MS)
    log.append_as_follower(plain_batch(3, base_offset=3, leader_epoch=5), 5, NOW_MS)
    log.truncate_to(3, NOW_MS)
    log.append_as_follower(plain_batch(3, base_offset=3, leader_epoch=4), 6, NOW_MS)
    await log.flush(NOW_MS)
    disk.crash(Loss.EVERYTHING)
    assert offsets_in(open_log(disk)) == list(range(6))


@on_loop
async def test_records_of_an_older_epoch_after_an_empty_one_survive_a_crash() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    log.append_as_follower(plain_batch(3, base_offset=0, leader_epoch=4), 4, NOW_MS)
    log.epochs.assign(5, 3)
    log.truncate_to(3, NOW_MS)
    log.append_as_follower(plain_batch(3, base_offset=3, leader_epoch=4), 6, NOW_MS)
    await log.flush(NOW_MS)
    disk.crash(Loss.EVERYTHING)
    assert offsets_in(open_log(disk)) == list(range(6))
