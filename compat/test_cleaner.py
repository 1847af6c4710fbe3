"""Compaction beside Kafka's own cleaner: both start from the same files, and what they leave is compared."""

import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from compat.kafka_libs import RunJava
from headrace.records.batch import Batch, batches
from headrace.records.compression import Compression
from headrace.records.control import ControlType
from headrace.records.reader import Record, read_records
from headrace.system.disk import RealDisk
from tests.support_cleaner import NOW_MS, RETENTION_MS, SETTINGS, ScriptedLog

SEEDS = range(40)
KEYS = [None, b"a", b"b", b"c", b"d", b"e" * 40, b"f", b"g"]
TRANSACTIONAL = (20, 21)
IDEMPOTENT = 10
# The first round removes what is superseded, later ones what had to wait for their horizon.
ROUNDS = [NOW_MS, NOW_MS + 1, NOW_MS + RETENTION_MS, NOW_MS + 2 * RETENTION_MS + 1]


@dataclass(slots=True)
class Scenario:
    """A log on disk, and a copy of it for Kafka."""

    log: ScriptedLog
    ours: Path
    theirs: Path
    is_compressed: bool


def write_log(directory: Path, seed: int) -> tuple[ScriptedLog, bool]:
    """A random log; odd seeds have compressed batches as well."""
    rng = random.Random(seed)
    segment_bytes = rng.choice([700, 2_000, 1_000_000])
    log = ScriptedLog(RealDisk(), replace(SETTINGS, segment_bytes=segment_bytes), str(directory))
    codecs = list(Compression) if seed % 2 else [Compression.NONE]
    for _ in range(60):
        step = rng.random()
        if step < 0.65:
            append(log, rng, codecs)
        elif step < 0.8:
            producer_id = rng.choice(TRANSACTIONAL)
            if producer_id in log.open_transactions:
                log.end(producer_id, rng.choice([ControlType.COMMIT, ControlType.ABORT]))
        else:
            log.roll()
    if rng.random() < 0.7:
        for producer_id in list(log.open_transactions):
            log.end(producer_id, ControlType.ABORT)
    log.roll()
    append(log, rng, codecs)
    log.segments[-1].close()
    return log, seed % 2 == 1


def append(log: ScriptedLog, rng: random.Random, codecs: list[Compression]) -> None:
    producer_id = rng.choice([-1, -1, IDEMPOTENT, *TRANSACTIONAL])
    count = rng.randint(1, 6)
    values = [rng.choice([None, b"", rng.randbytes(rng.randint(1, 30))]) for _ in range(count)]
    log.append(
        [(rng.choice(KEYS), value) for value in values],
        producer_id=producer_id,
        transactional=producer_id in TRANSACTIONAL,
        compression=rng.choice(codecs),
        timestamp=NOW_MS + rng.randint(-1_000, 1_000),
        append_time=NOW_MS + 5 if rng.random() < 0.1 else None,
    )


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory, run_java: RunJava) -> list[Scenario]:
    """Logs that both have been through all rounds, Kafka's in one run of Java."""
    root = tmp_path_factory.mktemp("cleaner")
    found, orders = [], []
    for seed in SEEDS:
        ours, theirs = root / f"ours-{seed}" / "topic-0", root / f"theirs-{seed}" / "topic-0"
        log, is_compressed = write_log(ours, seed)
        shutil.copytree(ours, theirs)
        for now_ms in ROUNDS:
            log.compact(0, now_ms)
        orders.append(order(theirs, log))
        found.append(Scenario(log, ours, theirs, is_compressed))
    done = run_java("CleanerRounds.java", stdin="\n".join(orders))
    assert done.returncode == 0, done.stderr
    ends = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert ends == [scenario.log.plan().end_offset for scenario in found for _ in ROUNDS]
    return found


def order(directory: Path, log: ScriptedLog) -> str:
    """What the Java program is to do with a directory."""
    settings = log.settings
    limits = (settings.index_interval_bytes, settings.segment_index_bytes, settings.segment_bytes)
    return " ".join(map(str, (directory, settings.delete_retention_ms, *limits, *ROUNDS)))


def files(directory: Path, *suffixes: str) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(directory.iterdir())
        if path.name.endswith(suffixes) and path.stat().st_size
    }


def described(batch: Batch) -> tuple[object, ...]:
    """All that a batch says, but for how its bytes were compressed."""
    return (
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.attributes,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.count,
    )


def contents(directory: Path) -> dict[str, list[tuple[tuple[object, ...], list[Record]]]]:
    return {
        name: [(described(batch), list(read_records(batch))) for batch in batches(data)]
        for name, data in files(directory, ".log").items()
    }


def test_what_survives_is_what_survives_in_kafka(scenarios: list[Scenario]) -> None:
    """Batch by batch: offsets, epochs, attributes, horizons, producers; and every record."""
    removed = 0
    for scenario in scenarios:
        assert contents(scenario.ours) == contents(scenario.theirs), scenario.ours
        removed += scenario.log.next_offset - sum(
            len(records) for found in contents(scenario.ours).values() for _, records in found
        )
    assert removed > 1_000


def test_transaction_indexes_are_those_of_kafka(scenarios: list[Scenario]) -> None:
    indexes = [files(scenario.ours, ".txnindex") for scenario in scenarios]
    assert indexes == [files(scenario.theirs, ".txnindex") for scenario in scenarios]
    assert any(indexes)


def test_uncompressed_logs_and_their_indexes_are_byte_for_byte_those_of_kafka(
    scenarios: list[Scenario],
) -> None:
    for scenario in scenarios:
        if not scenario.is_compressed:
            suffixes = (".log", ".index", ".timeindex")
            assert files(scenario.ours, *suffixes) == files(scenario.theirs, *suffixes), scenario.ours


def test_kafkas_own_tool_reads_what_was_compacted(scenarios: list[Scenario], run_java: RunJava) -> None:
    logs = [str(path) for scenario in scenarios[:6] for path in sorted(scenario.ours.glob("*.log"))]
    done = run_java("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(logs))
    assert done.returncode == 0, done.stderr
    assert "invalid" not in done.stdout.lower().replace("isvalid", "")
