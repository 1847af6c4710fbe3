"""Runs what a command does against a cluster, and turns every failure into one line and an exit code."""

import asyncio
import io
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NoReturn

import typer

from headrace.cli.client_options import BOOTSTRAP_DEFAULT, BOOTSTRAP_VARIABLE, Access
from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.errors import Unreachable
from headrace.errors import HeadraceError

STANDARD_OUTPUT: Final = 1
FAILED: Final = 1
#: What a shell sees of a process that a signal has ended.
INTERRUPTED: Final = 130
TERMINATED: Final = 143
CLIENT_ID: Final = "headrace-cli"
#: Someone is waiting at the terminal: a cluster that can't be reached is given up sooner than Kafka's minute.
API_TIMEOUT_MS: Final = 10_000
TOPIC_WAIT_MS: Final = 2_000

Command = Callable[[Cluster], Awaitable[int | None]]


def run_on_cluster(access: Access, command: Command) -> NoReturn:
    """Run a command and end with the exit code that it gives, 0 unless it says otherwise."""
    require_stream(STANDARD_OUTPUT, "output")
    logging.basicConfig(format="headrace: %(message)s", level=logging.WARNING)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What brokers tell may be any text; it is printed whatever the terminal's locale.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = asyncio.run(_run(access, command))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except asyncio.CancelledError:
        raise typer.Exit(TERMINATED) from None
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Nothing may be written to the pipe at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except HeadraceError as error:
        fail(str(error))
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        fail(f"{named}{error.strerror or error}")
    raise typer.Exit(status or 0)


def require_stream(descriptor: int, name: str) -> None:
    """End if a standard stream is closed: a connection would take its number, and be taken for it."""
    try:
        os.fstat(descriptor)
    except OSError:
        fail(f"standard {name} is closed; use /dev/null if that is what is meant")


async def _run(access: Access, command: Command) -> int | None:
    task = asyncio.current_task()
    if task is not None:
        # Being told to end is as good a reason to write what was read as Ctrl-C is.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    cluster = Cluster(client_config(access, os.environ))
    try:
        await _start(cluster)
        status = await command(cluster)
        sys.stdout.flush()
        return status
    finally:
        await cluster.close()


async def _start(cluster: Cluster) -> None:
    try:
        await cluster.start()
    except Unreachable as error:
        fail(f"{error}; is the broker running (`headrace up` starts one), and is --bootstrap-server right?")


def client_config(access: Access, environment: Mapping[str, str]) -> ClientConfig:
    """The client's configuration: options go before the file, and the file before the environment."""
    properties: dict[str, str] = {
        "bootstrap.servers": environment.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP_DEFAULT,
        "client.id": CLIENT_ID,
        "default.api.timeout.ms": str(API_TIMEOUT_MS),
        "topic.wait.ms": str(TOPIC_WAIT_MS),
    }
    if access.command_config is not None:
        properties |= _read_properties(access.command_config)
    properties |= access.properties
    if access.bootstrap_server is not None:
        properties["bootstrap.servers"] = access.bootstrap_server
    return ClientConfig.from_properties(properties)


def _read_properties(path: str) -> dict[str, str]:
    from headrace.config.properties import load_properties

    with open(path, "rb") as file:
        return load_properties(file.read())


def complain(message: str) -> None:
    """Say what is wrong, and go on."""
    # Either is None if it was closed when the process started.
    if sys.stdout is not None:
        sys.stdout.flush()
    if sys.stderr is not None:
        sys.stderr.write(f"headrace: {message}\n")


def fail(message: str) -> NoReturn:
    """Say what is wrong, and end."""
    complain(message)
    raise typer.Exit(FAILED)


def require_arrow(command: str) -> None:
    """End with advice where the columns' library is not installed; a plain install is without it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        fail(f"`headrace {command}` needs pyarrow; install it with: pip install 'headrace[arrow]'")
