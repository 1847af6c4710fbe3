"""A log directory: opening, checkpoints, clean and unclean stops, partitions that come and go."""

from pathlib import Path
from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log import checkpoints
from headrace.log.directory_names import DirectoryKind, NotAPartitionDirectory
from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.settings import LogSettings
from headrace.system.disk import RealDisk
from headrace.system.workers import ProcessWorkers
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Loss, MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_log import LEADER_EPOCH, NOW_MS, SMALL, fill, offsets_in, on_loop, producer_batch

PATH = "/data"
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def settings_of(topic: str) -> LogSettings:
    return SMALL if topic == "a" else LogSettings(segment_index_bytes=400)


async def open_at(disk: MemoryDisk, now_ms: int = NOW_MS) -> LogDirectory:
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    return await LogDirectory.open(ports, PATH, DirectorySettings(settings_of), now_ms)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@on_loop
async def test_a_clean_stop_and_start_keeps_every_offset(disk: MemoryDisk) -> None:
    """Promise 28, the log's part: stopped cleanly, everything is there and nothing is recovered."""
    directory = await open_at(disk)
    for partition in (A0, A1, B0):
        fill(directory.create(partition, NOW_MS, topic_id=UUID(int=9)), 20)
    directory.logs[A0].advance_log_start(5)
    directory.logs[B0].append_as_leader(producer_batch(1, 0), LEADER_EPOCH, NOW_MS)
    await directory.close(NOW_MS, broker_epoch=17)
    assert checkpoints.read_clean_shutdown(disk, PATH) == 17

    again = await open_at(disk)
    assert again.stopped_cleanly
    assert again.recoveries == []
    assert not checkpoints.has_clean_shutdown(disk, PATH)
    found = {
        each: (log.log_start_offset, log.high_watermark, log.log_end_offset)
        for each, log in again.logs.items()
    }
    assert found == {A0: (5, 60, 60), A1: (0, 60, 60), B0: (0, 60, 61)}
    assert again.logs[A1].topic_id == UUID(int=9)
    assert again.logs[B0].producers.entries[1].last_sequence == 0


@on_loop
async def test_an_idle_partition_is_not_touched_by_a_restart(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 20)
    await directory.close(NOW_MS)
    before = {name: disk.read(f"{PATH}/a-0/{name}") for name in disk.list_directory(f"{PATH}/a-0")}
    again = await open_at(disk)
    operations = disk.operations["sync"]
    await again.logs[A0].close(NOW_MS)
    assert disk.operations["sync"] == operations
    assert {name: disk.read(f"{PATH}/a-0/{name}") for name in disk.list_directory(f"{PATH}/a-0")} == before


@on_loop
async def test_an_unclean_stop_is_recovered_and_reported(disk: MemoryDisk) -> None:
    """Promise 27: recovery starts from the checkpoint, cuts what is torn, and says so."""
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS)
    fill(log, 20)
    await log.flush(NOW_MS)
    await directory.write_recovery_points()
    await directory.write_high_watermarks()
    fill(log, 3)
    path = log.segments.active.log.path
    disk.crash(Loss.NOTHING)
    disk.tear(path, disk.size(path) - 5)

    again = await open_at(disk)
    assert not again.stopped_cleanly
    (report,) = again.recoveries
    assert (report.partition, report.log_end_offset) == (A0, 66)
    assert report.bytes_truncated > 0
    end = again.logs[A0].segments.active.size
    assert report.damage[0].startswith(f"{path} is corrupt at position {end}: ")
    assert offsets_in(again.logs[A0]) == list(range(66))
    assert again.logs[A0].high_watermark == 60


@on_loop
async def test_recovery_runs_in_worker_processes(tmp_path: Path) -> None:
    disk = RealDisk()
    async with ProcessWorkers(1) as workers:
        ports = DirectoryPorts(disk, SeededEntropy(), workers, RealDisk)
        directory = await LogDirectory.open(ports, str(tmp_path), DirectorySettings(settings_of), NOW_MS)
        fill(directory.create(A0, NOW_MS), 20)
        again = await LogDirectory.open(ports, str(tmp_path), DirectorySettings(settings_of), NOW_MS)
        assert [report.log_end_offset for report in again.recoveries] == [60]
        assert offsets_in(again.logs[A0]) == list(range(60))
    disk.close()


@on_loop
async def test_a_log_start_is_checkpointed_only_where_files_do_not_say_it(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    for partition in (A0, A1):
        fill(directory.create(partition, NOW_MS), 20)
    directory.logs[A0].advance_log_start(5)
    await directory.write_log_starts()
    assert checkpoints.read_offsets(disk, f"{PATH}/{checkpoints.LOG_START_OFFSET}") == {A0: 5}


@on_loop
async def test_a_log_that_ends_before_its_start_begins_anew(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 2)
    await directory.close(NOW_MS)
    checkpoints.write_offsets(disk, f"{PATH}/{checkpoints.LOG_START_OFFSET}", {A0: 100})
    log = (await open_at(disk)).logs[A0]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.segments.bases == [100]


@on_loop
async def test_a_deleted_partition_is_renamed_at_once_and_removed_later(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 2)
    directory.retire(A0, NOW_MS)
    assert A0 not in directory.logs
    (name,) = [each for each in disk.list_directory(PATH) if each.startswith("a-0")]
    assert name.startswith("a-0.")
    assert name.endswith("-delete")
    assert await directory.delete_due(NOW_MS + SMALL.file_delete_delay_ms - 1) == 0
    assert await directory.delete_due(NOW_MS + SMALL.file_delete_delay_ms) == 1
    assert not [each for each in disk.list_directory(PATH) if each.startswith("a-0")]
    # A topic of the same name begins from nothing.
    assert directory.create(A0, NOW_MS).log_end_offset == 0


@on_loop
async def test_deletion_goes_on_after_a_restart(disk: MemoryDisk) -> None:
    """Promise 26, the log's part: DeleteTopics survives a restart half-way."""
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 2)
    directory.retire(A0, NOW_MS)
    await directory.close(NOW_MS)
    again = await open_at(disk)
    assert again.logs == {}
    assert await again.delete_due(NOW_MS + SMALL.file_delete_delay_ms) == 1
    assert not [each for each in disk.list_directory(PATH) if each.startswith("a-0")]


@on_loop
async def test_a_stray_partition_is_kept_and_not_opened(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 2)
    directory.retire(A0, NOW_MS, DirectoryKind.STRAY)
    await directory.close(NOW_MS)
    again = await open_at(disk)
    assert again.logs == {}
    assert again.strays == directory.strays
    await again.delete_due(NOW_MS * 2)
    assert disk.exists(f"{PATH}/{again.strays[0]}")


@on_loop
async def test_a_future_log_takes_the_place_of_the_present_one(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    fill(directory.create(A0, NOW_MS), 2)
    fill(directory.create(A0, NOW_MS, is_future=True), 5)
    await directory.close(NOW_MS)
    again = await open_at(disk)
    assert again.logs[A0].log_end_offset == 6
    assert again.future_logs[A0].log_end_offset == 15
    promoted = again.promote_future(A0, NOW_MS)
    assert (again.logs, again.future_logs) == ({A0: promoted}, {})
    assert promoted.directory == f"{PATH}/a-0"
    assert offsets_in(promoted) == list(range(15))
    with pytest.raises(KafkaError) as refused:
        again.promote_future(A0, NOW_MS)
    assert refused.value.code == ErrorCode.REPLICA_NOT_AVAILABLE


@on_loop
async def test_foreign_directories_are_refused_and_the_quorums_is_left_alone(disk: MemoryDisk) -> None:
    disk.make_directory(f"{PATH}/__cluster_metadata-0")
    disk.make_directory(f"{PATH}/remote-log-index-cache")
    disk.replace(f"{PATH}/meta.properties", b"version=1\n")
    assert (await open_at(disk)).logs == {}
    disk.make_directory(f"{PATH}/lost+found")
    with pytest.raises(NotAPartitionDirectory, match="lost"):
        await open_at(disk)


@on_loop
async def test_rolled_segments_are_flushed_in_the_background(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS)
    fill(log, 20)
    active = log.segments.active.base_offset
    assert log.recovery_point == 0
    assert await directory.flush_rolled(NOW_MS) == 1
    assert log.recovery_point == active
    assert await directory.flush_rolled(NOW_MS) == 0


@on_loop
async def test_flush_ms_flushes_what_is_older(disk: MemoryDisk) -> None:
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    settings = DirectorySettings(lambda _: LogSettings(flush_ms=1_000, segment_index_bytes=400))
    directory = await LogDirectory.open(ports, PATH, settings, NOW_MS)
    log = directory.create(A0, NOW_MS)
    fill(log, 2)
    assert await directory.flush_due(NOW_MS + 999) == 0
    assert await directory.flush_due(NOW_MS + 1_000) == 1
    assert log.recovery_point == 6
    assert await directory.flush_due(NOW_MS + 9_000) == 0


@on_loop
async def test_flush_messages_asks_for_a_flush_before_the_answer(disk: MemoryDisk) -> None:
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    settings = DirectorySettings(lambda _: LogSettings(flush_messages=3, segment_index_bytes=400))
    log = (await LogDirectory.open(ports, PATH, settings, NOW_MS)).create(A0, NOW_MS)
    answers = []
    for sequence in range(4):
        info = log.append_as_leader(producer_batch(1, sequence), LEADER_EPOCH, NOW_MS)
        answers.append(info.must_flush)
        if info.must_flush:
            await log.flush(NOW_MS)
    assert answers == [False, False, True, False]
    assert log.recovery_point == 3


@on_loop
async def test_one_directory_fails_and_the_others_go_on(disk: MemoryDisk) -> None:
    """Promise 30: the process goes on with the others."""
    told: list[LogDirectoryOffline] = []
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    settings = DirectorySettings(settings_of)
    bad = await LogDirectory.open(ports, "/bad", settings, NOW_MS, told.append)
    good = await LogDirectory.open(ports, "/good", settings, NOW_MS, told.append)
    fill(bad.create(A0, NOW_MS), 1)
    fill(good.create(A1, NOW_MS), 1)
    disk.fail(times=1_000, when=lambda operation: operation.path.startswith("/bad"))
    with pytest.raises(LogDirectoryOffline, match="/bad"):
        fill(bad.logs[A0], 1)
    for write in (bad.write_recovery_points, bad.write_high_watermarks):
        with pytest.raises(LogDirectoryOffline, match="/bad is offline"):
            await write()
    with pytest.raises(LogDirectoryOffline, match="/bad is offline"):
        bad.create(B0, NOW_MS)
    fill(good.logs[A1], 1)
    await good.close(NOW_MS)
    assert len(told) == 1
    assert checkpoints.has_clean_shutdown(disk, "/good")
    assert not checkpoints.has_clean_shutdown(disk, "/bad")


@on_loop
async def test_idle_producers_expire_where_they_are_loaded(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS)
    log.append_as_leader(producer_batch(1, 0), LEADER_EPOCH, NOW_MS)
    directory.expire_producers(NOW_MS + 86_400_000)
    assert log.producers.entries == {}


@on_loop
async def test_a_topic_id_is_written_before_the_first_record_and_never_changed(disk: MemoryDisk) -> None:
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS, topic_id=UUID(int=5))
    assert not disk.exists(f"{PATH}/a-0/partition.metadata")
    fill(log, 1)
    assert disk.exists(f"{PATH}/a-0/partition.metadata")
    log.assign_topic_id(UUID(int=5))
    with pytest.raises(KafkaError) as refused:
        log.assign_topic_id(UUID(int=6))
    assert refused.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
