"""The metadata image as the data plane sees it."""

from collections.abc import Callable, Iterator, Mapping

from headrace.config.node import NodeConfig
from headrace.config.topic import effective_topic_config
from headrace.config.values import ConfigValue
from headrace.metadata.ids import UNASSIGNED_DIRECTORY
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import PartitionState, TopicState
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.cluster_view import LeaderAndEpoch, NodeAddress
from headrace.types import TopicId, TopicPartition


class ImageView:
    """A `ClusterView` on the committed image. `config` gives the node's configuration as it is now."""

    __slots__ = ("_config", "image")

    def __init__(self, image: MetadataImage, config: Callable[[], NodeConfig]) -> None:
        self.image = image
        self._config = config

    def has_topic(self, topic: str) -> bool:
        return topic in self.image.topics

    def has_partition(self, topic: str, partition: int) -> bool:
        return self.image.partition(topic, partition) is not None

    def topic_id(self, topic: str) -> TopicId | None:
        found = self.image.topics.get(topic)
        return None if found is None else found.id

    def topic_name(self, topic_id: TopicId) -> str | None:
        found = self.image.topics_by_id.get(topic_id)
        return None if found is None else found.name

    def leader_of(self, topic: str, partition: int) -> LeaderAndEpoch | None:
        """None if there is no such partition."""
        state = self.image.partition(topic, partition)
        return None if state is None else LeaderAndEpoch(state.leader, state.leader_epoch)

    def address_of(self, node_id: int, listener: str) -> NodeAddress | None:
        """None unless the broker is alive and has that listener."""
        broker = self.image.brokers.get(node_id)
        if broker is None or broker.fenced:
            return None
        endpoint = broker.endpoints.get(listener)
        return None if endpoint is None else NodeAddress(node_id, endpoint.host, endpoint.port, broker.rack)

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is registered and not fenced."""
        broker = self.image.brokers.get(node_id)
        return broker is not None and not broker.fenced

    def topic_config(self, topic: str) -> Mapping[str, ConfigValue]:
        """The value of every topic key, defaults included; also of a topic that does not exist."""
        return effective_topic_config(self.image.topic_config(topic), self._config().topic_defaults())

    def assignments(self, node_id: int) -> Iterator[PartitionAssignment]:
        """Every partition that a node has a replica of."""
        for topic in self.image.topics.values():
            for index, state in topic.partitions.items():
                if node_id in state.replicas:
                    yield assignment_of(topic, index, state, node_id)


def assignment_of(topic: TopicState, index: int, state: PartitionState, node_id: int) -> PartitionAssignment:
    """A partition of the image in the terms of this room."""
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
