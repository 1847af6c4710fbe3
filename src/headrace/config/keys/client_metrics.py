"""Keys of a subscription to clients' metrics."""

from typing import Final

from headrace.config.definition import ConfigKey
from headrace.config.keys.notation import INT, LIST, MEDIUM, key
from headrace.config.rules import ListOf

_KEYS = (
    key("metrics", LIST, (), MEDIUM, ListOf()).means(
        "Prefixes of the names of the metrics that clients push, separated by commas; `*` for all, empty "
        "for none."
    ),
    key("interval.ms", INT, 300_000, MEDIUM).means(
        "Time between two pushes of a client, in milliseconds, from 100 to 3600000."
    ),
    key("match", LIST, (), MEDIUM, ListOf()).means(
        "Which clients push, as `name=regular expression` separated by commas; empty for all. Names: "
        "`client_instance_id`, `client_id`, `client_software_name`, `client_software_version`, "
        "`client_source_address`, `client_source_port`."
    ),
)

CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = {key.name: key for key in _KEYS}
