"""`headrace demo`: what it needs, what it does without, and that it leaves nothing behind."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from headrace.cli.stream_demo.events import STATIONS, TOPIC, Produced, create_topic, generate, readings
from headrace.cli.stream_demo.java import version_in, why_no_spark
from headrace.cli.stream_demo.node_process import NodeFailed, NodeProcess
from headrace.cli.stream_demo.pipeline import WindowRow
from headrace.cli.stream_demo.screen import line_of
from headrace.cli.stream_demo.watch import Figures

WITHOUT_JAVA = "Spark needs Java 17 or newer, which is not on this machine"
FIRST_RESULT = re.compile(r"^rows/s in .* lag .* rows; window \d\d:\d\d:\d\d: .*Amrum -?\d")


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_401"', 8),
        ("something else", None),
    ],
)
def test_the_version_of_java_is_found_in_what_it_prints(text: str, major: int | None) -> None:
    assert version_in(text) == major


def test_a_machine_without_java_is_told_so(tmp_path: Path) -> None:
    assert why_no_spark({"PATH": str(tmp_path)}) == "There is no Java on this machine."
    assert (
        why_no_spark({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)})
        == "There is no Java on this machine."
    )


def test_an_old_java_is_told_so(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    assert why_no_spark({"PATH": str(tmp_path)}) == f"{java} is Java 11, which is too old."


def test_without_java_the_node_runs_alone_and_says_how_to_get_java(tmp_path: Path) -> None:
    with demo({**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""}) as process:
        lines = lines_until(process, "Stop with Ctrl-C.")
    text = "\n".join(lines)
    assert "There is no Java on this machine." in text
    assert "openjdk-17" in text
    assert "is up at localhost:" in text
    assert "consumed 'Hello from Headrace'" in text


def test_readings_have_a_station_as_key_and_json_as_value() -> None:
    batch = readings(np.random.default_rng(1), 100).to_pylist()
    assert {row["key"].decode() for row in batch} == set(STATIONS)
    for row in batch:
        assert re.fullmatch(
            rf'{{"station": "{row["key"].decode()}", "celsius": -?\d+(\.\d+)?}}', row["value"].decode()
        )


def test_the_generator_produces_until_it_is_stopped() -> None:
    async def run(address: str) -> Produced:
        await create_topic(address)
        stop = asyncio.Event()
        produced = Produced(on_rows=lambda rows: stop.set() if rows >= 300 else None)
        await generate(address, 1_000, produced, stop)
        return produced

    with NodeProcess(0) as node:
        assert asyncio.run(run(node.address)).rows >= 300
        options = f"--bootstrap-server {node.address} --from beginning --until end --format json".split()
        shown = subprocess.run(
            [sys.executable, "-m", "headrace", "consume", TOPIC, *options],
            capture_output=True,
            text=True,
            check=True,
        )
    assert len(shown.stdout.splitlines()) >= 300


def test_a_node_that_cannot_start_gives_its_reason() -> None:
    with NodeProcess(0) as node, pytest.raises(NodeFailed, match="is taken by another process"):
        NodeProcess(int(node.address.rpartition(":")[2])).__enter__()


def test_a_line_names_speeds_lag_and_the_latest_window() -> None:
    figures = Figures("localhost:9092", produced_per_second=5000, aggregated_per_second=4900, lag=1234)
    figures.windows = [WindowRow("10:00:10", "Amrum", 12, 8.04), WindowRow("10:00:00", "Amrum", 99, 7.0)]
    assert line_of(figures) == "rows/s in 5,000, out 4,900, lag 1,234 rows; window 10:00:10: Amrum 8.0 C (12)"


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(why_no_spark(os.environ) is not None, reason=WITHOUT_JAVA)
def test_windows_arrive_live_and_an_interrupt_stops_everything() -> None:
    with demo(dict(os.environ)) as process:
        lines_until(process, FIRST_RESULT)
        lines_until(process, FIRST_RESULT)
        process.send_signal(signal.SIGINT)
        rest = process.communicate()[0].splitlines()
    assert process.returncode == 0
    assert rest[-1] == "Stopped."


@contextmanager
def demo(environment: dict[str, str]) -> "Iterator[subprocess.Popen[str]]":
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace", "demo", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate()


def lines_until(process: "subprocess.Popen[str]", wanted: "str | re.Pattern[str]") -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if re.match(wanted, lines[-1]):
            return lines
    raise AssertionError(f"it ended after: {lines}")
