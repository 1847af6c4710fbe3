"""Keeps what this node hosts, and the configuration it runs with, in step with the committed metadata."""

from headrace.config.alteration import ResourceType
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.ports import Clock
from headrace.replication.replicas import Replicas
from headrace.server.cluster_image import assignment
from headrace.server.live_config import LiveConfig


class MetadataFollower:
    """A subscriber of the metadata. What it calls does not wait, nor fail because of one partition."""

    __slots__ = ("_clock", "_config", "_replicas")

    def __init__(self, replicas: Replicas, config: LiveConfig, clock: Clock) -> None:
        self._replicas = replicas
        self._config = config
        self._clock = clock

    def __call__(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow one committed change."""
        if delta.configs:
            self._follow_configs(delta, image)
        if delta.topics_deleted or delta.partitions:
            self._follow_topics(delta, image)

    def _follow_configs(self, delta: MetadataDelta, image: MetadataImage) -> None:
        own = ("", str(self._config.static.node_id))
        if any(each.type == ResourceType.BROKER and each.name in own for each in delta.configs):
            self._config.refresh(image)
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                self._replicas.reconfigure(resource.name)

    def _follow_topics(self, delta: MetadataDelta, image: MetadataImage) -> None:
        now_ms = self._clock.now_ms()
        for topic_id in delta.topics_deleted:
            self._replicas.delete_topic(topic_id, now_ms)
        for topic_id, index in delta.partitions:
            topic = image.topics_by_id[topic_id]
            state = topic.partitions[index]
            self._replicas.assign(assignment(topic, index, state, self._replicas.node_id), now_ms)
