"""The dumps that Headrace and Kafka's own tool must agree on, and how to run ours in-process.

Used by the golden tests, by `make compat`, and by the recorder of the golden files.
"""

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from headrace.cli.app import app
from tests.support_archives import unpack_archive

FIXTURES = Path(__file__).parent / "fixtures"
GOLDEN = FIXTURES / "dump"
ROOT_MARK = "{root}"
CLEAN, KILLED = "clean-shutdown", "killed"

DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "bootstrap.checkpoint": "--cluster-metadata-decoder",
}
LOG_OPTIONS = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--deep-iteration", "--max-bytes", "3000"),
)
INDEX_OPTIONS = ((), ("--verify-index-only",), ("--index-sanity-check",))
KNOWN_SUFFIXES = {".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"}


@dataclass(frozen=True, slots=True)
class Printed:
    """What a dump printed, with the directory of the files replaced by a mark; and whether it got through."""

    out: str
    err: str
    failed: bool


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One dump whose output by Kafka's tool is kept with the tests."""

    name: str
    fixture: str
    files: tuple[str, ...]
    options: tuple[str, ...] = ()

    def arguments(self, root: Path) -> list[str]:
        return [*self.options, "--files", ",".join(str(root / file) for file in self.files)]


_FIRST = "00000000000000000000"
GOLDEN_CASES = (
    GoldenCase("codecs-records", CLEAN, (f"codecs-0/{_FIRST}.log",), ("--print-data-log",)),
    GoldenCase("plain-deep", KILLED, (f"plain-0/{_FIRST}.log",), ("--deep-iteration",)),
    GoldenCase(
        "plain-contents", KILLED, (f"plain-1/{_FIRST}.log",), ("--print-data-log", "--skip-record-metadata")
    ),
    GoldenCase("append-time", CLEAN, (f"appendtime-0/{_FIRST}.log",), ("--print-data-log",)),
    GoldenCase("compacted", CLEAN, (f"compacted-0/{_FIRST}.log",), ("--print-data-log",)),
    GoldenCase(
        "transactional",
        CLEAN,
        (f"transactional-0/{_FIRST}.log", "transactional-0/00000000000000000005.log"),
        ("--print-data-log",),
    ),
    GoldenCase("aborted", CLEAN, ("transactional-0/00000000000000000005.txnindex",)),
    GoldenCase("producers", CLEAN, ("transactional-0/00000000000000000024.snapshot",)),
    GoldenCase("rolled", CLEAN, (f"rolled-0/{_FIRST}.log", "rolled-0/00000000000000001026.log")),
    GoldenCase("rolled-limited", CLEAN, (f"rolled-0/{_FIRST}.log",), ("--max-bytes", "60000")),
    GoldenCase("rolled-indexes", CLEAN, (f"rolled-0/{_FIRST}.index", f"rolled-0/{_FIRST}.timeindex")),
    GoldenCase("sane-index", CLEAN, (f"rolled-0/{_FIRST}.index",), ("--index-sanity-check",)),
    GoldenCase(
        "killed-indexes",
        KILLED,
        ("rolled-0/00000000000000002052.index", "rolled-0/00000000000000002052.timeindex"),
    ),
    GoldenCase("metadata", KILLED, (f"__cluster_metadata-0/{_FIRST}.log",), ("--cluster-metadata-decoder",)),
    GoldenCase("bootstrap", CLEAN, ("bootstrap.checkpoint",), ("--cluster-metadata-decoder",)),
    GoldenCase("offsets", CLEAN, (f"__consumer_offsets-0/{_FIRST}.log",), ("--offsets-decoder",)),
    GoldenCase(
        "transaction-state", CLEAN, (f"__transaction_state-0/{_FIRST}.log",), ("--transaction-log-decoder",)
    ),
)


def unpack_fixture(name: str, target: Path) -> Path:
    """A log directory as Kafka left it."""
    unpack_archive(FIXTURES / f"kafka-4.3.1-{name}.tar.gz", target)
    return next(path.parent for path in target.rglob("meta.properties"))


def option_sets(path: Path) -> list[tuple[str, ...]]:
    """The options that make a difference for one file."""
    if path.suffix in (".index", ".timeindex"):
        return list(INDEX_OPTIONS)
    if path.suffix not in (".log", ".checkpoint"):
        return [()]
    decoders = [option for name, option in DECODERS.items() if name in str(path)]
    decoded = [(option,) for option in decoders] + [(option, "--skip-record-metadata") for option in decoders]
    return [*LOG_OPTIONS, *decoded]


def dumpable_files(root: Path) -> list[Path]:
    """Every file that Kafka's tool knows."""
    return sorted(path for path in root.rglob("*") if path.suffix in KNOWN_SUFFIXES)


def headrace_dump(arguments: list[str], root: Path) -> Printed:
    """Run `headrace log dump` with the arguments of Kafka's tool."""
    result = CliRunner().invoke(app, ["log", "dump", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Printed(
        without_root(result.stdout, root), without_root(result.stderr, root), result.exit_code != 0
    )


def without_root(text: str, root: Path) -> str:
    return text.replace(str(root), ROOT_MARK)


def kafka_lines_of_errors(printed: Printed) -> list[str]:
    """The lines of the error stream that Kafka's tool prints too: it has no lines of `error:`."""
    return [line for line in printed.err.splitlines() if not line.startswith("error: ")]
