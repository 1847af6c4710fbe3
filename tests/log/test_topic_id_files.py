"""The topic ids of new logs reach their files without an append, and without getting in anybody's way."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import pytest

from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_metadata import FILE_NAME, read_topic_id
from headrace.log.settings import LogSettings
from headrace.log.topic_id_files import DRAFT_NAME, WRITTEN_AT_ONCE
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Loss, MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_log import NOW_MS, fill, on_loop

PATH = "/data"
A0 = TopicPartition("a", 0)
OLD, NEW = UUID(int=5), UUID(int=6)
T = TypeVar("T")


class Interrupted(MemoryDisk):
    """A disk on which something happens on the loop while a call is made off it."""

    meanwhile: Callable[[], object] | None = None

    async def off_loop(self, call: Callable[[], T]) -> T:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return call()


async def open_at(disk: MemoryDisk) -> LogDirectory:
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    return await LogDirectory.open(ports, PATH, DirectorySettings(lambda _: LogSettings()), NOW_MS)


@on_loop
async def test_a_crash_does_not_separate_an_empty_partition_from_its_topic() -> None:
    """Kafka takes a partition without the file for a stray, and puts it aside."""
    disk = MemoryDisk()
    directory = await open_at(disk)
    partitions = [TopicPartition("a", index) for index in range(2 * WRITTEN_AT_ONCE + 1)]
    for partition in partitions:
        directory.create(partition, NOW_MS, topic_id=OLD)
    disk.sync_directory(PATH)
    assert await directory.write_topic_ids() == len(partitions)
    assert await directory.write_topic_ids() == 0
    disk.crash(Loss.EVERYTHING)
    again = await open_at(disk)
    assert {partition: log.topic_id for partition, log in again.logs.items()} == dict.fromkeys(
        partitions, OLD
    )


@on_loop
async def test_an_append_that_comes_first_writes_the_file_itself() -> None:
    disk = Interrupted()
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS, topic_id=OLD)
    disk.meanwhile = lambda: fill(log, 1)
    assert await directory.write_topic_ids() == 0
    assert read_topic_id(disk, log.directory) == OLD
    assert DRAFT_NAME not in disk.list_directory(log.directory)


@on_loop
async def test_a_topic_deleted_and_made_anew_meanwhile_has_its_own_id() -> None:
    disk = Interrupted()
    directory = await open_at(disk)
    directory.create(A0, NOW_MS, topic_id=OLD)

    def make_anew() -> None:
        directory.retire(A0, NOW_MS)
        directory.create(A0, NOW_MS, topic_id=NEW)

    disk.meanwhile = make_anew
    await directory.write_topic_ids()
    assert directory.health.failure is None
    assert read_topic_id(disk, f"{PATH}/a-0") == NEW


@on_loop
async def test_partitions_that_are_gone_are_passed_over() -> None:
    disk = MemoryDisk()
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS, topic_id=OLD)
    directory.retire(A0, NOW_MS)
    disk.remove_tree(log.directory)
    assert await directory.write_topic_ids() == 0
    assert directory.health.failure is None


@on_loop
async def test_a_disk_that_fails_takes_the_directory_offline() -> None:
    disk = MemoryDisk()
    directory = await open_at(disk)
    log = directory.create(A0, NOW_MS, topic_id=OLD)
    disk.fail(5, times=1, when=lambda operation: operation.path.endswith(DRAFT_NAME))
    with pytest.raises(LogDirectoryOffline):
        await directory.write_topic_ids()
    assert directory.health.failure is not None
    assert FILE_NAME not in disk.list_directory(log.directory)
