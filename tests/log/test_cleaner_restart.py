"""Compaction and restarts: a broker killed in the middle of it, and all of it with processes and files."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from headrace.log.cleaner_manager import CleanerManager
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import CleanerSettings
from headrace.system.disk import RealDisk
from headrace.system.pace import SystemPace
from headrace.system.workers import ProcessWorkers
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk
from tests.support_cleaner_broker import Broker, fill, offsets
from tests.support_log import NOW_MS, on_loop


async def durable_broker() -> tuple[Broker, PartitionLog]:
    """A dirty log of which everything is on the medium."""
    broker = Broker()
    log = broker.open()
    fill(log)
    await log.close(NOW_MS)
    reopened = broker.open()
    reopened.update_high_watermark(6)
    return broker, reopened


@on_loop
async def test_a_broker_killed_at_any_point_of_a_round_finds_the_log_as_before_or_as_after() -> None:
    broker, log = await durable_broker()
    assert isinstance(broker.disk, MemoryDisk)
    before, started = offsets(log), broker.disk.operations.total()
    assert await broker.cleaner.clean_once(NOW_MS)
    after, operations = offsets(log), broker.disk.operations.total() - started
    outcomes = set()
    for point in range(operations):
        for loss in Loss:
            broker, log = await durable_broker()
            disk = broker.disk
            assert isinstance(disk, MemoryDisk)
            disk.crash_after(point)
            with suppress(Crashed):
                await broker.cleaner.clean_once(NOW_MS)
            disk.crash(loss, entropy=SeededEntropy(point))
            restarted = Broker(disk)
            log = restarted.open()
            assert offsets(log) in (before, after), (point, loss)
            outcomes.add(tuple(offsets(log)))
            assert log.log_end_offset == 6
            log.update_high_watermark(6)
            await restarted.cleaner.clean_once(NOW_MS)
            assert offsets(log) == after
    assert outcomes == {tuple(before), tuple(after)}


def test_compaction_in_a_process_on_a_real_disk(tmp_path: Path) -> None:
    async def main() -> None:
        disk = RealDisk()
        async with ProcessWorkers() as workers:
            broker = Broker(disk, workers, str(tmp_path))
            broker.cleaner = CleanerManager(
                disk, workers, broker.logs, [str(tmp_path)], CleanerSettings(), RealDisk, SystemPace
            )
            log = broker.open()
            fill(log, 5)
            found = log.read(0, 10_000, Isolation.LOG_END)
            assert found.records is not None
            with found.records.file.pin() as pinned:
                before = os.pread(pinned, 100_000, 0)
                assert await broker.cleaner.clean_once(NOW_MS)
                await log.delete_due_files(NOW_MS + 1_000)
                assert os.pread(pinned, 100_000, 0) == before
            assert offsets(log) == [8, 9]
            assert broker.dirty_offset() == 10
            await log.close(NOW_MS)
        disk.close()

    asyncio.run(main())
