"""Logs beside Kafka's own: one script of appends, reads, truncations, retention and restarts for both.

Answers must be the same and so must the files in the end; and Kafka's tools must accept what we write."""

import asyncio
import base64
import random
import re
from pathlib import Path

import pytest

from compat.kafka_libs import RunJava
from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.log.append_info import AppendInfo
from headrace.log.append_origin import AppendOrigin
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_errors import OffsetsOutOfOrder, UnexpectedAppendOffset
from headrace.log.log_parts import LogSurroundings
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_snapshot import decode_snapshot
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.system.disk import RealDisk
from headrace.testing.entropy import SeededEntropy
from headrace.types import TopicPartition

SEEDS = range(40)
STEPS = 60
NOW_MS = 1_700_000_000_000
PARTITION = TopicPartition("topic", 0)
JAVA_NAMES = {
    UnexpectedAppendOffset: "UnexpectedAppendOffsetException",
    OffsetsOutOfOrder: "OffsetsOutOfOrderException",
}
OUT_OF_ORDER = f"error {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.value}"
ISOLATIONS = {
    "LOG_END": Isolation.LOG_END,
    "HIGH_WATERMARK": Isolation.HIGH_WATERMARK,
    "TXN_COMMITTED": Isolation.COMMITTED,
}


class Script:
    """Performs steps with our log; `lines` tell Kafka to do the same, `answers` are what it should say."""

    def __init__(self, ours: Path, theirs: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ours, self.theirs = ours / "topic-0", theirs / "topic-0"
        self.disk = RealDisk()
        self.lines: list[str] = []
        self.answers: list[str] = []
        self.epoch = 0
        self.sequences: dict[int, tuple[int, int]] = {}
        self.settings = LogSettings(
            segment_bytes=3_000,
            segment_index_bytes=1_000,
            index_interval_bytes=200,
            retention_bytes=self.rng.choice([-1, 4_000]),
            retention_ms=self.rng.choice([-1, 5_000]),
            message_timestamp_type=self.rng.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
            max_message_bytes=2_000,
            segment_ms=self.rng.choice([604_800_000, 400]),
        )
        self.log = self.open(0, 0, clean=False)
        self.begin_epoch()

    def say(self, line: str, answer: str) -> None:
        self.lines.append(line)
        self.answers.append(answer)

    def open(self, log_start: int, recovery_point: int, *, clean: bool) -> PartitionLog:
        for line in self.setting_lines():
            self.say(line, "set")
        surroundings = LogSurroundings(self.disk, SeededEntropy(), DirectoryHealth(str(self.ours.parent)))
        request = OpenRequest(
            str(self.ours),
            PARTITION,
            self.settings,
            ProducerStateSettings(transaction_verification_enabled=False),
            log_start,
            recovery_point,
            stopped_cleanly=clean,
        )
        self.log = open_partition(surroundings, request, NOW_MS)
        how = "clean" if clean else "killed"
        self.say(f"open {self.theirs} {log_start} {recovery_point} {how}", self.state())
        return self.log

    def setting_lines(self) -> list[str]:
        given = self.settings
        values = {
            "internal.segment.bytes": given.segment_bytes,
            "segment.index.bytes": given.segment_index_bytes,
            "index.interval.bytes": given.index_interval_bytes,
            "retention.bytes": given.retention_bytes,
            "retention.ms": given.retention_ms,
            "message.timestamp.type": given.message_timestamp_type,
            "max.message.bytes": given.max_message_bytes,
            "segment.ms": given.segment_ms,
        }
        return [f"set {key} {value}" for key, value in values.items()]

    # Steps

    def step(self) -> None:
        steps = [
            (self.lead_plain, 6),
            (self.lead_producer, 8),
            (self.lead_marker, 4),
            (self.lead_bad, 2),
            (self.follow, 3),
            (self.watermark, 6),
            (self.read, 6),
            (self.find_time, 3),
            (self.find_epoch, 2),
            (self.roll, 1),
            (self.truncate, 2),
            (self.move_start, 2),
            (self.retain, 2),
            (self.restart, 1),
            (self.reopen, 1),
        ]
        calls, weights = zip(*steps, strict=True)
        self.rng.choices(calls, weights)[0]()

    def lead_plain(self) -> None:
        self.lead(self.batch())

    def lead_producer(self) -> None:
        producer = self.rng.randint(1, 4)
        epoch, sequence = self.sequences.get(producer, (0, 0))
        choice = self.rng.random()
        if choice < 0.1:
            sequence = max(0, sequence - self.rng.randint(1, 6))
        elif choice < 0.15:
            sequence += 2
        elif choice < 0.25:
            epoch, sequence = epoch + self.rng.choice([-1, 1, 1]), self.rng.choice([0, 0, 3])
        count = self.rng.randint(1, 4)
        data = self.batch(
            count,
            producer_id=producer,
            producer_epoch=max(epoch, 0),
            base_sequence=sequence,
            transactional=self.rng.random() < 0.5,
        )
        if not self.lead(data).startswith("error"):
            self.sequences[producer] = (max(epoch, 0), sequence + count)

    def lead_marker(self) -> None:
        producer = self.rng.randint(1, 4)
        epoch, sequence = self.sequences.get(producer, (0, 0))
        version = self.rng.choice([0, 1, 2])
        epoch += self.rng.choice([-1, 0, 0, 1]) if version < 2 else self.rng.choice([0, 1, 1])
        marker = build_end_transaction_marker(
            self.rng.choice([ControlType.COMMIT, ControlType.ABORT]),
            producer_id=producer,
            producer_epoch=max(epoch, 0),
            coordinator_epoch=self.rng.choice([0, 1, 1]),
            timestamp=NOW_MS,
        )
        if not self.lead(marker, AppendOrigin.COORDINATOR, version).startswith("error"):
            self.sequences[producer] = (
                max(epoch, 0),
                0 if max(epoch, 0) != epoch or version >= 2 else sequence,
            )

    def lead_bad(self) -> None:
        kind = self.rng.choice(["crc", "size", "time", "empty", "offset", "cut"])
        data = bytearray(self.batch(2))
        if kind == "crc":
            data[-1] ^= 1
        elif kind == "size":
            data = bytearray(self.batch(1, size=2_100))
        elif kind == "time":
            data = bytearray(self.batch(1, start=NOW_MS + 10_000_000))
        elif kind == "empty":
            data.clear()
        elif kind == "offset":
            data[7] = 3
        else:
            del data[-5:]
        if kind not in ("empty", "cut"):
            self.lead(bytes(data))

    def lead(self, data: bytes, origin: AppendOrigin = AppendOrigin.CLIENT, version: int = -1) -> str:
        if self.rng.random() < 0.05:
            self.begin_epoch()
        text = base64.b64encode(data).decode()
        answer = self.attempt(
            lambda: told(
                self.log.append_as_leader(
                    bytearray(data), self.epoch, NOW_MS, origin=origin, transaction_version=version
                )
            )
        )
        self.say(f"lead {text} {self.epoch} {origin.name} {version}", answer)
        self.say("state", self.state())
        return answer

    def begin_epoch(self) -> None:
        """A new leader notes its epoch before it takes anything."""
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.log_end_offset)
        self.say(f"lead-epoch {self.epoch}", self.state())

    def follow(self) -> None:
        # A gap at the high watermark would move Kafka's to the next batch as soon as somebody reads.
        offset = self.log.log_end_offset + self.rng.choice([0, 0, 0, -1])
        data = b""
        for _ in range(self.rng.randint(1, 3)):
            count = self.rng.randint(1, 3)
            epoch = self.epoch + (self.rng.random() < 0.05)
            data += self.batch(count, base_offset=max(offset, 0), leader_epoch=epoch)
            offset += count + self.rng.choice([0, 0, 4])
        text = base64.b64encode(data).decode()
        answer = self.attempt(lambda: told(self.log.append_as_follower(data, self.epoch, NOW_MS)))
        self.say(f"follow {text} {self.epoch}", answer)
        self.say("state", self.state())

    def batch(self, count: int = 0, size: int = 0, start: int = 0, **fields: object) -> bytes:
        count = count or self.rng.randint(1, 4)
        start = start or NOW_MS - self.rng.randint(0, 8_000)
        size = size or self.rng.choice([5, 40, 150])
        records = [
            NewRecord(start + self.rng.randint(0, 30), b"key", self.rng.randbytes(size)) for _ in range(count)
        ]
        codec = self.rng.choice([Compression.NONE, Compression.NONE, *Compression])
        return build_batch(records, compression=codec, **fields)  # type: ignore[arg-type]

    def watermark(self) -> None:
        offset = self.rng.choice([self.log.log_end_offset, self.some_offset()])
        if offset != self.log.log_end_offset:
            offset = self.batch_start(offset)
        if offset >= self.log.high_watermark:
            self.log.update_high_watermark(offset)
            self.say(f"watermark {offset}", self.state())

    def batch_start(self, offset: int) -> int:
        """The high watermark is where a batch begins, here as in life."""
        segment = self.log.segments.floor(offset)
        place = None if segment is None else segment.translate(offset)
        return self.log.log_end_offset if place is None else max(place.base_offset, self.log.log_start_offset)

    def some_offset(self) -> int:
        return self.rng.randint(self.log.log_start_offset, self.log.log_end_offset)

    def read(self) -> None:
        offset = self.rng.choice([self.some_offset(), self.some_offset(), self.log.log_end_offset + 1])
        size, isolation = self.rng.choice([1, 300, 5_000]), self.rng.choice(list(ISOLATIONS))
        whole = self.rng.random() < 0.7
        self.say(
            f"read {offset} {size} {isolation} {int(whole)}",
            self.attempt(lambda: self.range_at(offset, size, isolation, whole)),
        )

    def range_at(self, offset: int, size: int, isolation: str, whole: bool) -> str:
        found = self.log.read(offset, size, ISOLATIONS[isolation], whole)
        aborted = "none"
        if found.aborted is not None:
            aborted = (
                "[" + ",".join(f"{each.producer_id}:{each.first_offset}" for each in found.aborted) + "]"
            )
        length = 0 if found.records is None else found.records.length
        incomplete = str(found.first_batch_incomplete).lower()
        return f"{length} {incomplete} {found.start.segment_base} {found.start.position} {aborted}"

    def find_time(self) -> None:
        times = [NOW_MS - self.rng.randint(0, 9_000) for _ in range(6)]
        timestamp = self.rng.choice([-1, -2, -3, -4, -5, -6, *times])
        if self.log.log_start_offset > self.log.segments.first.base_offset:
            # If what Kafka finds lies before the log's start, it does not look any further.
            return
        found = self.log.offset_for_timestamp(timestamp)
        answer = "none"
        if found is not None:
            epoch = "null" if found.leader_epoch is None else found.leader_epoch
            answer = f"{found.timestamp} {found.offset} {epoch}"
        self.say(f"time {timestamp}", answer)

    def find_epoch(self) -> None:
        epoch = self.rng.randint(0, self.epoch + 1)
        found = self.log.end_offset_for_epoch(epoch)
        self.say(f"epoch {epoch}", "none" if found is None else f"{found.epoch} {found.end_offset}")

    def roll(self) -> None:
        if self.log.segments.active.size:
            self.log.roll(NOW_MS)
            self.say("roll", self.state())

    def truncate(self) -> None:
        offset = max(self.log.log_end_offset - self.rng.randint(0, 6), self.log.log_start_offset)
        done = str(self.log.truncate_to(offset, NOW_MS)).lower()
        self.sequences = {
            producer: (entry.epoch, entry.last_sequence + 1)
            for producer, entry in self.log.producers.entries.items()
        }
        self.say(f"truncate {offset}", done)
        # Kafka's last stable offset goes back for a while, since ended transactions are replayed as if their
        # markers were not replicated yet.
        self.log.update_high_watermark(self.log.log_end_offset)
        self.say(f"watermark {self.log.log_end_offset}", self.state())
        self.begin_epoch()

    def move_start(self) -> None:
        # With an open transaction before the start, Kafka's last stable offset jumps to where a batch begins.
        offset = self.rng.choice(
            [self.rng.randint(0, self.log.last_stable_offset), self.log.high_watermark + 1]
        )

        def move() -> str:
            moved = str(self.log.advance_log_start(offset)).lower()
            return f"{moved} {self.state()}"

        self.say(f"start {offset}", self.attempt(move))

    def retain(self) -> None:
        if self.log.last_stable_offset == self.log.high_watermark:
            self.say("retain", f"{self.log.delete_old_segments(NOW_MS)} {self.state()}")

    def restart(self) -> None:
        if self.rng.random() < 0.3:
            offset = self.log.log_end_offset + self.rng.randint(0, 20)
            self.log.truncate_fully(offset, NOW_MS)
            self.sequences.clear()
            self.say(f"restart {offset}", self.state())
            self.begin_epoch()

    def reopen(self) -> None:
        self.close()
        self.open(self.log.log_start_offset, self.log.recovery_point, clean=self.rng.random() < 0.5)
        self.log.update_high_watermark(self.log.log_end_offset)
        self.say(f"watermark {self.log.log_end_offset}", self.state())
        self.begin_epoch()

    def close(self) -> None:
        asyncio.run(self.log.close(NOW_MS))
        self.say("close", "closed")

    def attempt(self, call: object) -> str:
        try:
            return str(call())  # type: ignore[operator]
        except KafkaError as refused:
            return f"error {refused.code.value}"
        except HeadraceError as refused:
            return f"error {JAVA_NAMES[type(refused)]}"

    def state(self) -> str:
        log = self.log
        segments = ",".join(f"{each.base_offset}:{each.size}" for each in log.segments)
        epochs = ",".join(f"{epoch}:{offset}" for epoch, offset in log.epochs.entries)
        producers = ",".join(
            f"{key}:{entry.epoch}:{entry.last_data_offset}:{entry.coordinator_epoch}:"
            f"{-1 if entry.transaction_first_offset is None else entry.transaction_first_offset}"
            for key, entry in sorted(log.producers.entries.items())
        )
        return (
            f"{log.log_start_offset} {log.high_watermark} {log.last_stable_offset} {log.log_end_offset} "
            f"{log.recovery_point} [{segments}] [{epochs}] [{producers}]"
        )


def told(info: AppendInfo) -> str:
    return f"{info.first_offset} {info.last_offset} {info.log_append_time}"


def agree(ours: str, theirs: str) -> bool:
    """Whether two answers say the same, or ours says more.

    Kafka may list aborted transactions beyond what it hands out, and none where it hands out nothing. And
    after a restart it does not recognise a duplicate that we do; a batch taken by us alone would show in the
    state that is compared next."""
    if ours == theirs:
        return True
    if theirs == OUT_OF_ORDER:
        return not ours.startswith("error")
    *ours_start, ours_aborted = ours.split(" ")
    *theirs_start, theirs_aborted = theirs.split(" ")
    if len(ours_start) != 4 or ours_start != theirs_start:
        return False
    return listed(ours_aborted) <= listed(theirs_aborted)


def listed(aborted: str) -> set[str]:
    return set() if aborted == "none" else set(aborted.strip("[]").split(",")) - {""}


def files_of(directory: Path) -> dict[str, object]:
    """Everything but what waits for deletion, and the epochs, which Kafka writes in the background after a
    truncation; snapshots by what they say, since their order is free."""
    found: dict[str, object] = {}
    for file in directory.iterdir():
        if file.name.endswith(".snapshot"):
            found[file.name] = sorted(decode_snapshot(file.read_bytes()), key=lambda each: each.producer_id)
        elif not file.name.endswith((".deleted", ".metadata", "leader-epoch-checkpoint")):
            found[file.name] = file.read_bytes()
    return found


def test_a_log_answers_and_writes_as_kafkas_does(run_java: RunJava, tmp_path: Path) -> None:
    """The same script for both, restarts included: the same answers to each step, the same files after it."""
    scripts = []
    for seed in SEEDS:
        script = Script(tmp_path / f"ours-{seed}", tmp_path / f"theirs-{seed}", seed)
        for _ in range(STEPS):
            script.step()
        script.close()
        scripts.append(script)
    lines = "".join(line + "\n" for script in scripts for line in script.lines)
    done = run_java("LogScript.java", stdin=lines)
    assert done.returncode == 0, done.stderr
    answers = iter(done.stdout.splitlines())
    for script in scripts:
        for number, ours in enumerate(script.answers):
            theirs = next(answers)
            assert agree(ours, theirs), (
                f"{script.ours}: {[each[:40] for each in script.lines[:number]][-12:]}"
            )
        assert files_of(script.ours) == files_of(script.theirs)


@pytest.mark.parametrize("option", ["--deep-iteration", "--index-sanity-check", "--verify-index-only"])
def test_kafkas_dump_tool_accepts_what_we_write(run_java: RunJava, tmp_path: Path, option: str) -> None:
    script = Script(tmp_path / "ours", tmp_path / "theirs", 3)
    for _ in range(150):
        script.step()
    script.close()
    wanted = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(str(file) for file in script.ours.iterdir() if file.name.endswith(wanted))
    done = run_java("org.apache.kafka.tools.DumpLogSegments", option, "--files", ",".join(files))
    assert done.returncode == 0, done.stderr
    assert "Dumping" in done.stdout
    complaints = re.findall(r".*(?:mismatch|Non-consecutive|Found|not valid|isvalid: false).*", done.stdout)
    assert [line for line in complaints if "Non-consecutive" not in line] == []
