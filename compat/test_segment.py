"""Segments beside Kafka's own: the same script of appends, reads, truncations and damage for both.

Answers must be the same, and so must the files in the end."""

import base64
import os
import random
from pathlib import Path

from compat.kafka_libs import RunJava
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.segment import Segment
from headrace.log.settings import LogSettings
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.system.disk import RealDisk

SEEDS = range(60)
NOW = 1_700_000_000_000


class Script:
    """Runs lines against our segment; `answers` is what Kafka should answer as well."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.directory = directory
        self.disk = RealDisk()
        self.base = self.rng.choice([0, 7, 2**40])
        self.interval = self.rng.choice([0, 300, 4096])
        self.end = self.base
        self.epoch = 0
        self.lines: list[str] = []
        self.answers: list[str] = []
        self.segment = self.create()

    def say(self, line: str, answer: str) -> None:
        self.lines.append(line)
        self.answers.append(answer)

    def create(self) -> Segment:
        self.say(self.opening(), "opened")
        return Segment.create(self.disk, str(self.directory), self.base, self.settings(), NOW)

    def settings(self) -> LogSettings:
        return LogSettings(index_interval_bytes=self.interval, segment_index_bytes=10_000)

    def opening(self) -> str:
        return f"open @ {self.base} {self.interval} 10000"

    def append(self) -> None:
        data = b""
        for _ in range(self.rng.choice([1, 1, 1, 4])):
            self.epoch += self.rng.random() < 0.1
            self.end += self.rng.choice([0, 0, 0, 3])
            count = self.rng.randint(1, 5)
            start = NOW + self.rng.randint(-500, 500)
            records = [
                NewRecord(
                    start + self.rng.randint(0, 50), b"key", self.rng.randbytes(self.rng.choice([9, 700]))
                )
                for _ in range(count)
            ]
            data += build_batch(
                records,
                base_offset=self.end,
                leader_epoch=self.epoch,
                compression=self.rng.choice(list(Compression)),
            )
            self.end += count
        self.segment.append(self.end - 1, data)
        encoded = base64.b64encode(data).decode()
        self.say(f"append {self.end - 1} {encoded}", f"appended {self.segment.size}")

    def truncate(self) -> None:
        offset = self.rng.randint(self.base, self.end + 2)
        self.say(f"truncate {offset}", f"truncated {self.segment.truncate_to(offset, NOW)}")
        self.look()

    def look(self) -> None:
        self.end = self.segment.next_offset()
        self.say("next", f"next {self.end}")
        self.say("max", "max {} {}".format(*self.segment.max_timestamp))

    def read(self) -> None:
        offset, bytes_max = self.rng.randint(self.base, self.end + 2), self.rng.choice([0, 100, 2000])
        at_least_one = self.rng.random() < 0.5
        found = self.segment.read(offset, bytes_max, min_one_message=at_least_one)
        answer = "read none"
        if found is not None:
            # Kafka answers an empty read in short, without looking at the first batch.
            cut = found.first_batch_incomplete and bytes_max > 0
            answer = f"read {found.start.offset} {found.position} {found.length} {str(cut).lower()}"
        self.say(f"read {offset} {bytes_max} {int(at_least_one)}", answer)

    def search(self) -> None:
        timestamp, start = NOW + self.rng.randint(-600, 600), self.rng.randint(self.base, self.end + 1)
        found = self.segment.find_timestamp(timestamp, start)
        answer = "time none" if found is None else "time {} {} {}".format(*found)
        self.say(f"time {timestamp} {start}", answer)

    def reopen(self) -> None:
        self.segment.close()
        self.say("close", "closed")
        self.segment = Segment.open(self.disk, str(self.directory), self.base, self.settings(), NOW)
        self.say(self.opening(), "opened")
        self.look()

    def damage_and_recover(self) -> None:
        """Cut the log or flip a bit that the checksum covers, as a crash might, and put it right."""
        self.segment.close()
        self.say("close", "closed")
        path = self.segment.log.path
        position, bit = self.rng.randint(0, os.path.getsize(path)), -1
        places = [
            (place.position, place.size)
            for offset in range(self.base, self.end)
            if (place := self.segment.translate(offset)) is not None
        ]
        if places and self.rng.random() < 0.5:
            start, size = self.rng.choice(places)
            position, bit = start + self.rng.randint(21, size - 1), self.rng.randint(0, 7)
        damage(path, position, bit)
        self.say(self.opening(), "opened")
        self.say(f"damage {position} {bit}", "damaged")
        self.say("close", "closed")
        self.segment = Segment.open(self.disk, str(self.directory), self.base, self.settings(), NOW)
        self.say(self.opening(), "opened")
        epochs = LeaderEpochs.load(self.disk, str(self.directory))
        self.say("recover", f"recovered {self.segment.recover(leader_epochs=epochs).bytes_truncated}")
        self.look()

    def run(self) -> None:
        steps = [self.append] * 6 + [self.read] * 3 + [self.search] * 2 + [self.reopen, self.truncate]
        for _ in range(60):
            self.rng.choice(steps)()
        if self.rng.random() < 0.6:
            self.damage_and_recover()
            for _ in range(10):
                self.rng.choice(steps)()
        self.segment.close()
        self.say("close", "closed")
        self.disk.close()


def damage(path: str, position: int, bit: int) -> None:
    with open(path, "r+b") as file:
        if bit < 0:
            file.truncate(position)
            return
        file.seek(position)
        value = file.read(1)[0]
        file.seek(position)
        file.write(bytes([value ^ 1 << bit]))


def files_in(directory: Path) -> dict[str, bytes]:
    """What is there, but for a checkpoint of no epochs, which Kafka creates and Headrace does not."""
    files = {path.name: path.read_bytes() for path in sorted(directory.iterdir())}
    return {name: data for name, data in files.items() if data or name != "leader-epoch-checkpoint"}


def test_scripts_get_the_same_answers_and_leave_the_same_files(run_java: RunJava, tmp_path: Path) -> None:
    scripts = []
    for seed in SEEDS:
        for name in ("ours", "theirs"):
            (tmp_path / name / str(seed)).mkdir(parents=True)
        script = Script(tmp_path / "ours" / str(seed), seed)
        script.run()
        scripts.append(script)
    lines = [
        line.replace("@", str(tmp_path / "theirs" / str(seed)), 1) if line.startswith("open") else line
        for seed, script in zip(SEEDS, scripts, strict=True)
        for line in script.lines
    ]
    done = run_java("SegmentScript.java", stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    expected = [answer for script in scripts for answer in script.answers]
    for number, (line, ours, theirs) in enumerate(zip(lines, expected, answers, strict=True)):
        assert ours == theirs, f"line {number}: {line[:100]}"
    for seed in SEEDS:
        left = [files_in(tmp_path / name / str(seed)) for name in ("ours", "theirs")]
        assert left[0] == left[1], f"seed {seed}"
    logs = [str(path) for path in sorted((tmp_path / "ours").glob("*/*.log"))]
    dump = run_java("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(logs))
    assert dump.returncode == 0
    indexes = [str(path) for path in sorted((tmp_path / "ours").glob("*/*.*index")) if path.stat().st_size]
    check = run_java(
        "org.apache.kafka.tools.DumpLogSegments", "--index-sanity-check", "--files", ",".join(indexes)
    )
    assert check.returncode == 0
    assert check.stdout.count("passed sanity check") == len(indexes)
