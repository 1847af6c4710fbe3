"""The configuration of a subscription to clients' metrics."""

import re
from collections.abc import Mapping

from headrace.config.keys.client_metrics import CLIENT_METRICS_KEYS
from headrace.config.refusals import InvalidConfig, invalid_request
from headrace.config.values import ConfigValue

_INTERVAL = "interval.ms"
_INTERVAL_MS_MIN = 100
_INTERVAL_MS_MAX = 3_600_000
_MATCHED = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def effective_client_metrics_config(overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Every key's value, set or default."""
    return {
        name: key.parse(overrides[name]) if name in overrides else key.default
        for name, key in CLIENT_METRICS_KEYS.items()
    }


def validate_client_metrics_config(name: str, overrides: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The values of a subscription; refused if it has no name, or a key or value that cannot be."""
    if not name:
        raise invalid_request("Subscription name can't be empty")
    for key in overrides:
        if key not in CLIENT_METRICS_KEYS:
            raise invalid_request(f"Unknown client metrics configuration: {key}")
    values = effective_client_metrics_config(overrides)
    interval = values[_INTERVAL]
    if isinstance(interval, int) and not _INTERVAL_MS_MIN <= interval <= _INTERVAL_MS_MAX:
        bounds = "interval must be between 100 and 3600000 (1 hour)"
        raise invalid_request(f"Invalid value {interval} for {_INTERVAL}, {bounds}")
    patterns = values["match"]
    parse_match_patterns(patterns if isinstance(patterns, tuple) else ())
    return values


def parse_match_patterns(entries: tuple[str, ...]) -> dict[str, re.Pattern[str]]:
    """The patterns that tell which clients a subscription is for."""
    patterns: dict[str, re.Pattern[str]] = {}
    for entry in entries:
        # Java drops empty parts at the end of a split.
        parts = entry.rstrip("=").split("=")
        if len(parts) != 2 or parts[0].strip() not in _MATCHED:
            raise InvalidConfig(f"Illegal client matching pattern: {entry}", key="match")
        try:
            patterns[parts[0].strip()] = re.compile(parts[1].strip())
        except re.error:
            raise InvalidConfig(f"Illegal client matching pattern: {entry}", key="match") from None
    return patterns
