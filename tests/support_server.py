"""A node in the test's own process, for what only its inside shows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter

from headrace.config.headrace_keys import headrace_settings
from headrace.config.server_properties import load_server_properties
from headrace.server.data_directories import find_directories, lock_directories
from headrace.server.node import Node, NodePorts
from headrace.server.start_phases import StartPhases
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk
from headrace.system.entropy import SystemEntropy
from headrace.system.pace import SystemPace
from headrace.testing.workers import InlineWorkers
from tests.support_node import format_data, node_properties, write_properties


@asynccontextmanager
async def inner_node(directory: Path, **overrides: str) -> AsyncIterator[Node]:
    """A node that serves; it is stopped cleanly at the end. Keywords are keys with underscores for dots."""
    properties_path = _prepared(directory, {key.replace("_", "."): text for key, text in overrides.items()})
    disk, clock, entropy = RealDisk(), SystemClock(), SystemEntropy()
    config = load_server_properties(str(properties_path), (), disk, {})
    fatal: list[str] = []
    with ExitStack() as closing:
        closing.callback(disk.close)
        directories = find_directories(config, disk, entropy, clock)
        lock_directories(directories, closing)
        ports = NodePorts(disk, clock, entropy, InlineWorkers(), RealDisk, SystemPace, lambda: "localhost")
        phases = StartPhases(perf_counter)
        node = Node(config, headrace_settings(config), directories, ports, fatal.append, phases)
        async with AsyncExitStack() as stack:
            await node.start(stack)
            yield node
            assert not fatal
    # Transports that were closed are gone in the loop's next round.
    await asyncio.sleep(0)


def _prepared(directory: Path, overrides: dict[str, str]) -> Path:
    """The properties of a node whose directory is formatted, now or at an earlier start."""
    path = directory / "server.properties"
    directory.mkdir(parents=True, exist_ok=True)
    write_properties(path, node_properties(directory / "data", 0, overrides))
    if not (directory / "data").exists():
        format_data(path)
    return path
