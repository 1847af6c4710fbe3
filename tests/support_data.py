"""A small node for tests of the data plane: real logs on a memory disk, and metadata made up as needed."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from headrace.api.context import RequestContext
from headrace.api.fetch_sessions import FetchSessions
from headrace.api.services import Api, Services
from headrace.config.node import NodeConfig
from headrace.config.topic import effective_topic_config
from headrace.config.values import ConfigValue
from headrace.log.log_directory import DirectoryPorts
from headrace.metadata.ids import UNASSIGNED_DIRECTORY
from headrace.metadata.image import MetadataImage
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.cluster_view import LeaderAndEpoch, NodeAddress
from headrace.replication.log_directories import DirectoryPlan
from headrace.replication.partition import Partition
from headrace.replication.producer_ids import ProducerIdBlock, ProducerIds
from headrace.replication.replicas import Replicas
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.workers import InlineWorkers
from headrace.types import TopicId, TopicPartition

NODE = 1
LISTENER = "PLAINTEXT"
TOPIC = "topic"
NOW_MS = 1_700_000_000_000
PROPERTIES = {"node.id": str(NODE), "process.roles": "broker", "controller.listener.names": "CONTROLLER"}
FIRST_DIRECTORY, SECOND_DIRECTORY = "/logs/a", "/logs/b"
IDS = {FIRST_DIRECTORY: UUID(int=1001), SECOND_DIRECTORY: UUID(int=1002)}


def topic_id_of(name: str, incarnation: int = 0) -> UUID:
    """A topic's id: the same for the same name, another one if the topic is made anew."""
    return UUID(bytes=name.encode().ljust(15, b"_")[:15] + bytes([incarnation]))


class FakeCluster:
    """A `ClusterView` whose content tests write down."""

    def __init__(self) -> None:
        self.assignments: dict[TopicPartition, PartitionAssignment] = {}
        self.overrides: dict[str, dict[str, str]] = {}
        self.addresses = {NODE: NodeAddress(NODE, "localhost", 9092)}
        self.defaults: dict[str, ConfigValue] = {}

    def has_topic(self, topic: str) -> bool:
        return any(name.topic == topic for name in self.assignments)

    def has_partition(self, topic: str, partition: int) -> bool:
        return TopicPartition(topic, partition) in self.assignments

    def topic_id(self, topic: str) -> TopicId | None:
        found = (each.topic_id for name, each in self.assignments.items() if name.topic == topic)
        return next(found, None)

    def topic_name(self, topic_id: TopicId) -> str | None:
        found = (name.topic for name, each in self.assignments.items() if each.topic_id == topic_id)
        return next(found, None)

    def leader_of(self, topic: str, partition: int) -> LeaderAndEpoch | None:
        found = self.assignments.get(TopicPartition(topic, partition))
        return None if found is None else LeaderAndEpoch(found.leader, found.leader_epoch)

    def address_of(self, node_id: int, listener: str) -> NodeAddress | None:
        return self.addresses.get(node_id) if listener == LISTENER else None

    def is_alive(self, node_id: int) -> bool:
        return node_id in self.addresses

    def topic_config(self, topic: str) -> Mapping[str, ConfigValue]:
        return effective_topic_config(self.overrides.get(topic, {}), self.defaults)


class NotedEvents:
    """`ReplicaEvents` that remember what was told."""

    def __init__(self) -> None:
        self.assigned: list[tuple[TopicId, int, UUID]] = []
        self.failed: list[str] = []
        self.fatal: list[str] = []

    def on_assigned(self, topic_id: TopicId, partition: int, directory_id: UUID) -> None:
        self.assigned.append((topic_id, partition, directory_id))

    def on_directory_failed(self, path: str, directory_id: UUID) -> None:
        assert directory_id == IDS[path]
        self.failed.append(path)

    def on_fatal(self, reason: str) -> None:
        self.fatal.append(reason)


class FakeConnection:
    """A connection that only notes why it was closed."""

    def __init__(self) -> None:
        self.closed_because: str | None = None
        self.is_held = False

    def close(self, reason: str) -> None:
        self.closed_because = reason

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False


class FakeController:
    """Hands out blocks of producer ids."""

    def __init__(self, block_size: int = 1000) -> None:
        self.block_size = block_size
        self.blocks = 0

    async def allocate(self) -> ProducerIdBlock:
        await asyncio.sleep(0)
        self.blocks += 1
        return ProducerIdBlock((self.blocks - 1) * self.block_size, self.block_size)


@dataclass
class DataNode:
    """Everything a handler needs, and shortcuts for what tests do all the time."""

    disk: MemoryDisk
    clock: ManualClock
    cluster: FakeCluster
    events: NotedEvents
    replicas: Replicas
    services: Services
    connection: FakeConnection = field(default_factory=FakeConnection)

    def assign(
        self,
        topic: str = TOPIC,
        partition: int = 0,
        *,
        topic_id: UUID | None = None,
        leader: int = NODE,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        replicas: tuple[int, ...] = (NODE,),
        isr: tuple[int, ...] | None = None,
        directory: UUID = UNASSIGNED_DIRECTORY,
        config: dict[str, str] | None = None,
    ) -> Partition | None:
        """Put a partition into the metadata, and let the node follow."""
        if config is not None:
            self.cluster.overrides[topic] = config
        assignment = PartitionAssignment(
            TopicPartition(topic, partition),
            topic_id or topic_id_of(topic),
            replicas,
            replicas if isr is None else isr,
            leader,
            leader_epoch,
            partition_epoch,
            directory,
        )
        self.cluster.assignments[assignment.partition] = assignment
        self.replicas.assign(assignment, self.clock.now_ms())
        return self.replicas.get(topic, partition)

    def partition(self, topic: str = TOPIC, index: int = 0) -> Partition:
        found = self.replicas.get(topic, index)
        assert found is not None
        return found

    def delete_topic(self, topic: str = TOPIC) -> None:
        """Take a topic out of the metadata, and let the node follow."""
        topic_id = self.cluster.topic_id(topic)
        assert topic_id is not None
        for name in [name for name in self.cluster.assignments if name.topic == topic]:
            del self.cluster.assignments[name]
        self.replicas.delete_topic(topic_id, self.clock.now_ms())

    def configure(self, config: dict[str, str], topic: str = TOPIC) -> None:
        self.cluster.overrides[topic] = config
        self.replicas.reconfigure(topic)

    def append(self, count: int = 1, topic: str = TOPIC, index: int = 0, **fields: Any) -> int:
        """Append records as a producer would; returns the first offset."""
        return (
            self.partition(topic, index)
            .append(bytearray(batch(count, **fields)), 1, self.clock.now_ms())
            .first_offset
        )

    def context(self, api: Api, version: int, client_id: str | None = "client") -> RequestContext:
        return RequestContext(api.key, version, client_id, LISTENER, "127.0.0.1", self.connection)

    def call(self, api: Api, request: Message, version: int | None = None) -> Any:
        """What the handler returns for a request that went over the wire: a reply, or something to await."""
        spoken = api.versions[1] if version is None else version
        received = decode(api.request, spoken, bytearray(encode(request, spoken)))
        return api.handle(self.services, self.context(api, spoken), received)

    async def ask(self, api: Api, request: Message, version: int | None = None) -> Any:
        """The reply, whether it has to be awaited or not."""
        reply = self.call(api, request, version)
        return await reply if isinstance(reply, Awaitable) else reply

    async def restart(self, *, cleanly: bool = True) -> "DataNode":
        """Another node on the same disk, with the same metadata."""
        if cleanly:
            await self.replicas.close(self.clock.now_ms())
        return await start_node(self.disk, self.clock, self.cluster)


async def start_node(
    disk: MemoryDisk | None = None,
    clock: ManualClock | None = None,
    cluster: FakeCluster | None = None,
    *,
    directories: tuple[str, ...] = (FIRST_DIRECTORY,),
    properties: dict[str, str] | None = None,
    slots: int = 1000,
) -> DataNode:
    """A node with these log directories that hosts what the cluster assigns to it."""
    disk, clock, cluster = disk or MemoryDisk(), clock or ManualClock(NOW_MS), cluster or FakeCluster()
    events = NotedEvents()
    plan = DirectoryPlan({path: IDS[path] for path in directories})
    ports = DirectoryPorts(disk, SeededEntropy(), InlineWorkers(), lambda: disk)
    replicas = Replicas(NODE, cluster, plan, ports, events, clock)
    await replicas.open(cluster.assignments.values(), clock.now_ms())
    services = Services(
        config=NodeConfig(PROPERTIES | (properties or {})),
        clock=clock,
        image=MetadataImage(),
        controller=cast(Any, None),
        replicas=replicas,
        fetch_sessions=FetchSessions(SeededEntropy(), slots),
        producer_ids=ProducerIds(FakeController().allocate),
    )
    return DataNode(disk, clock, cluster, events, replicas, services)


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    keys: list[bytes | None] | None = None,
    timestamp: int = NOW_MS,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """One batch as a producer sends it."""
    listed: list[bytes | None] = keys if keys is not None else [b"key"] * count
    return build_batch(
        [NewRecord(timestamp + index, key, value) for index, key in enumerate(listed)],
        compression=compression,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
