"""Keeps the hosted partitions in step with the metadata: a subscriber of the metadata store."""

from headrace.config.alteration import ResourceType
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.ports import Clock
from headrace.replication.image_view import assignment_of
from headrace.replication.replicas import Replicas
from headrace.types import TopicPartition


class MetadataFollower:
    """Hands every committed change to the replicas, deletions first: a topic may be made anew at once."""

    __slots__ = ("_clock", "_replicas")

    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock

    def on_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow one committed change."""
        replicas, now_ms = self._replicas, self._clock.now_ms()
        for topic_id in delta.topics_deleted:
            replicas.delete_topic(topic_id, now_ms)
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                replicas.reconfigure(resource.name)
        for topic_id, index in delta.partitions:
            topic = image.topics_by_id.get(topic_id)
            state = None if topic is None else topic.partitions.get(index)
            if topic is None or state is None:
                continue
            if replicas.node_id in state.replicas:
                replicas.assign(assignment_of(topic, index, state, replicas.node_id), now_ms)
            else:
                replicas.drop(TopicPartition(topic.name, index), topic_id, now_ms)
