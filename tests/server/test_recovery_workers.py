"""Small logs are put right at once, large ones in a worker process."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headrace.log.recovery import RecoveryJob, RecoveryReport, recover_partition
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.server import recovery_workers
from headrace.server.recovery_workers import RecoveryWorkers, unchecked_bytes
from headrace.testing.memory_disk import MemoryDisk
from headrace.types import TopicPartition

T = TypeVar("T")
DIRECTORY = "/data/topic-0"


class NotedWorkers:
    """Workers that note what they are given, and do none of it."""

    def __init__(self) -> None:
        self.jobs: list[RecoveryJob] = []

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        job = arguments[-1]
        assert isinstance(job, RecoveryJob)
        self.jobs.append(job)
        return RecoveryReport(job.partition)  # type: ignore[return-value]


def disk_with(*segments: tuple[int, int]) -> MemoryDisk:
    """A partition whose segments have these bases and sizes."""
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    for base, size in segments:
        disk.replace(f"{DIRECTORY}/{base:020d}.log", bytes(size))
    return disk


def job(recovery_point: int = 0) -> RecoveryJob:
    settings, producers = LogSettings(), ProducerStateSettings()
    return RecoveryJob(DIRECTORY, TopicPartition("topic", 0), settings, producers, 0, recovery_point, 0)


def test_only_segments_from_the_recovery_point_on_count() -> None:
    disk = disk_with((0, 100), (10, 200), (20, 400))
    assert unchecked_bytes(disk, job()) == 700
    assert unchecked_bytes(disk, job(10)) == 600
    assert unchecked_bytes(disk, job(15)) == 600
    assert unchecked_bytes(disk, job(99)) == 400


def test_small_logs_need_no_process() -> None:
    workers = NotedWorkers()
    disk = disk_with((0, 0))
    report = asyncio.run(RecoveryWorkers(disk, workers).run(recover_partition, lambda: disk, job()))
    assert report.segments_checked == 1
    assert not workers.jobs


def test_large_logs_go_to_a_worker() -> None:
    workers = NotedWorkers()
    disk = disk_with((0, recovery_workers.INLINE_BYTES_MAX + 1))
    asyncio.run(RecoveryWorkers(disk, workers).run(recover_partition, lambda: disk, job()))
    assert workers.jobs == [job()]


def test_many_small_logs_go_to_workers_too() -> None:
    workers = NotedWorkers()
    size = recovery_workers.INLINE_BYTES_MAX
    disk = disk_with((0, 0))
    small = RecoveryWorkers(disk, workers)
    small._inline_bytes = recovery_workers.INLINE_TOTAL_BYTES_MAX - size + 1
    disk.replace(f"{DIRECTORY}/{0:020d}.log", bytes(size))
    asyncio.run(small.run(recover_partition, lambda: disk, job()))
    assert len(workers.jobs) == 1
