"""Group commit: one sync serves all who waited before it began, and a failed one is never a success."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from headrace.errors import ErrorCode
from headrace.log.flush import Flusher
from headrace.log.health import DirectoryHealth
from headrace.log.log_errors import LogDirectoryOffline
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import on_loop

T = TypeVar("T")


class SlowDisk(MemoryDisk):
    """A disk whose off-loop calls finish when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: list[asyncio.Event] = []
        self.failure: OSError | None = None

    async def _gated(self, call: Callable[[], T]) -> T:
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        if self.failure is not None:
            raise self.failure
        return call()

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        return self._gated(call)


class FakeLog:
    def __init__(self) -> None:
        self.log_end_offset = 0
        self.recovery_point = 0
        self.directory = "/logs/topic-0"
        self.is_closed = False
        self.syncs: list[int] = []

    def unsynced(self, end_offset: int) -> Callable[[], None]:
        return lambda: self.syncs.append(end_offset)

    def mark_flushed(self, offset: int) -> None:
        self.recovery_point = max(self.recovery_point, offset)


async def settle() -> None:
    """Let every task run until it waits for something outside."""
    for _ in range(5):
        await asyncio.sleep(0)


def flusher_of(log: FakeLog, disk: MemoryDisk) -> tuple[Flusher, DirectoryHealth]:
    health = DirectoryHealth("/logs")
    return Flusher(log, disk, health, 0), health


@on_loop
async def test_waiters_during_a_sync_share_the_next_one() -> None:
    log, disk = FakeLog(), SlowDisk()
    flusher, _ = flusher_of(log, disk)
    log.log_end_offset = 1
    first = asyncio.create_task(flusher.flush_to(1, 0))
    await settle()
    log.log_end_offset = 5
    later = [asyncio.create_task(flusher.flush_to(offset, 0)) for offset in (2, 3, 5)]
    await settle()
    assert len(disk.gates) == 1
    disk.gates[0].set()
    await first
    await settle()
    assert log.recovery_point == 1
    assert [task.done() for task in later] == [False, False, False]
    disk.gates[1].set()
    await asyncio.gather(*later)
    assert log.syncs == [1, 5]
    assert log.recovery_point == 5


@on_loop
async def test_what_is_durable_already_needs_no_sync() -> None:
    log, disk = FakeLog(), SlowDisk()
    flusher, _ = flusher_of(log, disk)
    log.log_end_offset = log.recovery_point = 4
    await flusher.flush_to(4, 0)
    assert not disk.gates


@on_loop
async def test_a_cancelled_waiter_leaves_the_sync_to_the_others() -> None:
    log, disk = FakeLog(), SlowDisk()
    flusher, _ = flusher_of(log, disk)
    log.log_end_offset = 1
    first = asyncio.create_task(flusher.flush_to(1, 0))
    await settle()
    second = asyncio.create_task(flusher.flush_to(1, 0))
    await settle()
    first.cancel()
    await settle()
    disk.gates[0].set()
    await second
    assert log.recovery_point == 1


@on_loop
async def test_a_failed_sync_takes_the_directory_offline_for_all_waiters_and_is_not_retried() -> None:
    """Promise 30: it never acknowledges what it could not write."""
    log, disk = FakeLog(), SlowDisk()
    flusher, health = flusher_of(log, disk)
    log.log_end_offset = 1
    waiters = [asyncio.create_task(flusher.flush_to(1, 0)) for _ in range(3)]
    await settle()
    disk.failure = OSError(errno.EIO, "Input/output error")
    disk.gates[0].set()
    results = await asyncio.gather(*waiters, return_exceptions=True)
    assert all(isinstance(result, LogDirectoryOffline) for result in results)
    assert log.recovery_point == 0
    disk.failure = None
    with pytest.raises(LogDirectoryOffline, match=r"/logs is offline.*Input/output error") as offline:
        await flusher.flush_to(1, 0)
    assert offline.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(disk.gates) == 1
    assert health.failure is not None


@on_loop
async def test_the_recovery_point_stays_below_bytes_truncated_during_the_sync() -> None:
    log, disk = FakeLog(), SlowDisk()
    flusher, _ = flusher_of(log, disk)
    log.log_end_offset = 8
    waiting = asyncio.create_task(flusher.flush_to(8, 0))
    await settle()
    log.log_end_offset = 3
    flusher.on_truncated(3)
    log.log_end_offset = 9
    disk.gates[0].set()
    await settle()
    assert log.recovery_point == 3
    disk.gates[1].set()
    await waiting
    assert log.recovery_point == 8
