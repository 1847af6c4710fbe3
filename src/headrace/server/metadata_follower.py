"""Keeps what this node hosts, and the configuration it runs with, in step with the committed metadata."""

import logging
from typing import Final

from headrace.api.dynamic_config import concerns_node, refresh_config
from headrace.api.services import Services
from headrace.config.alteration import ResourceType
from headrace.config.node import NodeConfig
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.server.cluster_image import assignment

logger: Final = logging.getLogger("headrace.server")


class MetadataFollower:
    """A subscriber of the metadata. What it calls does not wait, nor fail because of one partition."""

    __slots__ = ("_services",)

    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow one committed change."""
        if delta.configs:
            self._follow_configs(delta)
        if delta.topics_deleted or delta.partitions:
            self._follow_topics(delta, image)
        if self._services.groups is not None:
            self._services.groups.on_new_metadata_image(delta, image)

    def _follow_configs(self, delta: MetadataDelta) -> None:
        if concerns_node(self._services, delta):
            refresh_config(self._services)
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                self._services.replicas.reconfigure(resource.name)

    def _follow_topics(self, delta: MetadataDelta, image: MetadataImage) -> None:
        replicas, now_ms = self._services.replicas, self._services.clock.now_ms()
        for topic_id in delta.topics_deleted:
            replicas.delete_topic(topic_id, now_ms)
        for topic_id, index in delta.partitions:
            topic = image.topics_by_id[topic_id]
            replicas.assign(assignment(topic, index, topic.partitions[index], replicas.node_id), now_ms)


def log_changes(old: NodeConfig, new: NodeConfig) -> None:
    """Say which keys have another value now."""
    before, after = old.loggable(), new.loggable()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            logger.info("configuration %s is now %s", name, after.get(name, "back to its default"))
