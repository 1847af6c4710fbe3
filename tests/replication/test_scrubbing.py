"""Scrubbing: all that is on disk is read again in its time; damage is told, and not served any more."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.config.node import NodeConfig
from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_log import PartitionLog
from headrace.log.scrub import Stretch, scrub_stretch
from headrace.replication.housekeeping import Housekeeping
from headrace.replication.scrubbing import ROUNDS_PER_PASS, Scrubber, ScrubSettings
from headrace.system.disk import RealDisk
from headrace.system.pace import SystemPace
from headrace.system.workers import ProcessWorkers
from headrace.testing.workers import InlineWorkers
from tests.support_data import NOW_MS, PROPERTIES, DataNode, batch, start_node
from tests.support_log import on_loop

T = TypeVar("T")
AT_ONCE = ScrubSettings(pass_hours=1, bytes_per_second=10**15)
FIRST_FILE = "/logs/a/topic-0/00000000000000000000.log"


class Interfering:
    """Workers during whose first job something happens to the log."""

    def __init__(self, interfere: Callable[[], None]) -> None:
        self._interfere: Callable[[], None] | None = interfere

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        result = function(*arguments)
        if self._interfere is not None:
            self._interfere()
            self._interfere = None
        return result


async def node_with(segments: int = 3) -> tuple[DataNode, PartitionLog]:
    node = await start_node()
    node.assign()
    log = node.partition().leader_log
    for _ in range(segments):
        node.append(2)
        node.append(2)
        log.roll(NOW_MS)
    return node, log


def scrubber(node: DataNode, workers: InlineWorkers | Interfering | None = None) -> Scrubber:
    return Scrubber(node.replicas.logs, workers or InlineWorkers(), lambda: node.disk, AT_ONCE)


async def run_pass(scrubbing: Scrubber) -> None:
    for _ in range(ROUNDS_PER_PASS):
        await scrubbing.run_round()


@on_loop
async def test_a_flipped_bit_is_told_with_its_place_and_never_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Promise 27, for bytes that this process has written and served before."""
    node, log = await node_with()
    size = log.segments.first.size // 2
    assert log.read(0, 10_000).records is not None
    node.disk.flip_bit(FIRST_FILE, size + 70)
    scrubbing = scrubber(node)
    with caplog.at_level(logging.ERROR):
        await run_pass(scrubbing)
    assert f"{FIRST_FILE} is corrupt at position {size}" in caplog.text
    assert scrubbing.damages == 1
    sound = log.read(0, 10_000).records
    assert sound is not None
    assert len(sound) == size
    with pytest.raises(KafkaError) as refusal:
        log.read(2, 10_000)
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.read(4, 10_000).records is not None


@on_loop
async def test_a_pass_reads_everything_once_and_the_next_begins_when_its_time_is_up() -> None:
    node, log = await node_with(segments=5)
    scrubbing = scrubber(node)
    await scrubbing.run_round()
    assert 0 < scrubbing.bytes_read < log.size
    for _ in range(ROUNDS_PER_PASS - 1):
        await scrubbing.run_round()
    assert scrubbing.bytes_read == log.size
    await run_pass(scrubbing)
    assert scrubbing.bytes_read == 2 * log.size


@on_loop
async def test_what_is_truncated_compacted_or_deleted_meanwhile_is_no_damage() -> None:
    node, log = await node_with()
    for base in (0, 4, 8):
        node.disk.flip_bit(log.segments.get(base).log.path, 70)  # type: ignore[union-attr]
    scrubbing = scrubber(node, Interfering(lambda: log.truncate_fully(0, NOW_MS)))
    await run_pass(scrubbing)
    assert scrubbing.damages == 0
    assert scrubbing.bytes_read == 0


@on_loop
async def test_a_file_that_is_gone_is_passed_over() -> None:
    node, log = await node_with(segments=2)
    node.disk.remove(log.segments.first.log.path)
    scrubbing = scrubber(node)
    await run_pass(scrubbing)
    assert scrubbing.bytes_read == log.segments.get(4).size  # type: ignore[union-attr]
    hosted = node.partition()
    node.delete_topic()
    await run_pass(scrubbing)
    assert hosted.is_deleted


@on_loop
async def test_a_medium_that_cannot_be_read_takes_its_directory_offline() -> None:
    """Promise 30."""
    node, _ = await node_with()
    node.disk.fail(when=lambda operation: operation.kind == "read")
    with pytest.raises(LogDirectoryOffline):
        await scrubber(node).run_round()
    assert node.events.failed == ["/logs/a"]


@on_loop
async def test_it_reads_in_another_process(tmp_path: Path) -> None:
    path, batches = tmp_path / "00000000000000000000.log", [batch(1), batch(1)]
    data = bytearray(b"".join(batches))
    data[len(batches[0]) + 3 : len(batches[0]) + 8] = (1).to_bytes(5, "big")
    data[-1] ^= 1
    path.write_bytes(data)
    async with ProcessWorkers() as workers:
        stretch = Stretch(str(path), 0, 0, len(data))
        scrubbed = await workers.run(scrub_stretch, RealDisk, stretch, len(data))
    assert scrubbed.position == len(data)
    assert [(each.path, each.position) for each in scrubbed.damages] == [(str(path), len(batches[0]))]


@pytest.mark.parametrize(("hours", "interval_ms"), [("168", 3_600_000), ("1", 21_428), ("0", None)])
@on_loop
async def test_a_pass_is_spread_over_its_time_unless_it_is_turned_off(
    hours: str, interval_ms: int | None
) -> None:
    node, _ = await node_with(segments=1)
    config = NodeConfig(PROPERTIES | {"headrace.scrub.pass.hours": hours})
    keeping = Housekeeping(
        node.replicas, lambda: config, node.clock, node.disk, InlineWorkers(), lambda: node.disk, SystemPace
    )
    tasks = {task.name: task for task in keeping.schedule()}
    assert ("log scrub" in tasks) == (interval_ms is not None)
    if interval_ms is not None:
        assert tasks["log scrub"].interval_ms() == interval_ms
        await tasks["log scrub"].run(NOW_MS)
        assert keeping.scrubber is not None
        assert keeping.scrubber.bytes_read > 0
