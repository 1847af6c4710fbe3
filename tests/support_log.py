"""Batches for the log's tests: short, readable, and always with the fields that matter spelled out."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import LogSurroundings, PartitionLog
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.ports import Disk
from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.records.reader import Record, read_records
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from headrace.types import TopicPartition

P = ParamSpec("P")
T = TypeVar("T")
NOW_MS = 1_700_000_000_000
LEADER_EPOCH = 3
LOGS = "/logs"
PARTITION = TopicPartition("topic", 0)
DIRECTORY = f"{LOGS}/{PARTITION}"
SMALL = LogSettings(segment_bytes=2_000, segment_index_bytes=400, index_interval_bytes=100)
UNVERIFIED = ProducerStateSettings(transaction_verification_enabled=False)


def on_loop(scenario: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test that awaits on an event loop of its own."""

    @wraps(scenario)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(scenario(*args, **kwargs))

    return run


def plain_batch(
    count: int = 1,
    *,
    size: int = 10,
    timestamp: int = NOW_MS,
    keys: Iterable[bytes | None] | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = Compression.NONE,
) -> bytearray:
    """Records with distinct values, `count` of them."""
    listed = list(keys) if keys is not None else [b"k%d" % index for index in range(count)]
    records = [
        NewRecord(timestamp + index, key, (b"%d." % index).ljust(size, b"v"))
        for index, key in enumerate(listed)
    ]
    return bytearray(
        build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, compression=compression)
    )


def producer_batch(
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = NOW_MS,
    value: bytes = b"value",
) -> bytearray:
    """A batch of an idempotent or transactional producer."""
    return bytearray(
        build_batch(
            [NewRecord(timestamp, b"p%d" % producer_id, value) for _ in range(count)],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
            leader_epoch=leader_epoch,
        )
    )


def marker(
    producer_id: int,
    kind: ControlType = ControlType.COMMIT,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = NOW_MS,
) -> bytearray:
    """The end of a transaction."""
    return bytearray(
        build_end_transaction_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=timestamp,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
    )


def only_batch(data: bytes | bytearray) -> Batch:
    """The one batch in a buffer."""
    (batch,) = batches(data)
    return batch


def records_in(data: bytes) -> list[Record]:
    """Every data record in a stretch of log."""
    return [record for batch in batches(data) if not batch.is_control for record in read_records(batch)]


def open_log(
    disk: Disk,
    settings: LogSettings = SMALL,
    *,
    clean: bool = False,
    log_start: int = 0,
    recovery_point: int = 0,
    producers: ProducerStateSettings = UNVERIFIED,
    health: DirectoryHealth | None = None,
    now_ms: int = NOW_MS,
) -> PartitionLog:
    """The log of the one partition that most tests have."""
    surroundings = LogSurroundings(disk, SeededEntropy(), health or DirectoryHealth(LOGS))
    request = OpenRequest(
        DIRECTORY, PARTITION, settings, producers, log_start, recovery_point, stopped_cleanly=clean
    )
    return open_partition(surroundings, request, now_ms)


def fill(log: PartitionLog, appends: int, records: int = 3) -> None:
    """Append as leader and let everything be replicated."""
    for _ in range(appends):
        log.append_as_leader(plain_batch(records), LEADER_EPOCH, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)


def content(log: PartitionLog, isolation: Isolation = Isolation.LOG_END) -> bytes:
    """Every byte from the log's start up to the bound of an isolation."""
    offset = log.log_start_offset
    found: list[bytes] = []
    while True:
        records = log.read(offset, 1_000, isolation).records
        if records is None:
            return b"".join(found)
        data = records.read()
        whole = list(batches(data))
        found.append(data[: whole[-1].position + whole[-1].size])
        offset = whole[-1].next_offset


def offsets_in(log: PartitionLog, isolation: Isolation = Isolation.LOG_END) -> list[int]:
    """The offsets of all data records up to the bound of an isolation."""
    return [record.offset for record in records_in(content(log, isolation))]


class PausingDisk(MemoryDisk):
    """What runs off the loop is done at once, but heard of only when the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        return self._later(call)

    async def _later(self, call: Callable[[], T]) -> T:
        result = call()
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        return result
