"""The request that creates topics which somebody asked about, as the node's configuration wants them."""

from collections.abc import Iterable
from typing import Final

from headrace.config.node import NodeConfig
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
#: Left to the controller, whose configuration may differ.
DEFAULT: Final = -1


def creation_request(config: NodeConfig, names: Iterable[str]) -> CreateTopicsRequest:
    """A request for topics of these names."""
    return CreateTopicsRequest(
        topics=[creatable_topic(config, name) for name in names],
        timeout_ms=config.integer("request.timeout.ms"),
    )


def creatable_topic(config: NodeConfig, name: str) -> CreatableTopic:
    """One topic; the brokers' own have partitions, replicas and configurations of their own."""
    if name == OFFSETS_TOPIC:
        return _internal(
            name,
            config.integer("offsets.topic.num.partitions"),
            config.integer("offsets.topic.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": config.integer("offsets.topic.segment.bytes"),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return _internal(
            name,
            config.integer("transaction.state.log.num.partitions"),
            config.integer("transaction.state.log.replication.factor"),
            {
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": config.integer("transaction.state.log.min.isr"),
                "segment.bytes": config.integer("transaction.state.log.segment.bytes"),
            },
        )
    if name == SHARE_STATE_TOPIC:
        return _internal(
            name,
            config.integer("share.coordinator.state.topic.num.partitions"),
            config.integer("share.coordinator.state.topic.replication.factor"),
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": config.integer("share.coordinator.state.topic.segment.bytes"),
                "min.insync.replicas": config.integer("share.coordinator.state.topic.min.isr"),
                "retention.ms": -1,
            },
        )
    return CreatableTopic(
        name=name,
        num_partitions=_if_set(config, "num.partitions"),
        replication_factor=_if_set(config, "default.replication.factor"),
    )


def _if_set(config: NodeConfig, key: str) -> int:
    return config.integer(key) if config.is_set(key) else DEFAULT


def _internal(name: str, partitions: int, replicas: int, configs: dict[str, str | int]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()],
    )
