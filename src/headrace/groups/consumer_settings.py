"""What a node's configuration says about consumer groups, in the words of this room."""

from typing import Final, NamedTuple

from headrace.config.node import NodeConfig
from headrace.errors import HeadraceError

#: Assignors by all names that configurations have for them.
_ASSIGNORS: Final = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


class ConsumerSettings(NamedTuple):
    """Settings that hold for all consumer groups of a node as long as it runs."""

    size_max: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first one is used where members name none."""
    can_upgrade: bool = True
    """Whether a classic group becomes a consumer group when such a member joins."""
    can_downgrade: bool = True
    """Whether a consumer group becomes a classic one when only classic members are left."""
    regex_refresh_interval_ms: int = 600_000

    @property
    def admits_classic_members(self) -> bool:
        """Whether members of both protocols may be in one group."""
        return self.can_upgrade or self.can_downgrade


def consumer_settings(config: NodeConfig) -> ConsumerSettings:
    """The settings that a configuration comes to."""
    policy = (config.text("group.consumer.migration.policy") or "").lower()
    return ConsumerSettings(
        size_max=config.integer("group.consumer.max.size"),
        assignors=tuple(_assignor(name) for name in config.items("group.consumer.assignors")),
        can_upgrade=policy in ("upgrade", "bidirectional"),
        can_downgrade=policy in ("downgrade", "bidirectional"),
        regex_refresh_interval_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
    )


def _assignor(name: str) -> str:
    found = _ASSIGNORS.get(name)
    if found is None:
        raise HeadraceError(f"group.consumer.assignors names {name!r}; there are uniform and range")
    return found
