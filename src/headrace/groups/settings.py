"""What a node's configuration says about groups, in the words of this room."""

from typing import Final, NamedTuple

from headrace.config.node import NodeConfig
from headrace.groups.consumer_settings import ConsumerSettings, consumer_settings

#: A member that is not known yet can't send heartbeats, so it has this long to be taken in.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

_MS_PER_MINUTE: Final = 60_000


class GroupSettings(NamedTuple):
    """Settings that hold for all groups of a node as long as it runs."""

    metadata_max: int = 4096
    retention_ms: int = 10_080 * _MS_PER_MINUTE
    retention_check_interval_ms: int = 600_000
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    size_max: int = 2**31 - 1
    consumer: ConsumerSettings = ConsumerSettings()


def group_settings(config: NodeConfig) -> GroupSettings:
    """The settings that a configuration comes to."""
    return GroupSettings(
        metadata_max=config.integer("offset.metadata.max.bytes"),
        retention_ms=config.integer("offsets.retention.minutes") * _MS_PER_MINUTE,
        retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
        session_timeout_ms_min=config.integer("group.min.session.timeout.ms"),
        session_timeout_ms_max=config.integer("group.max.session.timeout.ms"),
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        size_max=config.integer("group.max.size"),
        consumer=consumer_settings(config),
    )
