"""A group's configuration: what may be set, and what holds in the end."""

from collections.abc import Mapping

from headrace.config.group_bounds import BOUNDED, KINDS, Bounded
from headrace.config.keys.group import GROUP_KEYS
from headrace.config.node import NodeConfig
from headrace.config.refusals import InvalidConfig
from headrace.config.values import ConfigValue


def effective_group_config(overrides: Mapping[str, str], broker: NodeConfig) -> dict[str, ConfigValue]:
    """Every key's value as set: the group's own, else the broker's, else Kafka's."""
    values = {name: key.default for name, key in GROUP_KEYS.items()} | broker.group_defaults()
    for name, text in overrides.items():
        if name in GROUP_KEYS:
            values[name] = GROUP_KEYS[name].parse(text)
    return values


def bounded_group_config(overrides: Mapping[str, str], broker: NodeConfig) -> dict[str, ConfigValue]:
    """Every key's value as it is applied: what was set before the broker's bounds grew tighter is capped."""
    values = effective_group_config(overrides, broker)
    for bounded in BOUNDED:
        value = values[bounded.group_key]
        if bounded.group_key in overrides and isinstance(value, int):
            least = broker.integer(bounded.least_key) if bounded.least_key else value
            values[bounded.group_key] = min(max(value, least), broker.integer(bounded.most_key))
    return values


def validate_group_config(overrides: Mapping[str, str], broker: NodeConfig) -> dict[str, ConfigValue]:
    """The values that a group with these overrides would have; InvalidConfig if it cannot have them."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise InvalidConfig(f"Unknown group config name: {name}", key=name)
    values = effective_group_config(overrides, broker)
    for bounded in BOUNDED:
        _check_bounds(values, bounded, broker)
    for kind in KINDS:
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _integer(values, session) <= _integer(values, heartbeat):
            raise InvalidConfig(f"{session} must be greater than {heartbeat}", key=session)
    return values


def _check_bounds(values: Mapping[str, ConfigValue], bounded: Bounded, broker: NodeConfig) -> None:
    value = _integer(values, bounded.group_key)
    if bounded.least_key is not None and value < broker.integer(bounded.least_key):
        message = f"{bounded.group_key} must be greater than or equal to {bounded.least_key}"
        raise InvalidConfig(message, key=bounded.group_key)
    if value > broker.integer(bounded.most_key):
        message = f"{bounded.group_key} must be less than or equal to {bounded.most_key}"
        raise InvalidConfig(message, key=bounded.group_key)


def _integer(values: Mapping[str, ConfigValue], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value
