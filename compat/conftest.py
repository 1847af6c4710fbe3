"""Fixtures for tests against Apache Kafka's own classes: its jars, and a way to run Java with them.

A test that asks for `kafka_libs` or `run_java` is skipped, with the reason, where the peer cannot be had;
the summary at the end of the run repeats what that was.
"""

from collections import Counter
from pathlib import Path

import pytest

from compat import kafka_libs as peer

_PEER = pytest.StashKey[Path | str]()
_SKIP_PREFIX = "could not get the peer: "


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch the jars before the first test starts: a download must not count against a test's time-out."""
    if session.config.option.collectonly:
        return
    if any("kafka_libs" in getattr(item, "fixturenames", ()) for item in session.items):
        _fetch(session.config)


def _fetch(config: pytest.Config) -> Path | str:
    """The directory with the jars, or why there is none."""
    try:
        found: Path | str = peer.kafka_libs()
    except peer.Unavailable as reason:
        found = str(reason)
    config.stash[_PEER] = found
    return found


@pytest.fixture(scope="session")
def kafka_libs(pytestconfig: pytest.Config) -> Path:
    """The directory with the jars of Apache Kafka's broker and tools."""
    # A test that asks for this only under circumstances could not be known beforehand.
    found = pytestconfig.stash[_PEER] if _PEER in pytestconfig.stash else _fetch(pytestconfig)
    if isinstance(found, str):
        pytest.skip(_SKIP_PREFIX + found)
    return found


@pytest.fixture(scope="session")
def run_java(kafka_libs: Path) -> peer.RunJava:
    """`run_java(main_class_or_source, *arguments, stdin=...)` with Kafka's jars on the class path."""
    return peer.run_java


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say plainly what was, and what was not, compared with the peer."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1
    missing = {text.removeprefix(_SKIP_PREFIX): n for text, n in reasons.items() if _SKIP_PREFIX in text}
    terminalreporter.section("peers")
    for reason, count in missing.items():
        terminalreporter.line(f"NOT compared, {count} tests skipped: {reason}")
    if not missing:
        terminalreporter.line(f"Compared with Apache Kafka {peer.kafka_version()}; nothing was missing.")
