"""Runs a real Apache Kafka beside the tests, the recorders and the benchmarks: the one way to start one.

A `KafkaPeer` is one process that is broker and controller at once, with its data in a directory of its own.
It may be stopped, killed and started again on the same directory. Nothing here knows pytest; what cannot be
had is an `Unavailable` of compat.kafka_libs.
"""

import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from compat.kafka_libs import java_command, kafka_libs, run_java
from headrace.protocol.frame import decode_response, encode_request
from headrace.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tests.support_answers import free_ports as free_ports

HOST = "localhost"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
#: Short runs: start fast rather than run fast. A benchmark passes its own.
QUICK_JVM = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
#: Internal topics want three brokers unless told otherwise.
ONE_BROKER = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 60
_TRIAL_PAUSE_S = 0.1


class KafkaFailed(Exception):
    """Kafka did not format, start or stop; the message holds the end of what it said."""


def combined_properties(data: Path, port: int, controller_port: int) -> dict[str, str]:
    """What a node needs that is broker and controller at once, alone, and keeps its data in `data`."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(data),
    }


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """A server.properties file."""
    lines = (f"{name}={text}\n" for name, text in properties.items())
    path.write_text("".join(lines), encoding="utf-8")


class KafkaPeer:
    """One Kafka on one directory. `properties` go over those of `combined_properties`."""

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] = ONE_BROKER,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        jvm_options: tuple[str, ...] = QUICK_JVM,
    ) -> None:
        picked = free_ports(2)
        self.host = HOST
        self.port = picked[0] if port is None else port
        self.controller_port = picked[1] if controller_port is None else controller_port
        self.directory = directory
        self.data_dir = directory / "data"
        self.properties_file = directory / "server.properties"
        self.output_file = directory / "kafka-output.txt"
        self.jvm_options = jvm_options
        basic = combined_properties(self.data_dir, self.port, self.controller_port)
        self.properties = basic | dict(properties)
        directory.mkdir(parents=True, exist_ok=True)
        write_properties(self.properties_file, self.properties)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """What clients are given as their bootstrap server."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The running process."""
        if self._process is None:
            raise KafkaFailed("Kafka is not running")
        return self._process.pid

    def format(self, *arguments: str, cluster_id: str = CLUSTER_ID) -> None:
        """Prepare the empty directory; `arguments` are further ones of `kafka-storage.sh format`."""
        given = ("format", "-t", cluster_id, "-c", str(self.properties_file), *arguments)
        done = run_java("kafka.tools.StorageTool", *given)
        if done.returncode:
            raise KafkaFailed(f"Kafka did not format {self.data_dir}:\n{done.stdout}{done.stderr}")

    def launch(self) -> None:
        """Start the process without waiting until it serves."""
        if self._process is not None:
            raise KafkaFailed("Kafka is running already")
        if is_listened_on(self.host, self.port):
            raise KafkaFailed(f"somebody else listens on {self.address}")
        command = [java_command(), *self.jvm_options, "-cp", f"{kafka_libs()}/*", "kafka.Kafka"]
        with self.output_file.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, str(self.properties_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def start(self) -> None:
        """Start the process and return when it serves clients."""
        self.launch()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Return when the broker is in its own list of brokers that clients may use."""
        process = self._process
        if process is None:
            raise KafkaFailed("Kafka is not running")
        for _ in range(int(timeout_s / _TRIAL_PAUSE_S)):
            is_served = serves_clients(self.host, self.port)
            # Somebody else may answer on the port that this process could not have.
            if process.poll() is not None:
                code = process.returncode
                raise KafkaFailed(f"Kafka ended with {code} before it served:\n{self._output()}")
            if is_served:
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TRIAL_PAUSE_S)
        raise KafkaFailed(f"Kafka did not serve within {timeout_s} s:\n{self._output()}")

    def stop(self, timeout_s: float = _STOP_TIMEOUT_S) -> None:
        """End the process in an orderly way."""
        self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """End the process at once, as by `kill -9`."""
        self._end(signal.SIGKILL, _STOP_TIMEOUT_S)

    def _end(self, how: signal.Signals, timeout_s: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise KafkaFailed(f"Kafka did not stop within {timeout_s} s:\n{self._output()}") from None

    def _output(self) -> str:
        lines = self.output_file.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-30:])


def is_listened_on(host: str, port: int) -> bool:
    """Whether anybody accepts connections at this address."""
    try:
        with socket.create_connection((host, port), timeout=10):
            return True
    except OSError:
        return False


def serves_clients(host: str, port: int) -> bool:
    """Whether a broker answers at this address and counts itself among the brokers in use."""
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            connection.sendall(encode_request(DescribeClusterRequest(), 0, 1, "readiness"))
            with connection.makefile("rb") as stream:
                frame = stream.read(int.from_bytes(stream.read(4), "big"))
    except OSError:
        return False
    if not frame:
        return False
    _, reply = decode_response(DescribeClusterResponse, 0, frame)
    return any(broker.port == port for broker in reply.brokers)


@contextmanager
def running_kafka(
    directory: Path,
    properties: Mapping[str, str] = ONE_BROKER,
    *,
    port: int | None = None,
    controller_port: int | None = None,
    jvm_options: tuple[str, ...] = QUICK_JVM,
) -> Iterator[KafkaPeer]:
    """A freshly formatted Kafka that serves clients. What the caller has not stopped is killed at the end."""
    peer = KafkaPeer(
        directory, properties, port=port, controller_port=controller_port, jvm_options=jvm_options
    )
    peer.format()
    peer.start()
    try:
        yield peer
    finally:
        peer.kill()
