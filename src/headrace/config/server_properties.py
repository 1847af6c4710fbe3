"""From server.properties to a checked configuration, with what a user should be told about it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.config.headrace_keys import HEADRACE_KEYS
from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.node import NodeConfig, broker_key
from headrace.config.node_checks import check_node
from headrace.config.properties import load_properties, parse_overrides
from headrace.config.providers import PROVIDERS_KEY, resolve_variables
from headrace.config.unsupported import AUTHORISER_KEYS
from headrace.ports import Disk


class UnknownKey(NamedTuple):
    """A key that neither Kafka nor Headrace knows, and the known one it may have been meant to be."""

    name: str
    nearest: str | None

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"unknown configuration key {self.name}{hint}"


def read_node_config(texts: Mapping[str, str]) -> NodeConfig:
    """The configuration in these properties; InvalidConfig names the key, the value and the reason."""
    return _checked(NodeConfig(texts))


def _checked(config: NodeConfig) -> NodeConfig:
    check_node(config)
    return config


def load_server_properties(
    path: str, overrides: Iterable[str], disk: Disk, environment: Mapping[str, str]
) -> NodeConfig:
    """The configuration in a file, with `key=value` overrides of the command line and variables replaced."""
    texts = load_properties(disk.read(path)) | parse_overrides(overrides)

    def resolve(given: Mapping[str, str]) -> Mapping[str, str]:
        return resolve_variables(given, disk, environment)

    return _checked(NodeConfig(resolve(texts), resolve))


def unknown_keys(config: NodeConfig) -> list[UnknownKey]:
    """The keys that are set and known to nobody: a user has probably misspelt them."""
    unknown = [name for name in config.texts if not _is_known(name)]
    if not unknown:
        return []
    from difflib import get_close_matches  # only a misspelt key needs it

    known = [*BROKER_KEYS, *HEADRACE_KEYS]
    nearest = {name: get_close_matches(name, known, 1, 0.8) for name in unknown}
    return [UnknownKey(name, found[0] if found else None) for name, found in nearest.items()]


def inert_keys(config: NodeConfig) -> list[str]:
    """The keys that are set to something else than their default, though nothing here depends on them."""
    return [
        name
        for name in config.texts
        if name in BROKER_KEYS and BROKER_KEYS[name].inert and config[name] != BROKER_KEYS[name].default
    ]


def warnings(config: NodeConfig) -> list[str]:
    """What works but is probably not meant, in one sentence each."""
    found = [str(key) for key in unknown_keys(config)]
    heartbeat, session = "broker.heartbeat.interval.ms", "broker.session.timeout.ms"
    if config.integer(heartbeat) * 2 > config.integer(session):
        found.append(
            f"{heartbeat} ({config[heartbeat]} ms) should be at most half of {session} "
            f"({config[session]} ms): a single late heartbeat can fence this broker"
        )
    if not config.is_controller:
        found += _warnings_of_a_broker(config)
    return found


def _warnings_of_a_broker(config: NodeConfig) -> list[str]:
    found = []
    if len(config.controller_listener_names) > 1:
        found.append("controller.listener.names has several entries; a broker uses the first only")
    misplaced = filter(config.is_set, ("num.partitions", "default.replication.factor"))
    found += [f"{name} is set on a broker; it counts on the controllers" for name in misplaced]
    return found


def _is_known(name: str) -> bool:
    if broker_key(name) is not None or name in AUTHORISER_KEYS or name in HEADRACE_KEYS:
        return True
    return name.startswith((f"{PROVIDERS_KEY}.", "rsm.config.", "rlmm.config."))
