"""A topic's configuration: what may be set, and what holds in the end."""

from collections.abc import Mapping

from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.refusals import InvalidConfig, invalid_value
from headrace.config.values import ConfigValue

_REMOTE = "remote.storage.enable"


def topic_defaults() -> dict[str, ConfigValue]:
    """What a topic gets from a broker that sets nothing."""
    return {name: key.default for name, key in TOPIC_KEYS.items()}


def effective_topic_config(
    overrides: Mapping[str, str], broker_defaults: Mapping[str, ConfigValue]
) -> dict[str, ConfigValue]:
    """Every key's value: the topic's own, else the broker's (`NodeConfig.topic_defaults`), else Kafka's.

    Stored overrides of names that are no longer known are passed over, as they cannot mean anything.
    """
    values = topic_defaults() | dict(broker_defaults)
    for name, text in overrides.items():
        if name in TOPIC_KEYS:
            values[name] = TOPIC_KEYS[name].parse(text)
    return values


def validate_topic_config(
    overrides: Mapping[str, str],
    broker_defaults: Mapping[str, ConfigValue],
    existing: Mapping[str, str] | None = None,
) -> dict[str, ConfigValue]:
    """The values that a topic with these overrides would have; InvalidConfig if it cannot have them.

    `existing` are the overrides before the change.
    """
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise InvalidConfig(f"Unknown topic config name: {name}", key=name)
    values = effective_topic_config(overrides, broker_defaults)
    for name, value in values.items():
        # A broker's default may break the topic's own rule, which is the stricter one for some keys.
        if name not in overrides and name != "internal.segment.bytes":
            TOPIC_KEYS[name].check(value)
    _check_compaction_lags(values)
    if values[_REMOTE]:
        message = "Tiered Storage functionality is disabled in the broker."
        raise InvalidConfig(f"{message} Topic cannot be configured with remote log storage.", key=_REMOTE)
    _check_remote_storage_was_off(values, existing or {})
    return values


def _check_compaction_lags(values: Mapping[str, ConfigValue]) -> None:
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(least, int) and isinstance(most, int) and least > most:
        sides = f"min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        raise InvalidConfig(f"conflict topic config setting {sides}", key="min.compaction.lag.ms")


def _check_remote_storage_was_off(values: Mapping[str, ConfigValue], existing: Mapping[str, str]) -> None:
    was_on = existing.get(_REMOTE, "false").lower() == "true"
    if was_on and not values["remote.log.delete.on.disable"]:
        raise InvalidConfig(
            "It is invalid to disable remote storage without deleting remote data. "
            "If you want to keep the remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. "
            "If you want to disable remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`.",
            key=_REMOTE,
        )


def parse_throttled_replicas(name: str, text: str) -> frozenset[tuple[int, int]] | None:
    """The (partition, broker) pairs of a throttled replicas list, or None for `*`, which means all."""
    entries = TOPIC_KEYS[name].parse(text)
    if not isinstance(entries, tuple):
        raise invalid_value(name, entries, "not a list")
    if "".join(entries) == "*":
        return None
    pairs = (entry.split(":") for entry in entries if entry)
    return frozenset((int(partition), int(broker)) for partition, broker in pairs)
