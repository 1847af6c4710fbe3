"""The metadata of a node that is broker and controller in one, from its directories to its image.

    metadata = await MetadataService.open(disk, clock, entropy, config)   # replays, leads, activates
    metadata.image                      # the committed image (headrace.metadata.image.MetadataImage)
    metadata.subscribe(on_change)       # on_change(delta, image) after every committed change
    epoch = await metadata.start_broker(listeners)         # registers and unfences this node's broker
    await metadata.controller.create_topics(...)           # see headrace.metadata.controller
    await metadata.tick()               # now and then: snapshots and retention of the metadata log
    await metadata.stop_broker()        # controlled shutdown: this broker leads nothing any more
    await metadata.close()

Open it before the log directories: it reads `.kafka_cleanshutdown`, which opening them removes. Between
`register_broker` and `unfence_broker` (which `start_broker` does in one go) the logs may be loaded; leading
begins with the latter. A failure of the metadata directory is raised as LogDirectoryOffline by whatever waits
for a commit, and told to the `DirectoryHealth` given; the node cannot go on then."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from headrace.config.endpoints import Address
from headrace.config.listeners import Endpoint
from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError
from headrace.log.health import DirectoryHealth
from headrace.metadata.bootstrap import activation_records, read_bootstrap
from headrace.metadata.controller import Controller
from headrace.metadata.directories import (
    NO_EPOCH,
    NodeDirectories,
    load_directories,
    previous_broker_epoch,
)
from headrace.metadata.ids import random_id
from headrace.metadata.image import MetadataImage
from headrace.metadata.snapshot import snapshot_records
from headrace.metadata.store import MetadataStore, Subscriber
from headrace.metadata.versions import supported_features
from headrace.ports import Clock, Disk, Entropy
from headrace.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from headrace.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from headrace.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
)
from headrace.protocol.messages.controller_registration import Feature as ControllerFeature
from headrace.protocol.messages.controller_registration import Listener as ControllerListener
from headrace.protocol.prefixed import encode_metadata_record
from headrace.raft.quorum import Quorum
from headrace.raft.settings import quorum_settings
from headrace.raft.snapshots import BATCH_RECORDS, SnapshotId

#: Records encoded for a snapshot before others get their turn.
_SLICE: Final = 50
_CLEAN_INTERVAL_MS: Final = 60_000


@dataclass(slots=True, frozen=True)
class SnapshotTriggers:
    """When a snapshot is due."""

    bytes_between: int
    interval_ms: int


class MetadataService:
    """Everything about metadata on one node. Make one with `MetadataService.open`."""

    __slots__ = (
        "_broker_epoch",
        "_clean_due_ms",
        "_clock",
        "_config",
        "_controller_registration",
        "_cordoned",
        "_entropy",
        "_previous_epoch",
        "_registration",
        "_snapshot_running",
        "_snapshot_time_ms",
        "_store",
        "_triggers",
        "controller",
        "directories",
        "quorum",
    )

    def __init__(
        self,
        clock: Clock,
        entropy: Entropy,
        config: NodeConfig,
        directories: NodeDirectories,
        quorum: Quorum,
        store: MetadataStore,
        previous_epoch: int,
        controller_listeners: Sequence[Endpoint],
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._config = config
        self._store = store
        self._previous_epoch = previous_epoch
        self._broker_epoch = NO_EPOCH
        self._registration: BrokerRegistrationRequest | None = None
        self._cordoned: list[UUID] = []
        self._clean_due_ms = 0
        self._snapshot_running = False
        self._snapshot_time_ms = clock.monotonic_ms()
        self._triggers = SnapshotTriggers(
            config.integer("metadata.log.max.record.bytes.between.snapshots"),
            config.integer("metadata.log.max.snapshot.interval.ms"),
        )
        self._controller_registration = _controller_registration(
            config.node_id, random_id(entropy), controller_listeners
        )
        self.directories = directories
        self.quorum = quorum
        self.controller = Controller(
            quorum, clock, entropy, config, directories.cluster_id, store.image.copy()
        )

    @classmethod
    async def open(
        cls,
        disk: Disk,
        clock: Clock,
        entropy: Entropy,
        config: NodeConfig,
        health: DirectoryHealth | None = None,
        directories: NodeDirectories | None = None,
        controller_listeners: Sequence[Endpoint] | None = None,
    ) -> "MetadataService":
        """Read this node's metadata, lead its quorum, and see that the first records are there.

        `directories` are those that can be used, if that is known already; `controller_listeners` the
        addresses that other nodes are told, with the real ports where the configuration says 0."""
        directories = directories or load_directories(disk, clock, entropy, config)
        if controller_listeners is None:
            controller_listeners = config.advertised_controller_listeners
        previous_epoch = previous_broker_epoch(disk, config)
        bootstrap = read_bootstrap(disk, config.metadata_log_dir)
        store = MetadataStore()
        settings = replace(
            quorum_settings(config, directories.metadata_directory_id),
            endpoints=tuple(
                (each.name, Address(each.host or "localhost", each.port)) for each in controller_listeners
            ),
        )
        health = health or DirectoryHealth(config.metadata_log_dir)
        quorum = Quorum.open(disk, clock, entropy, health, settings, store)
        quorum.begin_epoch()
        service = cls(
            clock, entropy, config, directories, quorum, store, previous_epoch, controller_listeners
        )
        min_insync_replicas = config.integer("min.insync.replicas")
        records = activation_records(store.image, bootstrap, store.transaction_offset, min_insync_replicas)
        await service.controller.activate(records, service._controller_registration)
        return service

    # What is known

    @property
    def image(self) -> MetadataImage:
        """The committed image."""
        return self._store.image

    @property
    def cluster_id(self) -> str:
        return self.directories.cluster_id

    @property
    def node_id(self) -> int:
        return self._config.node_id

    @property
    def broker_epoch(self) -> int:
        """The epoch of this node's broker, -1 before it has registered. A clean stop writes it down."""
        return self._broker_epoch

    def subscribe(self, subscriber: Subscriber) -> None:
        """Be told of every committed change; see `MetadataStore.subscribe`."""
        self._store.subscribe(subscriber)

    # This node's controller and broker

    async def start_broker(
        self, listeners: Sequence[Endpoint] | None = None, cordoned: Sequence[UUID] = ()
    ) -> int:
        """Register this node's broker and unfence it; returns its epoch."""
        await self.register_broker(listeners)
        await self.unfence_broker(cordoned)
        return self._broker_epoch

    async def register_broker(self, listeners: Sequence[Endpoint] | None = None) -> int:
        """Register a new incarnation of this node's broker, fenced; returns its epoch.

        `listeners` are the addresses that clients are told, with the real ports where the configuration says
        0; by default they are those of the configuration."""
        advertised = self._config.advertised_broker_listeners if listeners is None else listeners
        self._registration = BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=random_id(self._entropy),
            listeners=[
                Listener(
                    name=each.name,
                    host=each.host or "localhost",
                    port=each.port,
                    security_protocol=each.protocol,
                )
                for each in advertised
            ],
            features=[
                Feature(name=name, min_supported_version=least, max_supported_version=most)
                for name, (least, most) in supported_features().items()
            ],
            rack=self._config.rack,
            log_dirs=[
                self.directories.ids[path] for path in self._config.log_dirs if path in self.directories.ids
            ],
            previous_broker_epoch=self._previous_epoch,
        )
        reply = await self.controller.register_broker(self._registration)
        self._broker_epoch = reply.broker_epoch
        return reply.broker_epoch

    async def unfence_broker(self, cordoned: Sequence[UUID] = ()) -> None:
        """Let this node's broker lead what it may."""
        self._cordoned = list(cordoned)
        reply = await self.controller.heartbeat(self._heartbeat(cordoned_log_dirs=list(cordoned)))
        if reply.is_fenced:
            raise HeadraceError(f"broker {self.node_id} could not be unfenced")

    async def report_directories(
        self, offline: Sequence[UUID], cordoned: Sequence[UUID] | None = None
    ) -> None:
        """Tell the controller which of this broker's directories have failed, and which take no new
        partitions (None if that has not changed)."""
        if cordoned is not None:
            self._cordoned = list(cordoned)
        request = self._heartbeat(offline_log_dirs=list(offline), cordoned_log_dirs=self._cordoned)
        await self.controller.heartbeat(request)

    async def _refresh_registrations(self) -> None:
        """Tell what a raised metadata.version has made room for: this controller, and directories."""
        image, version = self.image, self.image.metadata_version
        if version.has_controller_registration and self.node_id not in image.controllers:
            await self.controller.register_controller(self._controller_registration)
        broker = image.brokers.get(self.node_id)
        if broker is None or self._registration is None or broker.epoch != self._broker_epoch:
            return
        if version.has_directories and not broker.log_dirs:
            await self.controller.register_broker(self._registration)
        if version.has_cordoned_log_dirs and broker.cordoned_log_dirs is None:
            await self.report_directories(())

    async def assign_directories(self, places: Mapping[tuple[UUID, int], UUID]) -> None:
        """Tell the controller in which directory partitions (by topic id and index) lie on this broker."""
        if not self.image.metadata_version.has_directories:
            return
        request = AssignReplicasToDirsRequest(broker_id=self.node_id, broker_epoch=self._broker_epoch)
        for directory_id in dict.fromkeys(places.values()):
            topics: dict[UUID, AssignReplicasToDirsRequestTopicData] = {}
            for (topic_id, index), place in places.items():
                if place == directory_id:
                    topic = topics.setdefault(
                        topic_id, AssignReplicasToDirsRequestTopicData(topic_id=topic_id)
                    )
                    topic.partitions.append(AssignReplicasToDirsRequestPartitionData(partition_index=index))
            request.directories.append(
                AssignReplicasToDirsRequestDirectoryData(id=directory_id, topics=list(topics.values()))
            )
        await self.controller.assign_replicas_to_dirs(request)

    async def stop_broker(self) -> None:
        """Give up leadership before a clean stop, as far as there is anybody to take it."""
        broker = self.controller.image.brokers.get(self.node_id)
        if self._broker_epoch == NO_EPOCH or broker is None or broker.epoch != self._broker_epoch:
            return
        while not (await self.controller.heartbeat(self._heartbeat(want_shut_down=True))).should_shut_down:
            # With one node every partition is without leader after the first round.
            continue

    def _heartbeat(
        self,
        *,
        want_shut_down: bool = False,
        offline_log_dirs: list[UUID] | None = None,
        cordoned_log_dirs: list[UUID] | None = None,
    ) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self.node_id,
            broker_epoch=self._broker_epoch,
            current_metadata_offset=self.image.offset,
            want_shut_down=want_shut_down,
            offline_log_dirs=offline_log_dirs or [],
            cordoned_log_dirs=cordoned_log_dirs,
        )

    # Snapshots

    async def tick(self) -> None:
        """What is to be done every second or so: snapshots, retention, registrations that lack something."""
        now_ms = self._clock.monotonic_ms()
        await self._refresh_registrations()
        if self._snapshot_is_due:
            await self.take_snapshot()
        elif now_ms < self._clean_due_ms:
            return
        self._clean_due_ms = now_ms + _CLEAN_INTERVAL_MS
        await self.quorum.clean()

    @property
    def _snapshot_is_due(self) -> bool:
        store, triggers = self._store, self._triggers
        if store.bytes_since_snapshot == 0 or self._snapshot_running:
            return False
        if store.bytes_since_snapshot >= triggers.bytes_between:
            return True
        age_ms = self._clock.monotonic_ms() - self._snapshot_time_ms
        return 0 < triggers.interval_ms <= age_ms

    async def take_snapshot(self) -> SnapshotId:
        """Write the committed image as a snapshot; the event loop is not held up."""
        image = self.image.copy()
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        self._snapshot_running = True
        self._store.bytes_since_snapshot = 0
        self._snapshot_time_ms = self._clock.monotonic_ms()
        try:
            await self.quorum.write_snapshot(snapshot_id, image.timestamp, _encoded(image))
        finally:
            self._snapshot_running = False
        return snapshot_id

    async def close(self) -> None:
        """Stop; everything appended is durable."""
        await self.quorum.close()


def _controller_registration(
    node_id: int, incarnation_id: UUID, listeners: Sequence[Endpoint]
) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        listeners=[
            ControllerListener(
                name=each.name,
                host=each.host or "localhost",
                port=each.port,
                security_protocol=each.protocol,
            )
            for each in listeners
        ],
        features=[
            ControllerFeature(name=name, min_supported_version=least, max_supported_version=most)
            for name, (least, most) in supported_features().items()
        ],
    )


async def _encoded(image: MetadataImage) -> AsyncIterator[list[bytes]]:
    """The records of a snapshot in batches, with a pause for others after every few."""
    values: list[bytes] = []
    for record, version in snapshot_records(image):
        values.append(encode_metadata_record(record, version))
        if len(values) % _SLICE == 0:
            await asyncio.sleep(0)
        if len(values) == BATCH_RECORDS:
            yield values
            values = []
    if values:
        yield values
