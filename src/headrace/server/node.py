"""One node put together: quorum of one, controller, broker, listeners; started in order, stopped in reverse.

Nobody is served before everything is there, and nothing is closed before the last reply is gone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Final
from uuid import UUID

from headrace.api.dispatch import Dispatch
from headrace.api.dynamic_config import refresh_config
from headrace.api.fetch_sessions import FetchSessions
from headrace.api.services import Services
from headrace.api.table import apis_of
from headrace.config.headrace_keys import HeadraceSettings
from headrace.config.listeners import Endpoint
from headrace.config.node import NodeConfig
from headrace.log.health import DirectoryHealth
from headrace.log.log_directory import DirectoryPorts
from headrace.log.log_errors import LogDirectoryOffline
from headrace.metadata.ids import LOST_DIRECTORY
from headrace.metadata.service import MetadataService
from headrace.metrics.exposition import CONTENT_TYPE, render
from headrace.metrics.registry import Registry
from headrace.net.http import HttpEndpoint, Page
from headrace.net.service import Service
from headrace.ports import Clock, Disk, Entropy, Pace, Workers
from headrace.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from headrace.replication.housekeeping import Housekeeping, PeriodicTask
from headrace.replication.log_directories import DirectoryPlan
from headrace.replication.log_settings import producer_state_settings
from headrace.replication.producer_ids import ProducerIdBlock, ProducerIds
from headrace.replication.replicas import Replicas
from headrace.server.background import Background
from headrace.server.cluster_image import ClusterImage, assignments
from headrace.server.data_directories import DataDirectories
from headrace.server.groups import start_groups
from headrace.server.listeners import Listeners, node_network
from headrace.server.metadata_follower import MetadataFollower, log_changes
from headrace.server.metrics_binding import MeasuredParts, bind_metrics
from headrace.server.node_events import NodeEvents
from headrace.server.recovery_workers import RecoveryWorkers
from headrace.server.start_phases import StartPhases
from headrace.server.transactions import start_transactions

STOP_GRACE_MS: Final = 3_000
LEAVE_SECONDS_MAX: Final = 10.0
METADATA_TICK_SECONDS: Final = 1.0
METERS_TICK_SECONDS: Final = 5.0

logger: Final = logging.getLogger("headrace.server")


@dataclass(slots=True, frozen=True)
class NodePorts:
    """The world as a node sees it. The factories are picklable, for worker processes."""

    disk: Disk
    clock: Clock
    entropy: Entropy
    workers: Workers
    open_disk: Callable[[], Disk]
    open_pace: Callable[[], Pace]
    local_host_name: Callable[[], str]
    spare_descriptors: int | None = None
    validators: Workers | None = None


class Node:
    """A running node. `start` it on a stack; leaving the stack stops it cleanly."""

    __slots__ = (
        "_background",
        "_config",
        "_directories",
        "_dispatches",
        "_own",
        "_phases",
        "_ports",
        "_stack",
        "cluster",
        "endpoints",
        "housekeeping",
        "listeners",
        "metadata",
        "metrics_port",
        "network",
        "on_fatal",
        "registry",
        "replicas",
        "services",
    )

    def __init__(
        self,
        config: NodeConfig,
        own: HeadraceSettings,
        directories: DataDirectories,
        ports: NodePorts,
        on_fatal: Callable[[str], None],
        phases: StartPhases,
    ) -> None:
        self._config = config
        self._own = own
        self._directories = directories
        self._ports = ports
        self._phases = phases
        self.on_fatal = on_fatal
        self._dispatches: dict[bool, Dispatch] = {}
        self.endpoints: list[Endpoint] = []
        self.metrics_port: int | None = None

    @property
    def partitions(self) -> int:
        """How many partitions this node hosts."""
        return sum(len(topic.partitions) for topic in self.replicas.topics.values())

    async def start(self, stack: AsyncExitStack) -> None:
        """Start everything, or raise; what was started is stopped when the stack is left."""
        self._open_listeners(stack)
        await self._open_metadata(stack)
        self._background = await stack.enter_async_context(Background())
        await self._open_logs(stack)
        self._join_parts()
        start_groups(self.services, self._ports.entropy, stack)
        start_transactions(self.services, self._background, stack)
        await self._start_metrics(stack)
        await self._become_leader(stack)
        self._start_tasks(stack)
        self._serve(stack)

    # Starting, step by step

    def _open_listeners(self, stack: AsyncExitStack) -> None:
        """Take the addresses first: most starts that fail do so because somebody else has the port."""
        config = self._config
        self.network = node_network(
            asyncio.get_running_loop(), self._ports.clock, config, self._ports.spare_descriptors
        )
        self.listeners = Listeners(self.network)
        stack.callback(self.listeners.release)
        self.listeners.open(config, config.listeners)
        self.endpoints = self.listeners.bound(config.advertised_broker_listeners, self._ports.local_host_name)

    async def _open_metadata(self, stack: AsyncExitStack) -> None:
        config, ports = self._config, self._ports
        controllers = self.listeners.bound(config.advertised_controller_listeners, ports.local_host_name)
        self.metadata = await MetadataService.open(
            ports.disk,
            ports.clock,
            ports.entropy,
            config,
            DirectoryHealth(config.metadata_log_dir, self._on_metadata_failed),
            self._directories.usable,
            controllers,
        )
        stack.push_async_callback(self._close_metadata)
        self._phases.done(
            "metadata log replayed to offset %d in epoch %d",
            self.metadata.image.offset,
            self.metadata.quorum.epoch,
        )
        await self.metadata.register_broker(self.endpoints)
        self._phases.done("broker %d registered with epoch %d", config.node_id, self.metadata.broker_epoch)

    def _on_metadata_failed(self, error: LogDirectoryOffline) -> None:
        self.on_fatal(f"the metadata log has failed: {error.message}")

    async def _close_metadata(self) -> None:
        try:
            await self.metadata.close()
        except LogDirectoryOffline as error:
            logger.error("the metadata log was not closed: %s", error.message)

    async def _open_logs(self, stack: AsyncExitStack) -> None:
        config, ports = self._config, self._ports
        self.cluster = ClusterImage(self.metadata.image, config)
        usable = self._directories.usable.ids
        plan = DirectoryPlan(
            ids={path: usable.get(path, LOST_DIRECTORY) for path in config.log_dirs},
            cordoned=config.cordoned_log_dirs,
            unusable=dict(self._directories.offline),
        )
        self.replicas = Replicas(
            config.node_id,
            self.cluster,
            plan,
            DirectoryPorts(
                ports.disk, ports.entropy, RecoveryWorkers(ports.disk, ports.workers), ports.open_disk
            ),
            NodeEvents(self.metadata, self._background, self.on_fatal),
            ports.clock,
            producer_settings=producer_state_settings(config),
            recoveries_at_once=config.integer("num.recovery.threads.per.data.dir"),
            max_transaction_timeout_ms=config.integer("transaction.max.timeout.ms"),
        )
        stack.push_async_callback(self._close_logs)
        await self.replicas.open(assignments(self.metadata.image, config.node_id), ports.clock.now_ms())
        self._phases.done("%d partitions opened", self.partitions)

    async def _close_logs(self) -> None:
        await self.replicas.close(self._ports.clock.now_ms(), self.metadata.broker_epoch)

    def _join_parts(self) -> None:
        """Hand everybody what they work with, and have them told of changes."""
        config, ports = self._config, self._ports
        self.registry = Registry(ports.clock.monotonic_ms())
        self.services = Services(
            config=config,
            clock=ports.clock,
            image=self.metadata.image,
            controller=self.metadata.controller,
            replicas=self.replicas,
            fetch_sessions=FetchSessions(
                ports.entropy, config.integer("max.incremental.fetch.session.cache.slots")
            ),
            producer_ids=ProducerIds(self._allocate_producer_ids),
            metrics=self.registry,
            cluster_id=self.metadata.cluster_id,
            static_config=config,
            workers=ports.validators,
        )
        self.housekeeping = Housekeeping(
            self.replicas,
            lambda: self.services.config,
            ports.clock,
            ports.disk,
            ports.workers,
            ports.open_disk,
            ports.open_pace,
        )
        self._dispatches = {
            is_controller: Dispatch(self.services, apis_of(is_controller), perf_counter_ns)
            for is_controller in (False, True)
        }
        self.services.on_config_change += [log_changes, self._on_config_change]
        refresh_config(self.services)
        self.metadata.subscribe(MetadataFollower(self.services))

    async def _allocate_producer_ids(self) -> ProducerIdBlock:
        reply = await self.metadata.controller.allocate_producer_ids(
            AllocateProducerIdsRequest(
                broker_id=self._config.node_id, broker_epoch=self.metadata.broker_epoch
            )
        )
        return ProducerIdBlock(reply.producer_id_start, reply.producer_id_len)

    async def _start_metrics(self, stack: AsyncExitStack) -> None:
        if self._own.metrics_port is None:
            return
        parts = MeasuredParts(
            self.network,
            {"broker": self._dispatches[False], "controller": self._dispatches[True]},
            self.services,
            self.metadata,
            self.housekeeping,
        )
        bind_metrics(self.registry, parts)
        pages = {"/metrics": Page(CONTENT_TYPE, lambda: render(self.registry))}
        endpoint = HttpEndpoint(self._own.metrics_host, self._own.metrics_port, pages)
        await endpoint.start()
        stack.push_async_callback(endpoint.stop)
        self.metrics_port = endpoint.port

    async def _become_leader(self, stack: AsyncExitStack) -> None:
        await self.metadata.unfence_broker(self._cordoned_ids(self.services.config))
        stack.push_async_callback(self._leave)
        leading = sum(partition.is_leader for partition in self.replicas.partitions())
        self._phases.done("broker unfenced, leading %d partitions", leading)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await self.metadata.stop_broker()
        except (LogDirectoryOffline, TimeoutError) as error:
            logger.error("the broker could not be taken out of the cluster: %s", error or "it took too long")

    def _start_tasks(self, stack: AsyncExitStack) -> None:
        clock = self._ports.clock
        # Nobody may work on logs any more when they are closed.
        stack.push_async_callback(self._background.quiesce)
        for task in self.housekeeping.schedule():
            self._background.every(task.name, _seconds(task), _run_now(task, clock), task.delay_ms() / 1000)
        self._background.every("metadata snapshot", lambda: METADATA_TICK_SECONDS, self.metadata.tick)
        if self.metrics_port is not None:
            self._background.every(
                "rates", lambda: METERS_TICK_SECONDS, lambda: self.registry.advance(clock.monotonic_ms())
            )

    def _serve(self, stack: AsyncExitStack) -> None:
        stack.callback(self.services.auto_topics.cancel)
        stack.push_async_callback(self.network.stop, STOP_GRACE_MS)
        self.listeners.start(self._service_of)

    def _service_of(self, listener: str) -> Service:
        return self._dispatches[listener in self._config.controller_listener_names]

    # Changes at run time

    def _on_config_change(self, old: NodeConfig, new: NodeConfig) -> None:
        if self.cluster.take_defaults(new):
            self.replicas.reconfigure_all()
        self.housekeeping.reconfigure()
        self.listeners.reconfigure(old, new)
        if old.cordoned_log_dirs != new.cordoned_log_dirs:
            self.replicas.directories.cordoned = new.cordoned_log_dirs
            self._background.once("telling of cordoned log directories", self._tell_cordoned)

    async def _tell_cordoned(self) -> None:
        await self.metadata.report_directories((), self._cordoned_ids(self.services.config))

    def _cordoned_ids(self, config: NodeConfig) -> list[UUID]:
        ids = self._directories.usable.ids
        return [ids[path] for path in config.cordoned_log_dirs if path in ids]


def _seconds(task: PeriodicTask) -> Callable[[], float]:
    return lambda: task.interval_ms() / 1000


def _run_now(task: PeriodicTask, clock: Clock) -> Callable[[], Awaitable[object]]:
    return lambda: task.run(clock.now_ms())
