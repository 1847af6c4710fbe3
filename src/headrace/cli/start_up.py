"""A node for a laptop: no configuration, formatted on first use, a few lines that say what to do next."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from headrace import __version__
from headrace.cli.data_home import data_home
from headrace.cli.plain_options import read_plain_options
from headrace.cli.start_server import prepare_process, refuse

if TYPE_CHECKING:
    from headrace.config.node import NodeConfig
    from headrace.server.node import Node

PORT: Final = 9092
METRICS_PORT: Final = 9464
HOST: Final = "localhost"
DEMO_TOPIC: Final = "hello"
_VALUED: Final = ("--data", "--port", "--metrics-port")
_FLAGS: Final = ("--demo", "--scratch", "--verbose")


@dataclass(slots=True, frozen=True)
class UpCommand:
    """What was asked for. Without a metrics port the usual one is taken, or another one if it is not free."""

    data: str | None = None
    port: int = PORT
    metrics_port: int | None = None
    demo: bool = False
    scratch: bool = False
    verbose: bool = False


def plain_up_command(words: Sequence[str]) -> UpCommand | None:
    """The command in the words behind `headrace up`; None if they need the command-line library."""
    options = read_plain_options(words, _VALUED, _FLAGS)
    if options is None or options.arguments:
        return None
    if "--scratch" in options.flags and options.last("--data") is not None:
        return None
    port, metrics_port = options.last("--port") or str(PORT), options.last("--metrics-port")
    if not all(text is None or text.isdecimal() for text in (port, metrics_port)):
        return None
    if int(port) > 65535 or int(metrics_port or 0) > 65535:
        return None
    return UpCommand(
        options.last("--data"),
        int(port),
        None if metrics_port is None else int(metrics_port),
        "--demo" in options.flags,
        "--scratch" in options.flags,
        "--verbose" in options.flags,
    )


def start_up(command: UpCommand) -> NoReturn:
    """Run a node until it is stopped, and end the process; a refusal is one line and exit code 1."""
    prepare_process()
    from headrace.errors import HeadraceError
    from headrace.server.lifecycle import run_node

    with ExitStack() as stack:
        if command.scratch:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-"))
        else:
            directory = os.path.abspath(command.data or data_home(os.environ))
        try:
            config = _prepare(command, directory)
            greeting = Greeting(command, directory)
            status = run_node(config, environment=os.environ, on_ready=greeting.show)
        except HeadraceError as error:
            refuse(_advice(command, str(error)))
        except OSError as error:
            refuse(f"{error.filename or directory}: {error.strerror or error}")
    sys.exit(status)


def up_properties(command: UpCommand, directory: str, metrics_port: int) -> dict[str, str]:
    """The configuration of a node that only this machine can reach."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:9093",
        "controller.listener.names": "CONTROLLER",
        # Nobody else is in the quorum, so the controller's port may be any.
        "listeners": f"PLAINTEXT://{HOST}:{command.port},CONTROLLER://{HOST}:0",
        "log.dirs": directory,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "headrace.metrics.host": HOST,
        "headrace.metrics.port": str(metrics_port),
        "headrace.log.level": "info" if command.verbose else "warning",
    }


def _prepare(command: UpCommand, directory: str) -> "NodeConfig":
    """The node's configuration, and its directory formatted if it is not yet."""
    from headrace.config.server_properties import read_node_config
    from headrace.log.meta_properties import read_meta_properties
    from headrace.system.disk import RealDisk
    from headrace.system.host import is_port_free

    metrics_port = command.metrics_port
    if metrics_port is None:
        metrics_port = METRICS_PORT if is_port_free(HOST, METRICS_PORT) else 0
    config = read_node_config(up_properties(command, directory, metrics_port))
    if read_meta_properties(RealDisk(), directory) is None:
        _format(config)
    return config


def _format(config: "NodeConfig") -> None:
    from headrace.metadata.format import format_directories, format_plan
    from headrace.metadata.ids import encode_id, random_id
    from headrace.system.clock import SystemClock
    from headrace.system.disk import RealDisk
    from headrace.system.entropy import SystemEntropy

    entropy = SystemEntropy()
    plan = format_plan(config, encode_id(random_id(entropy)), entropy)
    for _ in format_directories(RealDisk(), SystemClock(), entropy, plan):
        continue


def _advice(command: UpCommand, reason: str) -> str:
    """What to do where that is plain."""
    if f"port {command.port}:" in reason and "in use" in reason:
        other = command.port + 100
        return (
            f"port {command.port} is taken by another process; stop that one, or choose another port: "
            f"headrace up --port {other}"
        )
    return reason


class Greeting:
    """What is printed once the node serves, and the demonstration if it was asked for."""

    __slots__ = ("_command", "_directory", "_task")

    def __init__(self, command: UpCommand, directory: str) -> None:
        self._command = command
        self._directory = directory
        self._task: asyncio.Task[None] | None = None

    def show(self, node: "Node") -> None:
        """Say where the node is and what to type next."""
        (endpoint,) = node.endpoints
        address = f"{endpoint.host}:{endpoint.port}"
        self._print(f"Headrace {__version__} is up at {address}")
        self._print(f"  data     {self._directory}")
        self._print(f"  metrics  http://{HOST}:{node.metrics_port}/metrics")
        if self._command.demo:
            self._task = asyncio.get_running_loop().create_task(self._demonstrate(node, address))
        else:
            self._say_what_next(address)

    def _say_what_next(self, address: str) -> None:
        for line in (
            f"Connect any Kafka client to {address}, for example:",
            f"  kafka-console-producer.sh --bootstrap-server {address} --topic {DEMO_TOPIC}",
            f"  kafka-console-consumer.sh --bootstrap-server {address} --topic {DEMO_TOPIC} "
            "--partition 0 --offset earliest",
            f"  kcat -b {address} -t {DEMO_TOPIC} -C -o beginning",
            "Stop with Ctrl-C.",
        ):
            self._print(line)

    async def _demonstrate(self, node: "Node", address: str) -> None:
        from headrace.cli.demo_client import DemoClient
        from headrace.errors import HeadraceError
        from headrace.system.clock import SystemClock

        (endpoint,) = node.endpoints
        try:
            async with DemoClient(endpoint.host or HOST, endpoint.port) as client:
                await client.create_topic(DEMO_TOPIC)
                sent = await client.produce(DEMO_TOPIC, "Hello from Headrace", SystemClock().now_ms())
                self._print(
                    f"produced {sent.value!r} to {DEMO_TOPIC} at offset {sent.offset} in "
                    f"{sent.seconds * 1000:.1f} ms"
                )
                seen = await client.consume(DEMO_TOPIC, sent.offset)
                self._print(
                    f"consumed {seen.value!r} from {DEMO_TOPIC} at offset {seen.offset} in "
                    f"{seen.seconds * 1000:.1f} ms"
                )
        except (HeadraceError, OSError, EOFError) as error:
            self._print(f"the demonstration failed: {error}")
        self._say_what_next(address)

    def _print(self, line: str) -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
