"""Promises of who compacts what when: choice, checkpoints, pauses, failures."""

import asyncio
import errno
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from headrace.errors import WorkersClosed
from headrace.log.checkpoints import CLEANER_OFFSET, read_offsets, write_offsets
from headrace.log.cleaner_manager import CleanerManager
from headrace.log.cleaner_states import CleaningStateError, Phase
from headrace.log.log_reads import Isolation
from headrace.log.settings import CleanerSettings, LogSettings
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_cleaner import TestPace, batches_on_disk
from tests.support_cleaner_broker import ROOT, SETTINGS, Broker, HeldWorkers, fill, offsets, write
from tests.support_log import NOW_MS, on_loop, plain_batch, producer_batch

T = TypeVar("T")


@on_loop
async def test_a_dirty_log_is_compacted_and_its_checkpoint_written() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == [4, 5]
    assert broker.dirty_offset() == 6
    assert log.segments.bases == [0, 6]
    assert broker.cleaner.first_dirty_offset(log) == 6
    assert broker.cleaner.last_stats is not None
    assert broker.cleaner.last_stats.records_written == 2
    assert not await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_a_log_reads_on_after_compaction_and_goes_on_taking_appends() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    await broker.cleaner.clean_once(NOW_MS)
    write(log, b"c")
    found = log.read(0, 10_000, Isolation.COMMITTED)
    assert found.records is not None
    assert log.log_end_offset == 7
    assert log.log_start_offset == 0
    assert offsets(log) == [4, 5, 6]


@on_loop
async def test_the_old_files_go_after_their_delay() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    await broker.cleaner.clean_once(NOW_MS)
    deleted = [name for name in broker.disk.list_directory(log.directory) if name.endswith(".deleted")]
    assert len(deleted) >= 9
    await log.delete_due_files(NOW_MS + 1_000)
    assert not [name for name in broker.disk.list_directory(log.directory) if name.endswith(".deleted")]


@on_loop
async def test_a_log_that_is_not_compacted_by_policy_is_left_alone() -> None:
    broker = Broker()
    log = broker.open(settings=LogSettings())
    fill(log)
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert len(offsets(log)) == 6


@on_loop
async def test_a_log_below_its_dirty_ratio_waits() -> None:
    broker = Broker()
    log = broker.open()
    for number in range(4):
        write(log, b"key-%d" % number)
        log.roll(NOW_MS)
    assert await broker.cleaner.clean_once(NOW_MS)
    write(log, b"key-0")
    log.roll(NOW_MS)
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert broker.cleaner.max_dirty_ratio == pytest.approx(0.2)
    log.update_settings(replace(SETTINGS, min_cleanable_dirty_ratio=0.1))
    assert await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == [1, 2, 3, 4]


@on_loop
async def test_the_dirtiest_log_goes_first() -> None:
    broker = Broker()
    clean = broker.open("clean")
    fill(clean)
    await broker.cleaner.clean_once(NOW_MS)
    fill(clean)
    dirty = broker.open("dirty")
    fill(dirty)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert (len(offsets(clean)), len(offsets(dirty))) == (8, 2)


@on_loop
async def test_max_compaction_lag_makes_a_log_due_whatever_its_ratio() -> None:
    broker = Broker()
    lagging = replace(SETTINGS, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    log = broker.open(settings=lagging)
    fill(log)
    assert not await broker.cleaner.clean_once(NOW_MS + 1_000)
    assert await broker.cleaner.clean_once(NOW_MS + 1_500)
    assert broker.cleaner.max_compaction_delay_ms == 499


@on_loop
async def test_min_compaction_lag_keeps_young_segments_as_they_are() -> None:
    broker = Broker()
    log = broker.open(settings=replace(SETTINGS, min_compaction_lag_ms=1_000))
    write(log, b"a", b"a", timestamp=NOW_MS - 5_000)
    log.roll(NOW_MS)
    write(log, b"a")
    log.roll(NOW_MS)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == [1, 2]
    assert broker.dirty_offset() == 2


@on_loop
async def test_nothing_beyond_the_last_stable_offset_is_compacted() -> None:
    broker = Broker()
    log = broker.open()
    write(log, b"a", b"a")
    log.roll(NOW_MS)
    log.append_as_leader(producer_batch(7, 0, transactional=True), 0, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    write(log, b"a", b"a")
    log.roll(NOW_MS)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == [1, 2, 3, 4]
    assert broker.dirty_offset() == 2


@on_loop
async def test_a_producer_whose_last_batch_was_emptied_goes_on_with_its_sequence() -> None:
    broker = Broker()
    log = broker.open()
    log.append_as_leader(producer_batch(7, 0, 3), 0, NOW_MS)
    log.append_as_leader(plain_batch(keys=[b"p7"]), 0, NOW_MS)
    log.advance_high_watermark(log.log_end_offset)
    log.roll(NOW_MS)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert [batch.count for batch in batches_on_disk(broker.disk, log.directory)] == [0, 1]
    for name in broker.disk.list_directory(log.directory):
        if name.endswith(".snapshot"):
            broker.disk.remove(f"{log.directory}/{name}")
    reopened = broker.open()
    assert reopened.producers.entries[7].last_sequence == 2
    assert reopened.append_as_leader(producer_batch(7, 3), 0, NOW_MS).first_offset == 4


@on_loop
async def test_compact_and_delete_does_both() -> None:
    broker = Broker()
    both = replace(SETTINGS, cleanup_delete=True, retention_ms=1_000)
    log = broker.open(settings=both)
    write(log, b"old", timestamp=NOW_MS - 5_000)
    log.roll(NOW_MS)
    await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == []
    assert log.log_start_offset == 1
    fill(log)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert offsets(log) == [5, 6]


@on_loop
async def test_a_checkpoint_before_the_logs_start_is_corrected(caplog: pytest.LogCaptureFixture) -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    await broker.cleaner.clean_once(NOW_MS)
    fill(log, 1)
    log.advance_log_start(8)
    assert log.log_start_offset == 8
    with caplog.at_level(logging.WARNING):
        await broker.cleaner.clean_once(NOW_MS)
    assert "its first dirty offset 6 lies before its start 8" in caplog.text
    assert broker.dirty_offset() == 8


@on_loop
async def test_a_checkpoint_beyond_the_logs_end_is_corrected() -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    write_offsets(disk, f"{ROOT}/{CLEANER_OFFSET}", {TopicPartition("topic", 0): 1_000})
    broker = Broker(disk)
    log = broker.open()
    fill(log)
    assert await broker.cleaner.clean_once(NOW_MS)
    assert broker.dirty_offset() == 6


@on_loop
async def test_truncation_below_the_checkpoint_lowers_it() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    await broker.cleaner.clean_once(NOW_MS)
    await broker.cleaner.on_truncated(log, 100)
    assert broker.dirty_offset() == 6
    await broker.cleaner.pause(log.partition)
    log.truncate_to(5, NOW_MS)
    await broker.cleaner.on_truncated(log, 5)
    broker.cleaner.resume(log.partition)
    assert broker.dirty_offset() == 5


@on_loop
async def test_a_corrupt_checkpoint_file_costs_time_only(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    disk.open(f"{ROOT}/{CLEANER_OFFSET}", create=True).append(b"what is this?")
    broker = Broker(disk)
    assert "compacted from their start" in caplog.text
    fill(broker.open())
    assert await broker.cleaner.clean_once(NOW_MS)
    assert broker.dirty_offset() == 6


@on_loop
async def test_entries_of_deleted_partitions_go() -> None:
    broker = Broker()
    for topic in ("first", "second"):
        fill(broker.open(topic))
        await broker.cleaner.clean_once(NOW_MS)
    assert (broker.dirty_offset("first"), broker.dirty_offset("second")) == (6, 6)
    del broker.logs[TopicPartition("first", 0)]
    await broker.cleaner.on_deleted(ROOT, TopicPartition("first", 0))
    assert (broker.dirty_offset("first"), broker.dirty_offset("second")) == (None, 6)


@on_loop
async def test_a_corrupt_log_is_left_alone_with_one_clear_line_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker()
    bad, good = broker.open("bad"), broker.open("good")
    fill(bad, 4)
    fill(good)
    assert isinstance(broker.disk, MemoryDisk)
    broker.disk.flip_bit(f"{bad.directory}/00000000000000000002.log", 70)
    results = [await broker.cleaner.clean_once(NOW_MS) for _ in range(3)]
    assert sorted(results) == [False, False, True]
    assert offsets(good) == [4, 5]
    assert broker.cleaner.uncleanable == {ROOT: {bad.partition}}
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "compaction of bad-0" in line
    assert "00000000000000000002.log is corrupt at position 0" in line
    assert not [name for name in broker.disk.list_directory(bad.directory) if name.endswith(".cleaned")]
    del broker.logs[bad.partition]
    await broker.cleaner.clean_once(NOW_MS)
    assert broker.cleaner.uncleanable == {}


@on_loop
async def test_a_buffer_too_small_for_a_key_is_told_by_the_setting_to_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = Broker(settings=CleanerSettings(dedupe_buffer_bytes=10))
    fill(broker.open())
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert "raise log.cleaner.dedupe.buffer.size" in caplog.text


@on_loop
async def test_a_full_disk_puts_compaction_off_and_nothing_else() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    assert isinstance(broker.disk, MemoryDisk)
    broker.disk.fail(errno.ENOSPC, when=lambda operation: operation.path.endswith(".log.cleaned"))
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert broker.health.failure is None
    assert not [name for name in broker.disk.list_directory(log.directory) if name.endswith(".cleaned")]
    assert await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_an_io_error_takes_the_directory_offline() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    assert isinstance(broker.disk, MemoryDisk)
    broker.disk.fail(errno.EIO, when=lambda operation: operation.path.endswith(".log.cleaned"))
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert broker.health.failure is not None
    assert "compacting topic-0" in broker.health.failure.message
    assert not await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_pausing_stops_what_is_under_way_and_leaves_nothing_of_it() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    assert broker.cleaner.phase(log.partition) is Phase.IN_PROGRESS
    await broker.cleaner.pause(log.partition)
    assert broker.cleaner.phase(log.partition) is Phase.PAUSED
    assert not await cleaning
    assert broker.dirty_offset() is None
    assert len(offsets(log)) == 6
    workers.released.set()
    assert not await broker.cleaner.clean_once(NOW_MS)
    broker.cleaner.resume(log.partition)
    assert broker.cleaner.phase(log.partition) is None
    assert await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_pauses_add_up() -> None:
    broker = Broker()
    log = broker.open()
    fill(log)
    await broker.cleaner.pause(log.partition)
    await broker.cleaner.pause(log.partition)
    broker.cleaner.resume(log.partition)
    assert not await broker.cleaner.clean_once(NOW_MS)
    broker.cleaner.resume(log.partition)
    assert await broker.cleaner.clean_once(NOW_MS)
    with pytest.raises(CleaningStateError, match="not paused"):
        broker.cleaner.resume(log.partition)


@on_loop
async def test_an_abort_lets_the_log_be_compacted_again() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    await broker.cleaner.abort(log.partition)
    assert not await cleaning
    workers.released.set()
    assert await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_a_result_for_a_log_that_was_truncated_meanwhile_is_discarded() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    log.truncations += 1
    workers.released.set()
    assert not await cleaning
    assert len(offsets(log)) == 6
    assert broker.dirty_offset() is None


@on_loop
async def test_a_result_for_segments_that_are_gone_meanwhile_is_discarded() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    workers.released.set()
    await asyncio.sleep(0)
    log.advance_log_start(2)
    log.delete_old_segments(NOW_MS)
    assert not await cleaning
    assert offsets(log) == [2, 3, 4, 5]
    assert broker.cleaner.uncleanable == {}


@on_loop
async def test_a_partition_deleted_under_a_worker_does_not_take_the_directory_offline() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    log.rename_directory("topic-0.0123456789abcdef0123456789abcdef-delete")
    del broker.logs[log.partition]
    workers.released.set()
    assert not await cleaning
    assert broker.health.failure is None
    assert broker.cleaner.uncleanable == {}
    assert broker.cleaner.phase(log.partition) is None


@on_loop
async def test_a_cancelled_round_stops_its_worker_and_lets_go_of_the_log() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    log = broker.open()
    fill(log)
    cleaning = asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS))
    await workers.started.wait()
    cleaning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cleaning
    assert broker.cleaner.phase(log.partition) is None
    workers.released.set()
    assert await broker.cleaner.clean_once(NOW_MS)


@on_loop
async def test_two_rounds_at_once_take_different_logs() -> None:
    workers = HeldWorkers()
    broker = Broker(workers=workers)
    logs = [broker.open("one"), broker.open("two")]
    for log in logs:
        fill(log)
    rounds = [asyncio.ensure_future(broker.cleaner.clean_once(NOW_MS)) for _ in range(3)]
    await workers.started.wait()
    workers.released.set()
    assert sorted(await asyncio.gather(*rounds)) == [False, True, True]
    assert [offsets(log) for log in logs] == [[4, 5], [4, 5]]


@on_loop
async def test_stopped_workers_are_nobodys_fault() -> None:
    class Stopped:
        async def run(self, function: Callable[..., T], *arguments: object) -> T:
            raise WorkersClosed("stopped")

    broker = Broker(workers=Stopped())
    fill(broker.open())
    assert not await broker.cleaner.clean_once(NOW_MS)
    assert broker.cleaner.uncleanable == {}


@on_loop
async def test_a_partition_takes_its_checkpoint_to_another_directory() -> None:
    broker = Broker()
    log = broker.open()
    broker.disk.make_directory("/other")
    cleaner = CleanerManager(
        broker.disk,
        InlineWorkers(),
        broker.logs,
        [ROOT, "/other"],
        CleanerSettings(),
        lambda: broker.disk,
        TestPace,
    )
    fill(log)
    await cleaner.clean_once(NOW_MS)
    await cleaner.on_moved(log.partition, ROOT, "/other")
    assert broker.dirty_offset() is None
    assert read_offsets(broker.disk, f"/other/{CLEANER_OFFSET}") == {log.partition: 6}
    cleaner.on_directory_failed("/other")
    await cleaner.on_deleted("/other", log.partition)
    assert read_offsets(broker.disk, f"/other/{CLEANER_OFFSET}") == {log.partition: 6}
