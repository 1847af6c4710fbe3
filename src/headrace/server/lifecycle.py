"""The process around a node: it is refused or started, stopped by a signal, and ended with an exit code."""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from time import perf_counter
from typing import Final

from headrace import __version__
from headrace.api.table import BROKER_APIS
from headrace.config.headrace_keys import HeadraceSettings, headrace_settings
from headrace.config.node import NodeConfig
from headrace.config.server_properties import inert_keys, warnings
from headrace.config.unsupported import unsupported_keys
from headrace.server.data_directories import DataDirectories, find_directories, lock_directories
from headrace.server.event_loop import loop_factory, settle_collector
from headrace.server.log_lines import start_logging
from headrace.server.node import Node, NodePorts
from headrace.server.refusals import StartRefused
from headrace.server.start_phases import StartPhases
from headrace.server.warm_up import WarmUp
from headrace.system.clock import SystemClock
from headrace.system.disk import RealDisk
from headrace.system.entropy import SystemEntropy
from headrace.system.host import local_host_name
from headrace.system.pace import SystemPace
from headrace.system.process import exit_at_once, raise_descriptor_limit, spare_descriptors
from headrace.system.workers import ProcessWorkers

LOOP_VARIABLE: Final = "HEADRACE_LOOP"
#: Processes for batches that take long to check; they are there only when needed, and hold up nothing else.
VALIDATORS: Final = 2
STOP_SECONDS_MAX: Final = 60.0
STOPPED: Final = 0
FAILED: Final = 1

logger: Final = logging.getLogger("headrace.server")

OnReady = Callable[[Node], None]


def run_node(
    config: NodeConfig,
    *,
    properties_path: str = "server.properties",
    environment: Mapping[str, str],
    on_ready: OnReady | None = None,
) -> int:
    """Run a node until it is stopped; the exit code. HeadraceError if it can't start."""
    phases = StartPhases(perf_counter)
    own = headrace_settings(config)
    start_logging(own.log_level)
    check_support(config)
    for warning in warnings(config):
        logger.warning("%s", warning)
    for name in inert_keys(config):
        logger.warning("configuration key %s has no effect in Headrace", name)
    new_loop = loop_factory(environment.get(LOOP_VARIABLE) or own.event_loop)
    raise_descriptor_limit()
    disk, clock, entropy = RealDisk(), SystemClock(), SystemEntropy()
    with ExitStack() as stack:
        stack.callback(disk.close)
        directories = find_directories(config, disk, entropy, clock, properties_path)
        lock_directories(directories, stack)
        process = NodeProcess(config, own, directories, disk, phases, on_ready)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(process.run())


def check_support(config: NodeConfig) -> None:
    """Refuse a configuration that asks for more protection than there is, or for another kind of node."""
    unsupported = unsupported_keys(config)
    if unsupported:
        raise StartRefused("; ".join(map(str, unsupported)))
    if config.roles != {"broker", "controller"}:
        roles = ",".join(sorted(config.roles))
        raise StartRefused(
            f"process.roles is {roles}: Headrace runs nodes that are broker and controller in one, so it has "
            "to be broker,controller"
        )


class NodeProcess:
    """A node and the signals that end it."""

    __slots__ = (
        "_config",
        "_directories",
        "_disk",
        "_failure",
        "_on_ready",
        "_own",
        "_phases",
        "_stopping",
    )

    def __init__(
        self,
        config: NodeConfig,
        own: HeadraceSettings,
        directories: DataDirectories,
        disk: RealDisk,
        phases: StartPhases,
        on_ready: OnReady | None = None,
    ) -> None:
        self._config = config
        self._own = own
        self._directories = directories
        self._disk = disk
        self._phases = phases
        self._on_ready = on_ready
        self._failure: str | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Start, serve until told to stop or something vital fails, and stop; the exit code."""
        self._watch_signals()
        stack = AsyncExitStack()
        try:
            node = await self._start(stack)
            self._report(node)
            WarmUp(BROKER_APIS).begin(asyncio.get_running_loop())
            if self._on_ready is not None:
                self._on_ready(node)
            await self._stopping.wait()
        except BaseException:
            # A node that did not start has nothing to tell but why.
            await stack.aclose()
            raise
        await self._stop(stack)
        return FAILED if self._failure is not None else STOPPED

    async def _start(self, stack: AsyncExitStack) -> Node:
        at_once = max(map(self._config.integer, ("log.cleaner.threads", "num.recovery.threads.per.data.dir")))
        workers = await stack.enter_async_context(ProcessWorkers(max(1, at_once)))
        ports = NodePorts(
            self._disk,
            SystemClock(),
            SystemEntropy(),
            workers,
            RealDisk,
            SystemPace,
            local_host_name,
            spare_descriptors(self._disk.descriptor_limit),
            await stack.enter_async_context(ProcessWorkers(VALIDATORS)),
        )
        node = Node(self._config, self._own, self._directories, ports, self._on_fatal, self._phases)
        await node.start(stack)
        settle_collector()
        return node

    def _report(self, node: Node) -> None:
        addresses = ", ".join(map(str, node.endpoints))
        if node.metrics_port is not None:
            host = self._own.metrics_host or "localhost"
            logger.info("metrics: http://%s:%d/metrics", host, node.metrics_port)
        logger.info(
            "Headrace %s ready: %s, %d partitions, %.2f s",
            __version__,
            addresses,
            node.partitions,
            self._phases.total_seconds,
        )

    async def _stop(self, stack: AsyncExitStack) -> None:
        """Close everything in reverse order. What hangs is cut off: the next start puts it right."""
        begun = perf_counter()
        asyncio.get_running_loop().call_later(STOP_SECONDS_MAX, self._give_up)
        await stack.aclose()
        logger.info("stopped in %.2f s", perf_counter() - begun)

    def _give_up(self) -> None:
        logger.error("stopping takes longer than %g s: the process ends as it is", STOP_SECONDS_MAX)
        exit_at_once(FAILED)

    # Reasons to stop

    def _on_fatal(self, reason: str) -> None:
        if self._failure is None:
            self._failure = reason
            logger.critical("the node stops: %s", reason)
        self._stopping.set()

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # A process that was told to outlive its terminal goes on when that is closed.
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._stopping.is_set() and number is signal.SIGINT:
            logger.warning("stopping at once on the second %s; the next start checks the logs", number.name)
            exit_at_once(FAILED)
        logger.info("stopping on %s", number.name)
        self._stopping.set()
