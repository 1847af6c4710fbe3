"""Topics that are created because somebody asks for them: the coordinators' own, and any other by default."""

from collections.abc import Iterable

from headrace.config.node import NodeConfig
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC})


def auto_creation_request(config: NodeConfig, names: Iterable[str]) -> CreateTopicsRequest:
    """The request that creates these topics as a broker of this configuration does by itself."""
    return CreateTopicsRequest(topics=[auto_creatable_topic(config, name) for name in names])


def auto_creatable_topic(config: NodeConfig, name: str) -> CreatableTopic:
    """One topic with the partitions, replicas and configuration that its name calls for."""
    if name == GROUP_TOPIC:
        return _internal(config, name, "offsets.topic", _group_configs(config))
    if name == TRANSACTION_TOPIC:
        return _internal(config, name, "transaction.state.log", _transaction_configs(config))
    if name == SHARE_TOPIC:
        return _internal(config, name, "share.coordinator.state.topic", _share_configs(config))
    # The controller's own defaults count unless this node sets some.
    partitions, factor = "num.partitions", "default.replication.factor"
    return CreatableTopic(
        name=name,
        num_partitions=config.integer(partitions) if config.is_set(partitions) else -1,
        replication_factor=config.integer(factor) if config.is_set(factor) else -1,
    )


def _internal(config: NodeConfig, name: str, prefix: str, texts: dict[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=config.integer(f"{prefix}.num.partitions"),
        replication_factor=config.integer(f"{prefix}.replication.factor"),
        configs=[CreatableTopicConfig(name=key, value=text) for key, text in texts.items()],
    )


def _group_configs(config: NodeConfig) -> dict[str, str]:
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.integer("offsets.topic.segment.bytes")),
    }


def _transaction_configs(config: NodeConfig) -> dict[str, str]:
    return {
        "unclean.leader.election.enable": "false",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": str(config.integer("transaction.state.log.min.isr")),
        "segment.bytes": str(config.integer("transaction.state.log.segment.bytes")),
    }


def _share_configs(config: NodeConfig) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": str(config.integer("share.coordinator.state.topic.segment.bytes")),
        "min.insync.replicas": str(config.integer("share.coordinator.state.topic.min.isr")),
        "retention.ms": "-1",
    }
