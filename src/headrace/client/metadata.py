"""What a client knows of a cluster: brokers, topics, partitions and their leaders. Immutable views.

A view is replaced, never changed: whoever holds one can look around in it as long as they like.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import ErrorCode
from headrace.net.addresses import Address
from headrace.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.types import NO_LEADER_EPOCH, ZERO_UUID

NO_NODE: Final = -1


class Broker(NamedTuple):
    """A broker and where it listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)

    def __str__(self) -> str:
        return f"broker {self.node_id} at {self.address}"


class Leader(NamedTuple):
    """Who leads a partition, and since which epoch; -1 where the broker does not tell epochs."""

    node_id: int
    epoch: int


@dataclass(slots=True, frozen=True)
class PartitionMetadata:
    """One partition; `error` is Kafka's code, 0 if all is well."""

    partition: int
    leader: int
    leader_epoch: int = NO_LEADER_EPOCH
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: int = ErrorCode.NONE


@dataclass(slots=True, frozen=True)
class TopicMetadata:
    """One topic. `topic_id` is all zeros where the broker does not tell ids."""

    name: str
    topic_id: UUID = ZERO_UUID
    partitions: Mapping[int, PartitionMetadata] = field(default_factory=dict)
    is_internal: bool = False
    error: int = ErrorCode.NONE

    @property
    def has_id(self) -> bool:
        return self.topic_id != ZERO_UUID


@dataclass(slots=True, frozen=True)
class Metadata:
    """All that is known, as of one moment. Topics are those in use, not all that there are."""

    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    names: Mapping[UUID, str] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = NO_NODE

    def leader_of(self, topic: str, partition: int) -> Leader | None:
        """The leader, if there is one and it is known where it listens."""
        known = self.topics.get(topic)
        found = known.partitions.get(partition) if known is not None else None
        if found is None or found.leader not in self.brokers:
            return None
        return Leader(found.leader, found.leader_epoch)

    def updated(self, reply: MetadataResponse, asked: Iterable[str] | None) -> "Metadata":
        """With what a broker replied; `asked` are the topics that it was asked for, None for all.

        A reply may be older than what is known: a partition's leader of an earlier epoch is not taken.
        """
        told = {topic.name: read_topic(topic) for topic in reply.topics if topic.name is not None}
        topics = {} if asked is None else dict(self.topics)
        for name in told.keys() if asked is None else asked:
            if name in told:
                topics[name] = _newest(self.topics.get(name), told[name])
            else:
                topics.pop(name, None)
        return Metadata(
            brokers={
                each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in reply.brokers
            },
            topics=MappingProxyType(topics),
            names=_names(topics),
            cluster_id=reply.cluster_id,
            controller_id=reply.controller_id,
        )

    def without(self, names: Iterable[str]) -> "Metadata":
        """Without topics that nobody uses any more."""
        gone = set(names)
        topics = {name: topic for name, topic in self.topics.items() if name not in gone}
        return replace(self, topics=MappingProxyType(topics), names=_names(topics))

    def with_leader(
        self, topic: str, partition: int, leader: Leader, endpoints: Iterable[Broker] = ()
    ) -> "Metadata":
        """With a leader that a broker told of in passing (KIP-951), unless a newer one is known."""
        known = self.topics.get(topic)
        found = known.partitions.get(partition) if known is not None else None
        if known is None or found is None or leader.epoch <= found.leader_epoch:
            return self
        brokers = dict(self.brokers) | {broker.node_id: broker for broker in endpoints}
        if leader.node_id not in brokers:
            return self
        newer = replace(found, leader=leader.node_id, leader_epoch=leader.epoch, error=ErrorCode.NONE)
        changed = replace(known, partitions=MappingProxyType({**known.partitions, partition: newer}))
        return replace(self, brokers=brokers, topics=MappingProxyType({**self.topics, topic: changed}))


def read_topic(topic: MetadataResponseTopic) -> TopicMetadata:
    """A topic of a reply."""
    return TopicMetadata(
        name=topic.name or "",
        topic_id=topic.topic_id,
        partitions=MappingProxyType({each.partition_index: _partition(each) for each in topic.partitions}),
        is_internal=topic.is_internal,
        error=topic.error_code,
    )


def _partition(found: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(
        partition=found.partition_index,
        leader=found.leader_id,
        leader_epoch=found.leader_epoch,
        replicas=tuple(found.replica_nodes),
        in_sync=tuple(found.isr_nodes),
        offline=tuple(found.offline_replicas),
        error=found.error_code,
    )


def _newest(known: TopicMetadata | None, told: TopicMetadata) -> TopicMetadata:
    """What was told, except for partitions of which a later leader is known already."""
    if known is None or known.topic_id != told.topic_id or told.error:
        return told
    later = {
        index: known.partitions[index]
        for index, partition in told.partitions.items()
        if index in known.partitions
        and partition.leader_epoch < known.partitions[index].leader_epoch
        # Without epochs there is nothing to compare: the reply counts.
        and partition.leader_epoch != NO_LEADER_EPOCH
    }
    if not later:
        return told
    return replace(told, partitions=MappingProxyType({**told.partitions, **later}))


def _names(topics: Mapping[str, TopicMetadata]) -> Mapping[UUID, str]:
    return {topic.topic_id: name for name, topic in topics.items() if topic.has_id}
