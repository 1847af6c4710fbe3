"""The metadata image in the words of the data plane: what hosted partitions ask about the cluster."""

from collections.abc import Iterator, Mapping

from headrace.config.node import NodeConfig
from headrace.config.topic import effective_topic_config
from headrace.config.values import ConfigValue
from headrace.metadata.ids import UNASSIGNED_DIRECTORY
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import PartitionState, TopicState
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.cluster_view import LeaderAndEpoch, NodeAddress
from headrace.types import TopicId, TopicPartition


class ClusterImage:
    """`replication.cluster_view.ClusterView` on the committed image of this node."""

    __slots__ = ("_image", "_topic_defaults")

    def __init__(self, image: MetadataImage, config: NodeConfig) -> None:
        self._image = image
        self._topic_defaults: dict[str, ConfigValue] = config.topic_defaults()

    def take_defaults(self, config: NodeConfig) -> bool:
        """Take over what the broker gives topics that set nothing; True if that has changed."""
        former, self._topic_defaults = self._topic_defaults, config.topic_defaults()
        return former != self._topic_defaults

    def has_topic(self, topic: str) -> bool:
        """Whether there is such a topic."""
        return topic in self._image.topics

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether there is such a partition, on whatever node."""
        return self._image.partition(topic, partition) is not None

    def topic_id(self, topic: str) -> TopicId | None:
        """The id of a topic."""
        found = self._image.topics.get(topic)
        return None if found is None else found.id

    def topic_name(self, topic_id: TopicId) -> str | None:
        """The name of the topic with an id."""
        found = self._image.topics_by_id.get(topic_id)
        return None if found is None else found.name

    def leader_of(self, topic: str, partition: int) -> LeaderAndEpoch | None:
        """Who leads a partition; None if there is no such one."""
        found = self._image.partition(topic, partition)
        return None if found is None else LeaderAndEpoch(found.leader, found.leader_epoch)

    def address_of(self, node_id: int, listener: str) -> NodeAddress | None:
        """Where a broker is reached on a listener; None unless it is alive and has it."""
        broker = self._image.brokers.get(node_id)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoints.get(listener)
        return None if endpoint is None else NodeAddress(node_id, endpoint.host, endpoint.port, broker.rack)

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self._image.brokers.get(node_id)
        return broker is not None and not broker.fenced

    def topic_config(self, topic: str) -> Mapping[str, ConfigValue]:
        """The value of every topic key, defaults included; also of a topic that does not exist."""
        return effective_topic_config(self._image.topic_config(topic), self._topic_defaults)


def assignments(image: MetadataImage, node_id: int) -> Iterator[PartitionAssignment]:
    """Every partition of the cluster, in the order of topics."""
    for topic in image.topics.values():
        for index, state in topic.partitions.items():
            yield assignment(topic, index, state, node_id)


def assignment(topic: TopicState, index: int, state: PartitionState, node_id: int) -> PartitionAssignment:
    """One partition as its node is told."""
    return PartitionAssignment(
        TopicPartition(topic.name, index),
        topic.id,
        state.replicas,
        state.isr,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.directory_of(node_id) or UNASSIGNED_DIRECTORY,
    )
