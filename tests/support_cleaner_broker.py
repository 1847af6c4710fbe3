"""A broker's logs with a cleaner, for the tests of who compacts what when."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headrace.log.checkpoints import CLEANER_OFFSET, read_offsets
from headrace.log.cleaner_manager import CleanerManager
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.partition_log import LogSurroundings, PartitionLog
from headrace.log.settings import CleanerSettings, LogSettings, ProducerStateSettings
from headrace.ports import Disk, Workers
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_cleaner import TestPace, survivors_on_disk
from tests.support_log import NOW_MS, plain_batch

T = TypeVar("T")
ROOT = "/data"
SETTINGS = LogSettings(
    cleanup_delete=False, cleanup_compact=True, segment_index_bytes=12_000, file_delete_delay_ms=1_000
)
PRODUCERS = ProducerStateSettings(transaction_verification_enabled=False)


class HeldWorkers:
    """Workers whose jobs begin only when told to, and can be cancelled before."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.released = asyncio.Event()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        self.started.set()
        await self.released.wait()
        return function(*arguments)


class Broker:
    """Logs in one directory with a cleaner, and appends that roll as told."""

    def __init__(
        self,
        disk: Disk | None = None,
        workers: Workers | None = None,
        root: str = ROOT,
        settings: CleanerSettings | None = None,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.root = root
        self.disk.make_directory(root)
        self.health = DirectoryHealth(root)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.cleaner = CleanerManager(
            self.disk,
            workers or InlineWorkers(),
            self.logs,
            [root],
            settings or CleanerSettings(),
            lambda: self.disk,
            TestPace,
        )

    def open(self, topic: str = "topic", settings: LogSettings = SETTINGS) -> PartitionLog:
        partition = TopicPartition(topic, 0)
        request = OpenRequest(f"{self.root}/{partition}", partition, settings, PRODUCERS)
        surroundings = LogSurroundings(self.disk, SeededEntropy(), self.health)
        log = self.logs[partition] = open_partition(surroundings, request, NOW_MS)
        return log

    def dirty_offset(self, topic: str = "topic") -> int | None:
        path = f"{self.root}/{CLEANER_OFFSET}"
        return read_offsets(self.disk, path).get(TopicPartition(topic, 0))


def write(log: PartitionLog, *keys: bytes, timestamp: int = NOW_MS) -> None:
    """Append records of these keys as one batch."""
    log.append_as_leader(plain_batch(keys=keys, timestamp=timestamp), 0, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)


def fill(log: PartitionLog, rounds: int = 3) -> None:
    """Closed segments with the same two keys again and again, and an empty active one."""
    for _ in range(rounds):
        write(log, b"a", b"b")
        log.roll(NOW_MS)


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in survivors_on_disk(log.disk, log.directory)]
