"""A partition that Kafka 4.3.1 has compacted: it reads as Kafka says, and another round changes nothing."""

import json
from pathlib import Path

from headrace.log.cleaner import clean
from headrace.log.cleaner_plan import CleanPlan
from headrace.log.segment import Segment
from headrace.log.settings import LogSettings
from headrace.system.disk import RealDisk
from tests.support_archives import unpack_archive
from tests.support_cleaner import TestPace, describe, survivors_on_disk, swap_in

FIXTURES = Path(__file__).parents[1] / "fixtures"
SETTINGS = LogSettings(cleanup_delete=False, cleanup_compact=True)
ACTIVE_BASE = 100


def unpacked(tmp_path: Path) -> str:
    unpack_archive(FIXTURES / "kafka-4.3.1-clean-shutdown.tar.gz", tmp_path)
    return str(tmp_path / "data" / "compacted-0")


def test_what_kafka_compacted_survives_another_round_unchanged(tmp_path: Path) -> None:
    directory = unpacked(tmp_path)
    disk = RealDisk()
    segment = Segment.open(disk, directory, 0, SETTINGS, 0)
    before, log_before = survivors_on_disk(disk, directory), Path(segment.log.path).read_bytes()
    plan = CleanPlan(
        name="compacted-0",
        directory=directory,
        segments=(describe(segment),),
        first_dirty_offset=0,
        end_offset=ACTIVE_BASE,
        now_ms=0,
        settings=SETTINGS,
        dedupe_bytes=1_000_000,
        dedupe_load_factor=0.9,
        bytes_per_second=float("inf"),
    )
    result = clean(lambda: disk, TestPace, plan)
    swap_in(disk, directory, result)
    assert result.next_dirty_offset == ACTIVE_BASE
    assert survivors_on_disk(disk, directory) == before
    assert Path(segment.log.path).read_bytes() == log_before
    disk.close()


def test_what_kafka_compacted_reads_as_kafka_says(tmp_path: Path) -> None:
    directory = unpacked(tmp_path)
    disk = RealDisk()
    expected = json.loads((FIXTURES / "expected-records.json").read_text())["read_uncommitted"]["compacted"]
    found = [
        [record.offset, record.timestamp, _text(record.key), _text(record.value)]
        for record in survivors_on_disk(disk, directory)
    ]
    assert found == [[offset, timestamp, key, value] for _, offset, _, timestamp, key, value, _ in expected]
    assert found
    disk.close()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
