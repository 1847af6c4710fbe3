"""Log directories written by Kafka 4.3.1 itself: read record for record, recovered, and written again."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.log import checkpoints
from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import LogSettings
from headrace.records.aborted import committed
from headrace.records.batch import Batch, batches
from headrace.records.reader import Record, read_records
from headrace.system.disk import RealDisk
from headrace.testing.entropy import SeededEntropy
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition
from tests.support_archives import unpack_archive
from tests.support_log import NOW_MS, on_loop

FIXTURES = Path(__file__).parents[1] / "fixtures"
STOPS = {"clean": "kafka-4.3.1-clean-shutdown.tar.gz", "killed": "kafka-4.3.1-killed.tar.gz"}
ROLLED = LogSettings(segment_bytes=1_048_576)
COMPACTED = LogSettings(cleanup_delete=False, cleanup_compact=True)
Expected = dict[str, dict[str, list[list[Any]]]]


def settings_of(topic: str) -> LogSettings:
    return {"rolled": ROLLED, "compacted": COMPACTED}.get(topic, LogSettings())


@pytest.fixture(scope="module")
def expected() -> Expected:
    loaded: Expected = json.loads((FIXTURES / "expected-records.json").read_text())
    return loaded


@pytest.fixture(params=["clean", "killed"])
def stop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def unpack(stop: str, target: Path) -> Path:
    unpack_archive(FIXTURES / STOPS[stop], target)
    return next(path.parent for path in target.rglob("meta.properties"))


async def open_directory(path: Path) -> LogDirectory:
    disk = RealDisk()
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    return await LogDirectory.open(ports, str(path), DirectorySettings(settings_of), NOW_MS)


def read_batches(log: PartitionLog, isolation: Isolation) -> tuple[list[Batch], list[tuple[int, int]]]:
    """Everything from the log's start on, and the aborted transactions that a consumer is told about."""
    offset = log.log_start_offset
    found: list[Batch] = []
    aborted: set[tuple[int, int]] = set()
    while True:
        answer = log.read(offset, 64 * 1024, isolation, True)
        for transaction in answer.aborted or ():
            aborted.add((transaction.producer_id, transaction.first_offset))
        if answer.records is None:
            return found, sorted(aborted, key=lambda each: each[1])
        fetched = list(batches(answer.records.read()))
        found += fetched
        offset = fetched[-1].next_offset


def as_expected(partition: int, batch: Batch, record: Record) -> list[Any]:
    def text(value: bytes | None) -> object:
        if value is None:
            return None
        return {"len": len(value)} if len(value) >= 200 else value.decode()

    headers = [[key, None if value is None else value.decode()] for key, value in record.headers]
    kind = 2 if batch.timestamp_type else 1
    return [partition, record.offset, kind, record.timestamp, text(record.key), text(record.value), headers]


def records_of(directory: LogDirectory, topic: str, isolation: Isolation) -> list[list[Any]]:
    found = []
    for partition in sorted(each for each in directory.logs if each.topic == topic):
        log = directory.logs[partition]
        log.update_high_watermark(log.log_end_offset)
        listed, aborted = read_batches(log, isolation)
        if isolation is Isolation.COMMITTED:
            listed = list(committed(listed, aborted))
        found += [
            as_expected(partition.partition, batch, record)
            for batch in listed
            if not batch.is_control
            for record in read_records(batch)
        ]
    return found


@on_loop
async def test_every_record_is_read_as_kafka_read_it(stop: str, expected: Expected, tmp_path: Path) -> None:
    """Promise 27: after a kill, a restart serves everything unchanged; promise 15: not what was aborted."""
    directory = await open_directory(unpack(stop, tmp_path))
    assert directory.stopped_cleanly == (stop == "clean")
    for name, isolation in [
        ("read_uncommitted", Isolation.HIGH_WATERMARK),
        ("read_committed", Isolation.COMMITTED),
    ]:
        for topic, records in expected[name].items():
            assert records_of(directory, topic, isolation) == records, (name, topic)


@on_loop
async def test_offsets_and_producers_are_those_of_the_checkpoints(tmp_path: Path) -> None:
    path = unpack("clean", tmp_path)
    ends = checkpoints.read_offsets(RealDisk(), f"{path}/{checkpoints.RECOVERY_POINT}")
    directory = await open_directory(path)
    assert {partition: log.log_end_offset for partition, log in directory.logs.items()} == ends
    assert {partition: log.recovery_point for partition, log in directory.logs.items()} == ends
    assert {partition: log.high_watermark for partition, log in directory.logs.items()} == ends
    transactional = directory.logs[TopicPartition("transactional", 0)]
    (entry,) = transactional.producers.entries.values()
    assert (entry.epoch, entry.last_sequence, entry.last_data_offset) == (0, 19, 22)
    assert transactional.topic_id is not None


@on_loop
async def test_recovery_finds_what_a_clean_stop_left(tmp_path: Path) -> None:
    """Producer state, epochs and indexes that recovery rebuilds are those Kafka wrote when it stopped."""
    recovered = await open_directory(unpack("killed", tmp_path / "killed"))
    for report in recovered.recoveries:
        assert not report.damage
        assert report.bytes_truncated == 0
    partition = TopicPartition("transactional", 0)
    log = recovered.logs[partition]
    assert [tuple(each) for each in log.aborted_transactions(0, 100)] == [
        (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
        for segment in log.segments
        for entry in segment.transaction_index
    ]
    assert len(log.aborted_transactions(0, 100)) == 2
    for each in recovered:
        assert each.latest_epoch >= 0 or each.log_end_offset == 0
        assert each.recovery_point == each.log_end_offset


@on_loop
async def test_a_clean_stop_writes_back_the_files_that_kafka_wrote(tmp_path: Path) -> None:
    """Opening and closing a directory changes no byte of what Kafka left in it."""
    path = unpack("clean", tmp_path)
    before = {
        file.relative_to(path): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and "__cluster_metadata" not in str(file)
    }
    directory = await open_directory(path)
    await directory.close(NOW_MS, broker_epoch=391)
    after = {
        file.relative_to(path): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and "__cluster_metadata" not in str(file)
    }
    assert set(after) == set(before)
    for name, content in before.items():
        if name.name.endswith("-offset-checkpoint"):
            assert sorted(after[name].splitlines()) == sorted(content.splitlines()), name
        elif name.name == "leader-epoch-checkpoint":
            # An epoch without a record in it is dropped on loading, by Kafka as well.
            assert set(after[name].splitlines()[2:]) <= set(content.splitlines()[2:]), name
        else:
            assert after[name] == content, name


@on_loop
async def test_appending_kafkas_batches_again_gives_kafkas_bytes(tmp_path: Path) -> None:
    """The batches of `rolled-0`, one by one as they came, give the same segments, indexes and snapshots."""
    source = unpack("clean", tmp_path / "kafka") / "rolled-0"
    directory = await open_directory(tmp_path / "ours")
    log = directory.create(TopicPartition("rolled", 0), NOW_MS)
    for file in sorted(source.glob("*.log")):
        for batch in batches(file.read_bytes()):
            log.append_as_follower(batch.data, batch.leader_epoch, NOW_MS)
    await directory.close(NOW_MS)
    ours = tmp_path / "ours" / "rolled-0"
    names = {file.name for file in source.iterdir()} - {"partition.metadata"}
    assert {file.name for file in ours.iterdir()} == names
    # Kafka's next leader had begun an epoch at the end and written nothing in it.
    assert (ours / "leader-epoch-checkpoint").read_bytes() == b"0\n1\n0 0\n"
    for name in names - {"leader-epoch-checkpoint"}:
        assert (ours / name).read_bytes() == (source / name).read_bytes(), name


@on_loop
async def test_appending_as_leader_gives_kafkas_indexes(tmp_path: Path) -> None:
    """Batches that producers sent, validated and stamped by us, end up as Kafka's leader wrote them."""
    source = unpack("clean", tmp_path / "kafka") / "rolled-0"
    directory = await open_directory(tmp_path / "ours")
    log = directory.create(TopicPartition("rolled", 0), NOW_MS)
    for file in sorted(source.glob("*.log")):
        for batch in batches(file.read_bytes()):
            sent = bytearray(batch.data)
            sent[:8] = bytes(8)
            log.append_as_leader(sent, batch.leader_epoch, NOW_MS)
    await directory.close(NOW_MS)
    for file in (tmp_path / "ours" / "rolled-0").glob("0*"):
        assert file.read_bytes() == (source / file.name).read_bytes(), file.name
