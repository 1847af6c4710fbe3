"""The whole suite of franz-go's client package against a node.

compat/kgo/README.md says what it takes, and which of its tests skip themselves.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat.kafka_peer import ONE_BROKER
from compat.support_seat import Seat, Software, chosen_target
from compat.support_tools import KafkaTools

MODULE = Path(__file__).resolve().parent / "kgo"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "kgo"
PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
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
OTHER = {Software.KAFKA: Software.HEADRACE, Software.HEADRACE: Software.KAFKA}
BUILD_TIMEOUT_S = 1200
RUN_TIMEOUT_S = 600
WHOLE_TIMEOUT_S = 1800
#: How many there shall be before everything is killed.
GROUPS_MIN, TRANSACTIONS_MIN = 6, 20
LOOKS_MAX = 60


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
        return subprocess.run(
            [str(self.binary), "-test.v", "-test.timeout", f"{RUN_TIMEOUT_S}s"],
            cwd=self.sources,
            env=_settings(address, 50_000),
            capture_output=True,
            text=True,
            check=False,
        )

    def start_transactions(self, address: str) -> "subprocess.Popen[bytes]":
        """Chains of consumers that go on and on, in both group protocols, each step a transaction."""
        return subprocess.Popen(
            [str(self.binary), "-test.run", "^TestTxnEtl$"],
            cwd=self.sources,
            env=_settings(address, 10_000_000),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def _settings(address: str, records: int) -> dict[str, str]:
    return {
        **os.environ,
        "KGO_SEEDS": address,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": str(records),
        "KGO_LOG_LEVEL": "none",
    }


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


class Coordinated(NamedTuple):
    """What the coordinators know that neither time nor a change of hands may change."""

    types: frozenset[str]
    transactional_ids: frozenset[str]
    offsets: frozenset[str]
    #: Transactional ids whose markers are not all written yet: more offsets will be there when they are.
    unfinished: frozenset[str]


def look(tools: KafkaTools, address: str) -> Coordinated:
    """Groups with their types, transactional ids with their producer ids, and committed offsets."""
    server = ("--bootstrap-server", address)
    rows = {
        what: [line.split() for line in tools.run(tool, *server, *arguments).lines[1:]]
        for what, tool, arguments in (
            ("types", GROUPS, ("--list", "--type")),
            ("transactions", TRANSACTIONS, ("list",)),
            ("offsets", GROUPS, ("--describe", "--all-groups", "--offsets")),
        )
    }
    # The heads of all tables but the first, and partitions without an offset, are left out.
    offsets = [row for row in rows["offsets"] if len(row) > 3 and row[3].isdecimal()]
    return Coordinated(
        frozenset(" ".join(row) for row in rows["types"]),
        frozenset(f"{row[0]} {row[2]}" for row in rows["transactions"]),
        frozenset(" ".join(row[:4]) for row in offsets),
        frozenset(row[0] for row in rows["transactions"] if row[-1].startswith("Prepare")),
    )


def look_until(tools: KafkaTools, address: str, is_enough: Callable[[Coordinated], bool]) -> Coordinated:
    """Look again and again: a node that has just started may not have loaded everything yet."""
    seen = look(tools, address)
    for _ in range(LOOKS_MAX):
        if is_enough(seen):
            break
        seen = look(tools, address)
    return seen


@pytest.mark.timeout(WHOLE_TIMEOUT_S)
def test_what_is_killed_in_the_middle_of_the_suite_is_the_same_to_both(
    kafka_libs: Path, suite: Suite, seat: Seat
) -> None:
    """Promises 18 and 28: first our own restart, and then Kafka's, find what was there."""
    with KafkaTools() as tools:
        running = suite.start_transactions(seat.address)
        try:
            before = look_until(tools, seat.address, _is_in_full_swing)
            assert _is_in_full_swing(before)
        finally:
            seat.kill()
            running.kill()
            running.wait()
        seat.start(chosen_target())
        found = look_until(tools, seat.address, lambda seen: _is_at_rest(seen, before))
        assert _is_at_rest(found, before)
        seat.kill()
        seat.start(OTHER[chosen_target()])
        assert look_until(tools, seat.address, found.__eq__) == found
    assert not list(seat.data_dir.glob("*-stray"))


def _is_in_full_swing(seen: Coordinated) -> bool:
    return (
        len(seen.types) >= GROUPS_MIN
        and len(seen.transactional_ids) >= TRANSACTIONS_MIN
        and len(seen.offsets) >= GROUPS_MIN
    )


def _is_at_rest(seen: Coordinated, before: Coordinated) -> bool:
    """Whether everything has been loaded, and every transaction that had been decided is carried out."""
    is_loaded = seen.types >= before.types and seen.transactional_ids >= before.transactional_ids
    return is_loaded and not seen.unfinished
