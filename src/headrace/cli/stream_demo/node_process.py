"""A node of its own process with scratch data, for as long as the demonstration lasts."""

import re
import signal
import subprocess
import sys
from types import TracebackType
from typing import Final

from headrace.errors import HeadraceError

STOP_SECONDS_MAX: Final = 30
_READY: Final = re.compile(r"^Headrace \S+ is up at (\S+)$")
_METRICS: Final = re.compile(r"^\s+metrics\s+(\S+)$")


class NodeFailed(HeadraceError):
    """The node did not start."""


class NodeProcess:
    """`headrace up --scratch` beside this process. Ctrl-C reaches this process alone, which then stops it."""

    __slots__ = ("_port", "_process", "address", "metrics")

    def __init__(self, port: int) -> None:
        self._port = port
        self.address = ""
        self.metrics = ""

    def __enter__(self) -> "NodeProcess":
        options = ["--scratch", "--port", str(self._port), "--metrics-port", "0"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "up", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            self._read_greeting()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether the node is there still."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to stop and wait until it has; one that does not is killed."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.communicate(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _read_greeting(self) -> None:
        """Read until the node said where it is; what it prints before an early end is its reason."""
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            lines.append(line.rstrip())
            if found := _READY.match(lines[-1]):
                self.address = found[1]
            if found := _METRICS.match(lines[-1]):
                self.metrics = found[1]
                return
        raise NodeFailed(" ".join(lines).removeprefix("headrace: ") or "the node ended without a word")
