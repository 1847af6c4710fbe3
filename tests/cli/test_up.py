"""`headrace up` needs nothing, and says what to do next."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.cli.data_home import data_home
from headrace.cli.start_up import UpCommand, plain_up_command
from tests.support_node import PATIENCE_SECONDS, headrace


@contextmanager
def running(*options: str) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "headrace", "up", "--port", "0", "--metrics-port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_until(process: "subprocess.Popen[str]", last: str) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if last in line:
            return "".join(lines)
    raise AssertionError(f"{last!r} was not printed:\n{''.join(lines)}")


def stop(process: "subprocess.Popen[str]") -> int:
    process.send_signal(signal.SIGINT)
    return process.wait(PATIENCE_SECONDS)


def test_it_says_where_it_is_and_what_to_type_next(tmp_path: Path) -> None:
    with running("--data", str(tmp_path / "data")) as process:
        said = lines_until(process, "Stop with Ctrl-C.")
        assert re.search(r"Headrace [\d.]+ is up at localhost:\d+\n", said)
        assert f"data     {tmp_path / 'data'}\n" in said
        assert re.search(r"metrics  http://localhost:\d+/metrics\n", said)
        assert len(said.splitlines()) < 10
        assert stop(process) == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_the_demonstration_shows_a_record_there_and_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for offset in (0, 1):
        with running("--data", str(data), "--demo") as process:
            said = lines_until(process, "Stop with Ctrl-C.")
            assert f"produced 'Hello from Headrace' to hello at offset {offset}" in said
            assert f"consumed 'Hello from Headrace' from hello at offset {offset}" in said
            assert stop(process) == 0


def test_scratch_data_is_gone_at_the_end() -> None:
    with running("--scratch") as process:
        said = lines_until(process, "Stop with Ctrl-C.")
        found = re.search(r"data     (\S+)", said)
        assert found
        assert Path(found[1]).exists()
        assert stop(process) == 0
    assert not Path(found[1]).exists()


def test_a_port_that_is_taken_comes_with_advice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = headrace("up", "--data", str(tmp_path / "data"), "--port", str(port))
    assert result.returncode == 1
    assert result.stderr == (
        f"headrace: port {port} is taken by another process; stop that one, or choose another port: "
        f"headrace up --port {port + 100}\n"
    )


def test_a_second_one_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with running("--data", str(tmp_path / "data")) as process:
        lines_until(process, "Stop with Ctrl-C.")
        second = headrace("up", "--data", str(tmp_path / "data"), "--port", "0")
        assert second.returncode == 1
        assert "is in use by another process" in second.stderr
        assert stop(process) == 0


def test_plain_command_lines_are_read_quickly() -> None:
    words = ["--data", "/d", "--port=9000", "--metrics-port", "9001", "--demo", "--verbose"]
    assert plain_up_command(words) == UpCommand("/d", 9000, 9001, demo=True, verbose=True)
    assert plain_up_command([]) == UpCommand()


@pytest.mark.parametrize(
    "words", [["--help"], ["x"], ["--port", "x"], ["--port", "70000"], ["--data", "/d", "--scratch"]]
)
def test_the_rest_is_left_to_the_command_line_library(words: list[str]) -> None:
    assert plain_up_command(words) is None


def test_data_goes_where_the_platform_keeps_it() -> None:
    assert data_home({"HOME": "/home/u"}, "linux") == "/home/u/.local/share/headrace"
    assert data_home({"HOME": "/home/u", "XDG_DATA_HOME": "/data"}, "linux") == "/data/headrace"
    assert (
        data_home({"HOME": "/home/u", "XDG_DATA_HOME": "relative"}, "linux")
        == "/home/u/.local/share/headrace"
    )
    assert data_home({"HOME": "/Users/u"}, "darwin") == "/Users/u/Library/Application Support/Headrace"
