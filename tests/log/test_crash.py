"""Crashes at every operation of the disk: what was durable survives, and nothing torn is ever seen."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from headrace.log.append_origin import AppendOrigin
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import LogSettings
from headrace.records.batch import batches
from headrace.records.control import ControlType
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk
from tests.support_log import (
    LEADER_EPOCH,
    NOW_MS,
    content,
    marker,
    on_loop,
    open_log,
    plain_batch,
    producer_batch,
)

SETTINGS = LogSettings(
    segment_bytes=600, segment_index_bytes=96, index_interval_bytes=150, file_delete_delay_ms=5
)


@dataclass
class History:
    """What a short life of a log has done, for comparison after the crash."""

    tried: list[bytes] = field(default_factory=list)
    """Every batch that was ever given to the log, as it would lie in it, truncated ones included."""
    written: list[bytes] = field(default_factory=list)
    """Those that were taken and not truncated since."""
    durable: int = 0
    """How many of them a finished flush covers."""
    recovery_point: int = 0
    """What the checkpoint would say."""


Story = Callable[[MemoryDisk, History], Coroutine[None, None, None]]


def lead(log: PartitionLog, history: History, data: bytearray, epoch: int = 3, **options: object) -> None:
    try:
        log.append_as_leader(data, epoch, NOW_MS, **options)  # type: ignore[arg-type]
    finally:
        history.tried.append(bytes(data))
    log.advance_high_watermark(log.log_end_offset)
    history.written.append(bytes(data))


async def flush(log: PartitionLog, history: History) -> None:
    await log.flush(NOW_MS)
    history.durable = len(history.written)
    history.recovery_point = log.recovery_point


async def write_and_flush(disk: MemoryDisk, history: History) -> None:
    log = open_log(disk, SETTINGS)
    for number in range(14):
        lead(log, history, producer_batch(1, number * 2, 2, value=b"%03d" % number * 20))
        if number % 4 == 3:
            await flush(log, history)
    await log.close(NOW_MS)


async def transactions(disk: MemoryDisk, history: History) -> None:
    log = open_log(disk, SETTINGS)
    coordinator = {"origin": AppendOrigin.COORDINATOR, "transaction_version": 1}
    for number in range(4):
        for producer in (1, 2):
            lead(log, history, producer_batch(producer, number * 2, 2, transactional=True))
        lead(log, history, plain_batch(2))
        kind = ControlType.ABORT if number % 2 else ControlType.COMMIT
        lead(log, history, marker(1, kind), **coordinator)
        if number == 1:
            await flush(log, history)
        lead(log, history, marker(2, ControlType.ABORT), **coordinator)
    await flush(log, history)


async def roll_and_retire(disk: MemoryDisk, history: History) -> None:
    log = open_log(disk, SETTINGS)
    for number in range(16):
        lead(log, history, plain_batch(3, size=30))
        if number == 9:
            await flush(log, history)
            log.advance_log_start(log.segments.bases[1])
            log.delete_old_segments(NOW_MS)
            await log.delete_due_files(NOW_MS + 5)
    await flush(log, history)


async def truncate_and_go_on(disk: MemoryDisk, history: History) -> None:
    log = open_log(disk, SETTINGS)
    for _ in range(12):
        lead(log, history, plain_batch(2, size=40))
    await flush(log, history)
    # From here on only the first five are promised until the next flush.
    history.durable = 5
    history.recovery_point = 10
    log.truncate_to(10, NOW_MS)
    del history.written[5:]
    for number in range(8):
        lead(log, history, producer_batch(9, number * 2, 2, value=b"other" * 9), epoch=4)
    await flush(log, history)


STORIES: list[Story] = [write_and_flush, transactions, roll_and_retire, truncate_and_go_on]


async def operations_of(story: Story) -> int:
    disk = MemoryDisk()
    await story(disk, History())
    return sum(disk.operations.values())


def check_survivors(disk: MemoryDisk, history: History) -> None:
    """Everything durable is there, all that is there was written, in order and whole, and it can go on."""
    log = open_log(disk, SETTINGS, recovery_point=history.recovery_point)
    found = [bytes(batch.data) for batch in batches(content(log))]
    positions = {data: index for index, data in enumerate(history.tried)}
    assert len(positions) == len(history.tried)
    indexes = [positions[data] for data in found]
    assert indexes == sorted(indexes)
    assert _starts_with(found, _from(log.log_start_offset, history.written[: history.durable]))
    end = log.log_end_offset
    assert log.append_as_leader(plain_batch(2), 9, NOW_MS).first_offset == end


def _starts_with(found: list[bytes], expected: list[bytes]) -> bool:
    return found[: len(expected)] == expected


def _from(log_start: int, stored: list[bytes]) -> list[bytes]:
    return [data for data in stored if int.from_bytes(data[:8], "big") >= log_start]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("loss", list(Loss))
@on_loop
async def test_a_crash_at_any_operation_loses_nothing_durable(story: Story, loss: Loss) -> None:
    """Promise 27: after a kill at any byte, a restart truncates a torn batch and serves what is durable."""
    for operations in range(await operations_of(story)):
        disk, history = MemoryDisk(), History()
        disk.crash_after(operations)
        with suppress(Crashed):
            await story(disk, history)
        disk.crash(loss, entropy=SeededEntropy(operations))
        check_survivors(disk, history)


@on_loop
async def test_a_second_crash_during_recovery_does_no_harm() -> None:
    """Promise 27: recovery itself may be killed at any operation."""
    for operations in range(0, 120, 3):
        disk, history = MemoryDisk(), History()
        await transactions(disk, history)
        lead_unflushed(disk, history)
        disk.crash(Loss.TAIL, entropy=SeededEntropy(operations))
        disk.crash_after(operations)
        with suppress(Crashed):
            open_log(disk, SETTINGS, recovery_point=history.recovery_point)
        disk.crash(Loss.TAIL, entropy=SeededEntropy(operations + 1))
        check_survivors(disk, history)


def lead_unflushed(disk: MemoryDisk, history: History) -> None:
    """A few batches that no flush covers, the last of them of a producer."""
    log = open_log(disk, SETTINGS, recovery_point=history.recovery_point)
    for number in range(5):
        lead(log, history, producer_batch(50, number, value=b"late" * 10))


@on_loop
async def test_a_torn_tail_is_cut_at_every_length() -> None:
    """Promise 27: a kill at any byte of the last batch leaves what came before and nothing of it."""
    disk = MemoryDisk()
    log = open_log(disk, LogSettings(segment_index_bytes=96))
    sizes = []
    for number in range(3):
        log.append_as_leader(producer_batch(1, number * 2, 2), LEADER_EPOCH, NOW_MS)
        sizes.append(log.size)
    path = log.segments.active.log.path
    whole = disk.read(path)
    for length in range(sizes[1], sizes[2]):
        disk.crash(Loss.NOTHING)
        disk.replace(path, whole[:length])
        again = open_log(disk, LogSettings(segment_index_bytes=96))
        assert again.log_end_offset == 4
        assert again.size == sizes[1]
        assert again.producers.entries[1].last_sequence == 3
        retried = again.append_as_leader(producer_batch(1, 2, 2), LEADER_EPOCH, NOW_MS)
        assert retried.is_duplicate


@on_loop
async def test_producers_and_aborted_transactions_survive_a_kill() -> None:
    """Promise 14 and 15 after a kill: duplicates are known and aborted transactions are told."""
    disk, history = MemoryDisk(), History()
    await transactions(disk, history)
    before = open_log(disk, SETTINGS, recovery_point=history.recovery_point)
    expected = before.aborted_transactions(0, 1_000)
    assert len(expected) == 6
    disk.crash(Loss.NOTHING)
    again = open_log(disk, SETTINGS)
    assert again.aborted_transactions(0, 1_000) == expected
    assert again.producers.entries.keys() == {1, 2}
    assert again.last_stable_offset == again.high_watermark
    assert again.first_unstable_offset is None
