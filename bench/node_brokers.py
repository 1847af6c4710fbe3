"""The two brokers of the comparison, each in a process of its own, with the same server.properties.

What is asked of a process (memory, processor time) is asked of its children as well: Headrace may have some.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from compat.kafka_libs import Unavailable
from compat.kafka_peer import (
    CLUSTER_ID,
    HOST,
    ONE_BROKER,
    KafkaPeer,
    combined_properties,
    free_ports,
    write_properties,
)

#: What Kafka's own start scripts give the virtual machine.
USUAL_JVM = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
#: Deleted topics make room for the next run at once, and a compaction does not keep one waiting.
SETTINGS = ONE_BROKER | {"log.segment.delete.delay.ms": "100", "log.cleaner.backoff.ms": "200"}
DIRECTORY_VARIABLE = "HEADRACE_BENCH_DIR"
STOP_TIMEOUT_S = 60
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BrokerFailed(Exception):
    """A broker did not do what it was told; the message says what it said."""


class Broker(Protocol):
    """A broker on a directory of its own, which is formatted already."""

    host: str
    port: int
    data_dir: Path

    @property
    def pid(self) -> int:
        """The running process."""

    @property
    def address(self) -> str:
        """What clients are given as their bootstrap server."""

    def launch(self) -> None:
        """Start the process without waiting until it serves."""

    def stop(self) -> None:
        """End the process in an orderly way."""

    def kill(self) -> None:
        """End the process at once."""


class HeadraceBroker:
    """`headrace server` on a directory."""

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        self.host = HOST
        self.port, controller_port = free_ports(2)
        self.data_dir = directory / "data"
        self._properties_file = directory / "server.properties"
        self._output_file = directory / "output.txt"
        # An installed package has its bytecode; here it is there after the first start.
        self._environment = os.environ | {"PYTHONPYCACHEPREFIX": str(directory / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        basic = combined_properties(self.data_dir, self.port, controller_port)
        write_properties(self._properties_file, basic | dict(properties))
        self._run("storage", "format", "-t", CLUSTER_ID, "-c", str(self._properties_file))

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BrokerFailed("Headrace is not running")
        return self._process.pid

    def launch(self) -> None:
        with self._output_file.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headrace", "server", str(self._properties_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
            )

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerFailed(f"Headrace did not stop:\n{self._output_file.read_text()[-3000:]}") from None

    def _run(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "headrace", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment)
        if done.returncode:
            raise BrokerFailed(done.stdout + done.stderr)


@contextmanager
def brokers() -> Iterator[tuple[HeadraceBroker, KafkaPeer | None, str]]:
    """Both brokers, formatted and not running; without Kafka, why it cannot be had."""
    with ExitStack() as stack:
        scratch = tempfile.TemporaryDirectory(
            prefix="headrace-bench-", dir=os.environ.get(DIRECTORY_VARIABLE), ignore_cleanup_errors=True
        )
        directory = Path(stack.enter_context(scratch))
        ours = HeadraceBroker(directory / "headrace", SETTINGS)
        stack.callback(ours.kill)
        try:
            theirs = KafkaPeer(directory / "kafka", SETTINGS, jvm_options=USUAL_JVM)
            theirs.format()
        except Unavailable as error:
            yield ours, None, str(error)
            return
        stack.callback(theirs.kill)
        yield ours, theirs, ""


def has_ended(pid: int) -> bool:
    """Whether a process of ours is no more, without taking note of it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def resident_bytes(pid: int) -> int:
    """The memory that a process and its children have in use."""
    return _memory(pid, "VmRSS:")


def peak_resident_bytes(pid: int) -> int:
    """The most memory that a process, and each of its children, has ever had in use."""
    return _memory(pid, "VmHWM:")


def _memory(pid: int, field: str) -> int:
    total = 0
    for each in _family(pid):
        for line in _lines(f"/proc/{each}/status"):
            if line.startswith(field):
                total += int(line.split()[1]) * 1024
    return total


def processor_seconds(pid: int) -> float:
    """The processor time that a process and its children have used so far."""
    ticks = 0
    for each in _family(pid):
        for line in _lines(f"/proc/{each}/stat"):
            fields = line.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_SECOND


def _family(pid: int) -> list[int]:
    family = [pid]
    for each in family:
        for thread in _listed(f"/proc/{each}/task"):
            for line in _lines(f"/proc/{each}/task/{thread}/children"):
                family += map(int, line.split())
    return family


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def _lines(path: str) -> list[str]:
    """A file of /proc; nothing if its process has ended meanwhile."""
    try:
        return Path(path).read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []
