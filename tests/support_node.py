"""A real node in a process of its own, for tests that a client or a signal has a part in."""

import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from headrace.config.server_properties import load_server_properties
from headrace.metadata.format import format_directories, format_plan
from headrace.protocol.apis import APIS
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.message import Message
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk
from headrace.system.entropy import SystemEntropy

M = TypeVar("M", bound=Message)

CLUSTER_ID = "aGVhZHJhY2UtdGVzdHMtMQ"
HOST = "127.0.0.1"
PATIENCE_SECONDS = 60.0
READY = re.compile(r"\bready: .*?PLAINTEXT://127\.0\.0\.1:(\d+)")
METRICS = re.compile(r"metrics: http://127\.0\.0\.1:(\d+)/metrics")


def headrace(*arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        **options,
    )


def node_properties(
    data_dir: Path, port: int = 0, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The configuration of a node for tests: broker and controller, on ports that the system chooses."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:9093",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:0",
        "log.dirs": str(data_dir),
        "headrace.metrics.port": "0",
        "headrace.metrics.host": HOST,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        **(overrides or {}),
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def format_data(properties_path: Path, cluster_id: str = CLUSTER_ID) -> None:
    """What `headrace storage format` does, without a process of its own."""
    disk, entropy = RealDisk(), SystemEntropy()
    config = load_server_properties(str(properties_path), (), disk, {})
    plan = format_plan(config, cluster_id, entropy, ignore_formatted=True)
    assert list(format_directories(disk, SystemClock(), entropy, plan))


class NodeDied(Exception):
    """The process ended when it should not have; the message has what it printed."""


class RunningNode:
    """A node's process. Its ports stay the same over restarts."""

    def __init__(
        self, directory: Path, overrides: Mapping[str, str] | None = None, *, is_formatted: bool = False
    ) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.properties_path = directory / "server.properties"
        self.overrides = overrides
        self.lines: list[str] = []
        self.host = HOST
        self.port = 0
        self.metrics_port = 0
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._changed = threading.Condition()
        self._has_ended = False
        directory.mkdir(parents=True, exist_ok=True)
        self._write_properties()
        if not is_formatted:
            format_data(self.properties_path)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything that the node has printed since it was started last."""
        return "".join(self.lines)

    def start(self, *arguments: str, descriptors_max: int | None = None) -> "RunningNode":
        """Start the process and return once it accepts connections. `descriptors_max` is its `ulimit -n`."""
        self._write_properties()
        self.lines = []
        self._has_ended = False
        limit = (
            [] if descriptors_max is None else ["sh", "-c", f'ulimit -n {descriptors_max}; exec "$@"', "sh"]
        )
        self._process = subprocess.Popen(
            [*limit, sys.executable, "-m", "headrace", "server", str(self.properties_path), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        self.port = int(self.wait_for(READY)[1])
        metrics = METRICS.search(self.output)
        self.metrics_port = int(metrics[1]) if metrics else 0
        return self

    def wait_for(self, pattern: "re.Pattern[str] | str") -> "re.Match[str]":
        """The first line printed that matches; NodeDied if the process ends before it comes."""
        wanted = re.compile(pattern)
        with self._changed:
            seen = 0
            while True:
                for line in self.lines[seen:]:
                    seen += 1
                    if found := wanted.search(line):
                        return found
                if self._has_ended:
                    raise NodeDied(f"the node ended before {wanted.pattern!r} was seen:\n{self.output}")
                if not self._changed.wait(PATIENCE_SECONDS):
                    raise NodeDied(f"{wanted.pattern!r} was not seen:\n{self.output}")

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code, once the process has ended."""
        assert self._process is not None
        code = self._process.wait(PATIENCE_SECONDS)
        assert self._reader is not None
        self._reader.join(PATIENCE_SECONDS)
        return code

    def stop(self) -> int:
        """Ask the node to stop, and wait until it has; the exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End the process as a crash would."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    def restart(self, *, hard: bool = False) -> "RunningNode":
        """Stop (or kill) and start again on the same ports."""
        if hard:
            self.kill()
        else:
            assert self.stop() == 0, self.output
        return self.start()

    def _write_properties(self) -> None:
        write_properties(self.properties_path, node_properties(self.data_dir, self.port, self.overrides))

    @contextmanager
    def connect(self) -> "Iterator[RawClient]":
        """A client that sends what it is told to, be it wrong."""
        with socket.create_connection((self.host, self.port), timeout=PATIENCE_SECONDS) as sock:
            yield RawClient(sock)


class RawClient:
    """Requests and replies as messages, one connection, no cleverness."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._correlation_id = 0

    def ask(self, request: Message, version: int, response: type[M]) -> M:
        """Send a request and wait for its reply."""
        correlation_id = self.send(request, version)
        return self.receive(response, version, correlation_id)

    def send(self, request: Message, version: int) -> int:
        """Send a request; the correlation id that its reply will have."""
        self._correlation_id += 1
        self.socket.sendall(encode_request(request, version, self._correlation_id, "tests"))
        return self._correlation_id

    def receive(self, response: type[M], version: int, correlation_id: int) -> M:
        """The next reply, which has to be that of the given request."""
        got, reply = decode_response(response, version, self.receive_frame())
        assert got == correlation_id
        return reply

    def receive_frame(self) -> bytes:
        """The bytes of the next reply, without their length."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Whether the other side hangs up; waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError("the node hung up")
            data += piece
        return bytes(data)


def latest_version(message: type[Message]) -> int:
    """The newest version of an API that is not in the making."""
    return APIS[message.API_KEY].stable_version_max
