"""A disk that fails takes its log directory with it, nothing else; what it did not take is not promised."""

import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.errors import ErrorCode
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, create_topic
from tests.support_node import RawClient, RunningNode

PRODUCE_VERSION, DESCRIBE_VERSION, CREATE_VERSION = 12, 4, 7
TOPIC = "two-homes"
VALUE_BYTES = 200_000
RECORDS_MAX = 200
FILE_BYTES_MAX = 4 * 1024 * 1024
FILE_SYSTEM_BYTES = 12 * 1024 * 1024

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of another process are set on Linux only"
)


@dataclass
class TwoHomes:
    """A node with two log directories and a partition in each; the metadata log is in the safe one."""

    node: RunningNode
    safe_path: Path
    other_path: Path
    safe: int = 0
    other: int = 1
    acknowledged: dict[int, list[bytes]] = field(default_factory=lambda: {0: [], 1: []})

    def produce(self, client: RawClient, partition: int, value: bytes) -> ErrorCode:
        """Produce one record and note it if the node says that it has it."""
        batch = build_batch([NewRecord(time.time_ns() // 1_000_000, b"key", value, ())])
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
        )
        (answer,) = client.ask(request, PRODUCE_VERSION, ProduceResponse).responses[0].partition_responses
        if answer.error_code == 0:
            assert answer.base_offset == len(self.acknowledged[partition])
            self.acknowledged[partition].append(value)
        return ErrorCode(answer.error_code)

    def produce_until_refused(self) -> ErrorCode:
        """Fill the other directory until the node says no."""
        rng = random.Random(1)
        with self.node.connect() as client:
            for _ in range(RECORDS_MAX):
                code = self.produce(client, self.other, rng.randbytes(VALUE_BYTES))
                if code:
                    return code
        raise AssertionError("everything was taken")

    def check_contents(self, *partitions: int) -> None:
        """What was acknowledged is there, first of all and unchanged."""
        for partition in partitions:
            values = self.acknowledged[partition]
            seen = ConfluentClient(self.node.bootstrap).consume(TOPIC, len(values), partition=partition)
            assert [each.value for each in seen] == values
            assert [each.offset for each in seen] == list(range(len(values)))

    def check_that_the_safe_one_goes_on(self) -> None:
        with self.node.connect() as client:
            for _ in range(3):
                assert self.produce(client, self.safe, b"goes on") == ErrorCode.NONE
            assert self.produce(client, self.other, b"refused") != ErrorCode.NONE
            described = client.ask(
                DescribeLogDirsRequest(topics=None), DESCRIBE_VERSION, DescribeLogDirsResponse
            )
        codes = {each.log_dir: each.error_code for each in described.results}
        assert codes == {
            str(self.safe_path): ErrorCode.NONE,
            str(self.other_path): ErrorCode.KAFKA_STORAGE_ERROR,
        }
        self.check_contents(self.safe)
        create_topic(self.node.bootstrap, "later", 3)
        # Others may be made just now, such as those of the group that has consumed.
        pause, deadline = threading.Event(), time.monotonic() + PATIENCE_SECONDS
        while len(found := list(self.safe_path.parent.glob("*/later-*"))) < 3:
            assert time.monotonic() < deadline, self.node.output
            pause.wait(0.02)
        assert {path.parent for path in found} == {self.safe_path}

    def check_what_was_said(self) -> None:
        said = [line for line in self.node.lines if "goes offline" in line]
        assert len(said) == 1, said
        assert str(self.other_path) in said[0]
        assert "Traceback" not in self.node.output


@pytest.fixture
def two_homes(start_node: Callable[..., RunningNode], tmp_path: Path) -> Callable[..., TwoHomes]:
    """Starts a node with a safe log directory and another one."""

    def start(other_path: Path, **overrides: str) -> TwoHomes:
        safe_path = tmp_path / "safe"
        node = start_node(
            log_dirs=f"{safe_path},{other_path}",
            metadata_log_dir=str(safe_path),
            log_index_size_max_bytes="65536",
            log_segment_bytes="1048576000",
            **overrides,
        )
        homes = TwoHomes(node, safe_path, other_path)
        create_topic(node.bootstrap, TOPIC, 2)
        if not (safe_path / f"{TOPIC}-0").exists():
            homes.safe, homes.other = 1, 0
        with node.connect() as client:
            assert homes.produce(client, 0, b"first") == homes.produce(client, 1, b"first") == ErrorCode.NONE
        return homes

    return start


def limit_files(node: RunningNode, size: int) -> None:
    """Let no file of the node's grow beyond a size."""
    hard = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (size, hard))


@on_linux
def test_a_write_that_fails_takes_its_directory_offline_and_no_other(
    two_homes: Callable[..., TwoHomes], tmp_path: Path
) -> None:
    homes = two_homes(tmp_path / "other")
    limit_files(homes.node, FILE_BYTES_MAX)
    assert homes.produce_until_refused() == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(homes.acknowledged[homes.other]) > 5
    homes.node.wait_for("goes offline.*" + "File too large")
    homes.check_that_the_safe_one_goes_on()
    homes.check_what_was_said()
    homes.node.restart(hard=True)
    homes.check_contents(0, 1)


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for little."""
    path = tmp_path / "small"
    path.mkdir()
    mount = shutil.which("mount")
    if mount is None or sys.platform != "linux":
        pytest.skip("there is no way to mount a small file system here")
    options = ["-t", "tmpfs", "-o", f"size={FILE_SYSTEM_BYTES}", "tmpfs", str(path)]
    if subprocess.run([mount, *options], capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a small file system")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_file_system_takes_its_directory_offline_and_no_other(
    small_file_system: Path, two_homes: Callable[..., TwoHomes]
) -> None:
    homes = two_homes(small_file_system)
    assert homes.produce_until_refused() == ErrorCode.KAFKA_STORAGE_ERROR
    homes.node.wait_for("goes offline.*" + "No space left on device")
    homes.check_that_the_safe_one_goes_on()
    homes.check_what_was_said()
    # A clean stop leaves no word of it in the full directory, and the next start finds what was promised.
    homes.node.restart()
    homes.check_contents(0, 1)


def test_a_directory_that_vanishes_goes_offline_and_no_other(
    two_homes: Callable[..., TwoHomes], tmp_path: Path
) -> None:
    homes = two_homes(
        tmp_path / "other",
        log_initial_task_delay_ms="0",
        replica_high_watermark_checkpoint_interval_ms="100",
    )
    away = tmp_path / "away"
    homes.other_path.rename(away)
    # Files that are open go on; a checkpoint is the first thing that can't be written.
    with homes.node.connect() as client:
        homes.produce(client, homes.other, b"noted in a checkpoint")
    homes.node.wait_for("goes offline.*" + "No such file or directory")
    homes.check_that_the_safe_one_goes_on()
    homes.check_what_was_said()
    homes.node.kill()
    away.rename(homes.other_path)
    homes.node.start()
    homes.check_contents(0, 1)


@on_linux
def test_a_node_that_cannot_write_its_metadata_says_so_and_ends(headrace_node: RunningNode) -> None:
    create_topic(headrace_node.bootstrap, "before")
    limit_files(headrace_node, 1)
    with headrace_node.connect() as client:
        topic = CreatableTopic(name="never", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        try:
            answer = client.ask(request, CREATE_VERSION, CreateTopicsResponse)
            assert answer.topics[0].error_code != 0
        except (EOFError, ConnectionResetError):
            pass  # Going down without an answer promises nothing either.
    assert headrace_node.wait() == 1
    assert "File too large" in headrace_node.output
    assert "Traceback" not in headrace_node.output
    headrace_node.start()
    assert ConfluentClient(headrace_node.bootstrap).consume("before", 0) == []
