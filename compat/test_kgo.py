"""The whole suite of franz-go's client package against a node.

compat/kgo/README.md says what it takes, and which of its tests skip themselves.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.kafka_peer import ONE_BROKER
from compat.support_seat import Seat, Software, chosen_target

MODULE = Path(__file__).resolve().parent / "kgo"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "kgo"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
#: These want SASL, and a broker too old for today's Produce.
SKIPPED_ON_KAFKA = {
    "TestIssueProduceBrokerTooOldFailsRecords",
    "TestSCRAMAuth",
    "TestSCRAMAuthBadCredentials",
}
SKIPPED_WITHOUT_SHARE_GROUPS = {
    "TestConsumeRegexShareSkipsInternal",
    "TestShareGroup",
    "TestShareGroupAckOnClose",
    "TestShareGroupETL",
    "TestShareGroupOffsetsAdmin",
}
SKIPPED = {
    Software.KAFKA: SKIPPED_ON_KAFKA,
    Software.HEADRACE: SKIPPED_ON_KAFKA | SKIPPED_WITHOUT_SHARE_GROUPS,
}
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 600
WHOLE_TIMEOUT_S = 1800


class Suite(NamedTuple):
    """The compiled tests, and the directory of their sources, which some of them read."""

    binary: Path
    sources: Path

    def names(self) -> set[str]:
        """Every test that there is; fuzz tests are run on their seeds."""
        done = subprocess.run(
            [str(self.binary), "-test.list", "."], capture_output=True, text=True, check=True
        )
        return {name for name in done.stdout.split() if name.startswith(("Test", "Fuzz"))}

    def run(self, address: str) -> "subprocess.CompletedProcess[str]":
        """All of them, as their authors run them before a release, with fewer records."""
        settings = {
            "KGO_SEEDS": address,
            "KGO_TEST_RF": "1",
            "KGO_TEST_RECORDS": "50000",
            "KGO_LOG_LEVEL": "none",
        }
        return subprocess.run(
            [str(self.binary), "-test.v", "-test.timeout", f"{RUN_TIMEOUT_S}s"],
            cwd=self.sources,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def suite() -> Suite:
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
            unfinished = binary.with_suffix(".unfinished")
            _go(go, "test", "-c", "-o", str(unfinished), PACKAGE)
            unfinished.rename(binary)
    return Suite(binary, Path(_go(go, "list", "-f", "{{.Dir}}", PACKAGE).strip()))


def _go(go: str, *arguments: str) -> str:
    done = subprocess.run(
        [go, *arguments], cwd=MODULE, capture_output=True, text=True, check=False, timeout=BUILD_TIMEOUT_S
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["go said nothing"])[0]
        pytest.skip(f"could not get the peer: franz-go's tests cannot be built: {reason}")
    return done.stdout


@pytest.fixture
def seat(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Seat]:
    """The node that the suite runs against; its internal topics have as many partitions as by default."""
    if chosen_target() is Software.KAFKA:
        request.getfixturevalue("kafka_libs")
    partitions = {"offsets.topic.num.partitions": "50", "transaction.state.log.num.partitions": "50"}
    seat = Seat(tmp_path, partitions, lambda _: ONE_BROKER)
    seat.format(chosen_target())
    try:
        seat.start(chosen_target())
        yield seat
    finally:
        seat.kill()


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_the_suite_of_franz_go_passes_and_leaves_nothing_behind(suite: Suite, seat: Seat) -> None:
    done = suite.run(seat.address)
    said = done.stdout[-8000:] + done.stderr[-4000:]
    outcomes = {name: outcome for outcome, name in re.findall(r"(?m)^--- (\w+): (\w+)", done.stdout)}
    skipped = SKIPPED[chosen_target()]
    assert outcomes == {name: "SKIP" if name in skipped else "PASS" for name in suite.names()}, said
    assert done.returncode == 0, said
    if seat.running is Software.HEADRACE:
        _check_quiet(seat)
        seat.stop()
        seat.start(Software.HEADRACE)
        _check_quiet(seat)


def _check_quiet(seat: Seat) -> None:
    """The node has nothing to complain about."""
    complaints = re.findall(r"(?m)^.* (?:WARN|WARNING|ERROR|CRITICAL|FATAL) .*$", seat.headrace_output)
    assert not complaints, "\n".join(complaints)
