"""The tests of franz-go's client package against a node, as far as they need neither groups nor transactions.

compat/kgo/README.md says which tests are left out, and why.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.support_seat import Seat, Software, chosen_target

MODULE = Path(__file__).resolve().parent / "kgo"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "kgo"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
TESTS = (
    "TestAddRemovePartitions",
    "TestClient_Produce",
    "TestClient_ProduceLargeMessages",
    "TestConsumeMaxDecompressBatchBytes",
    "TestConsumeTopicRetrieval",
    "TestConsumeTopicRetrieval_Many",
    "TestDirectPartitionPurge",
    "TestHookPollStart",
    "TestIssue325",
    "TestIssue337",
    "TestIssue434",
    "TestIssue648",
    "TestIssue769",
    "TestIssue810",
    "TestIssue831",
    "TestIssue865",
    "TestIssueFetchLargerThanBrokerMaxReadBytes",
    "TestIssueProduceSyncManualPartitionNegativeDoesNotPanic",
    "TestPauseIssue489",
    "TestPauseIssueOct2023",
    "TestPing",
    "TestPooling",
)
PATTERN = f"^({'|'.join(TESTS)})$"
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 600
WHOLE_TIMEOUT_S = 1800


@pytest.fixture(scope="module")
def suite() -> Path:
    """The compiled tests."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("could not get the peer: franz-go's tests need Go (no `go` on the PATH)")
    CACHE.mkdir(parents=True, exist_ok=True)
    pinned = re.search(r"franz-go (v\S+)", (MODULE / "go.mod").read_text(encoding="utf-8"))
    assert pinned is not None
    binary = CACHE / f"kgo-{pinned[1]}.test"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            _build(go, binary)
    return binary


def _build(go: str, binary: Path) -> None:
    unfinished = binary.with_suffix(".unfinished")
    command = [go, "test", "-c", "-o", str(unfinished), PACKAGE]
    done = subprocess.run(
        command, cwd=MODULE, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["go said nothing"])[0]
        pytest.skip(f"could not get the peer: franz-go's tests cannot be built: {reason}")
    unfinished.rename(binary)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Seat]:
    """The node that the suite runs against."""
    if chosen_target() is Software.KAFKA:
        request.getfixturevalue("kafka_libs")
    seat = Seat(tmp_path_factory.mktemp("kgo"))
    seat.format(chosen_target())
    try:
        seat.start(chosen_target())
        yield seat
    finally:
        seat.kill()


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_the_suite_of_franz_go_passes(suite: Path, target: Seat) -> None:
    settings = {
        "KGO_SEEDS": target.address,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": "50000",
        "KGO_LOG_LEVEL": "none",
    }
    done = subprocess.run(
        [str(suite), "-test.run", PATTERN, "-test.v", "-test.timeout", f"{RUN_TIMEOUT_S}s"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = {name: outcome for outcome, name in re.findall(r"(?m)^--- (\w+): (\w+)", done.stdout)}
    assert outcomes == dict.fromkeys(TESTS, "PASS"), done.stdout[-8000:] + done.stderr[-4000:]
    assert done.returncode == 0, done.stdout[-8000:]
