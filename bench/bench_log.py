"""The log beside the bare system calls it is made of, on the same file system.

Appending and opening are measured in seconds of CPU, the kernel's included: neither waits for the medium, and
other work on the machine must not count."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from struct import Struct

from crc32c import crc32c

from bench.harness import ROUNDS, Row, spell_time
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_parts import LogSurroundings
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import RecoveryJob, recover_files
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.records.builder import NewRecord, build_batch
from headrace.system.disk import RealDisk
from headrace.testing.entropy import SeededEntropy
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicPartition

NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("bench", 0)
APPENDS = 1_000
APPEND_ROUNDS = 25
BATCH_BYTES = 16 * 1024
RECOVERED_BYTES = 256 * 1024 * 1024
READ_BYTES = 1024 * 1024
PARTITIONS = 10_000
DESCRIPTORS = 1_024
RSS_LIMIT_MB = 200
_OFFSET = Struct(">q")
_EPOCH = Struct(">i")


def run() -> list[Row]:
    with scratch() as directory:
        return [*append_rows(directory), *recovery_rows(directory), *opening_rows(directory)]


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory on the file system of the checkout: the usual one for temporary files may be memory."""
    root = Path(__file__).parents[1] / ".cache"
    root.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix="bench-log-") as path:
        yield Path(path)


# Appending


def append_rows(directory: Path) -> list[Row]:
    record = 100
    count = BATCH_BYTES // (record + 8)
    small = batch_of(count, record)
    large = batch_of(1, BATCH_BYTES - 80)
    rows = []
    for name, call in [
        (f"append 16 KB as follower, {count} records", lambda: follow(directory, small)),
        ("append 16 KB as follower, 1 record", lambda: follow(directory, large)),
        ("append 16 KB as leader, 1 record", lambda: lead(directory, large)),
        (f"append 16 KB as leader, {count} records", lambda: lead(directory, small)),
    ]:
        bare, ours = in_turns(lambda: write_bare(directory, small), call, rounds=APPEND_ROUNDS)
        rows.append(Row(name, spell_time(ours), f"{spell_time(bare)} (os.write)", bare / ours, 0.5))
    return rows


def in_turns(*calls: Callable[[], float], rounds: int = ROUNDS) -> list[float]:
    """The least of what each call says it took, measured in turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for index, call in enumerate(calls):
            best[index] = min(best[index], call())
    return best


def batch_of(count: int, size: int) -> bytearray:
    values = [os.urandom(size) for _ in range(count)]
    return bytearray(build_batch([NewRecord(NOW_MS, None, value) for value in values]))


def write_bare(directory: Path, data: bytearray) -> float:
    path = directory / "bare"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    write = os.write
    started = time.process_time()
    for _ in range(APPENDS):
        write(descriptor, data)
    elapsed = time.process_time() - started
    os.close(descriptor)
    path.unlink()
    return elapsed / APPENDS


@contextmanager
def new_log(directory: Path) -> Iterator[PartitionLog]:
    disk = RealDisk()
    request = OpenRequest(f"{directory}/bench-0", PARTITION, LogSettings(), ProducerStateSettings())
    log = open_partition(
        LogSurroundings(disk, SeededEntropy(), DirectoryHealth(str(directory))), request, NOW_MS
    )
    yield log
    log.close_files()
    shutil.rmtree(log.directory)


def follow(directory: Path, data: bytearray) -> float:
    count = int.from_bytes(data[23:27], "big") + 1
    _EPOCH.pack_into(data, 12, 1)
    with new_log(directory) as log:
        append, stamp, offset = log.append_as_follower, _OFFSET.pack_into, 0
        started = time.process_time()
        for _ in range(APPENDS):
            stamp(data, 0, offset)
            offset += count
            append(data, 1, NOW_MS)
        return (time.process_time() - started) / APPENDS


def lead(directory: Path, data: bytearray) -> float:
    with new_log(directory) as log:
        append, stamp = log.append_as_leader, _OFFSET.pack_into
        started = time.process_time()
        for _ in range(APPENDS):
            stamp(data, 0, 0)
            append(data, 1, NOW_MS)
        return (time.process_time() - started) / APPENDS


# Recovering


def recovery_rows(directory: Path) -> list[Row]:
    rows = []
    for name, count, size in [("100 B", 150, 100), ("16 KB", 1, BATCH_BYTES - 80)]:
        with new_log(directory) as log:
            data = batch_of(count, size)
            while log.size < RECOVERED_BYTES:
                _OFFSET.pack_into(data, 0, 0)
                log.append_as_leader(data, 1, NOW_MS)
            log.segments.active.sync()
            bare, ours = in_turns(
                partial(read_and_check, log.segments.active.log.path), partial(recover, log)
            )
            speeds = [f"{RECOVERED_BYTES / seconds / 1e6:,.0f} MB/s" for seconds in (ours, bare)]
            title = f"recover 256 MB of {name} records in 16 KB batches"
            rows.append(Row(title, speeds[0], f"{speeds[1]} (crc32c)", bare / ours, 0.4))
    return rows


def read_and_check(path: str) -> float:
    started = time.perf_counter()
    checksum = 0
    with open(path, "rb", buffering=0) as file:
        while data := file.read(READ_BYTES):
            checksum = crc32c(data, checksum)
    return time.perf_counter() - started


def recover(log: PartitionLog) -> float:
    disk = RealDisk()
    job = RecoveryJob(log.directory, PARTITION, LogSettings(), ProducerStateSettings(), 0, 0, NOW_MS)
    started = time.perf_counter()
    report = recover_files(disk, job)
    elapsed = time.perf_counter() - started
    if report.log_end_offset != log.log_end_offset:
        raise AssertionError(f"recovered up to {report.log_end_offset} of {log.log_end_offset}")
    disk.close()
    return elapsed


# Opening


def opening_rows(directory: Path) -> list[Row]:
    """Opening happens in a process of its own, so that its memory and descriptors can be measured."""
    path = directory / "many"
    make_partitions(path)
    answers = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-m", "bench.bench_log", str(path)],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        answers.append([float(word) for word in done.stdout.split()])
    bare = min(answer[0] for answer in answers)
    ours = min(answer[1] for answer in answers)
    memory = max(answer[2] for answer in answers)
    title = f"open {PARTITIONS:,} partitions, ulimit -n {DESCRIPTORS}"
    return [
        Row(
            title,
            spell_time(ours),
            f"{spell_time(bare)} (open + stat)",
            ours / bare,
            5,
            higher_is_better=False,
        ),
        Row(
            "resident memory with them open",
            f"{memory:.0f} MB",
            f"{RSS_LIMIT_MB} MB",
            memory / RSS_LIMIT_MB,
            1,
            higher_is_better=False,
        ),
    ]


def make_partitions(path: Path) -> None:
    """One partition written by the log and closed cleanly, then copied under every name."""
    asyncio.run(_make_one(path))
    first = path / "topic-0"
    content = {file.name: file.read_bytes() for file in first.iterdir()}
    for number in range(1, PARTITIONS):
        copy = path / f"topic-{number}"
        copy.mkdir()
        for name, data in content.items():
            (copy / name).write_bytes(data)
    lines = "".join(f"topic {number} 9\n" for number in range(PARTITIONS))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (path / name).write_text(f"0\n{PARTITIONS}\n{lines}")


async def _make_one(path: Path) -> None:
    directory = await _open(path)
    log = directory.create(TopicPartition("topic", 0), NOW_MS)
    for _ in range(3):
        log.append_as_leader(batch_of(3, 100), 1, NOW_MS)
    log.advance_high_watermark(9)
    await directory.close(NOW_MS)


async def _open(path: Path) -> LogDirectory:
    disk = RealDisk()
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), RealDisk)
    return await LogDirectory.open(ports, str(path), DirectorySettings(lambda _: LogSettings()), NOW_MS)


def open_and_stat(path: Path) -> float:
    started = time.process_time()
    for name in os.listdir(path):
        partition = f"{path}/{name}"
        if os.path.isdir(partition):
            for file in os.listdir(partition):
                descriptor = os.open(f"{partition}/{file}", os.O_RDONLY)
                os.fstat(descriptor)
                os.close(descriptor)
    return time.process_time() - started


def measure_opening(path: Path) -> None:
    """Print the bare loop's seconds, ours, and the megabytes that are resident then."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    bare = min(open_and_stat(path) for _ in range(3))
    clean = path / ".kafka_cleanshutdown"
    content = clean.read_bytes()
    started = time.process_time()
    directory = asyncio.run(_open(path))
    elapsed = time.process_time() - started
    clean.write_bytes(content)
    ends = {log.log_end_offset for log in directory}
    if len(directory.logs) != PARTITIONS or ends != {9}:
        raise AssertionError(f"{len(directory.logs)} partitions end at {ends}")
    print(bare, elapsed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    measure_opening(Path(sys.argv[1]))
