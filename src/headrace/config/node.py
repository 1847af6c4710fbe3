"""A node's configuration: what server.properties says, typed and checked as a whole."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from headrace.config.definition import ConfigKey
from headrace.config.endpoints import WILDCARD_HOST, Address, host_and_port, parse_voters
from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.listeners import (
    Endpoint,
    SecurityProtocol,
    listener_name,
    parse_listeners,
    parse_pairs,
    parse_protocol_map,
    security_protocol,
)
from headrace.config.refusals import InvalidConfig
from headrace.config.synonyms import GROUP_SYNONYMS, TOPIC_SYNONYMS, listener_base_name
from headrace.config.values import HIDDEN, ConfigValue

T = TypeVar("T")

_PROTOCOL_MAP = "listener.security.protocol.map"
_INTER_BROKER_NAME = "inter.broker.listener.name"
_INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"


class NodeConfig:
    """The values of every key of one node, each by itself checked; `node_checks` sees that they fit together.

    `texts` are the properties as set (with `broker.id` and `node.id` standing in for each other). `resolve`
    replaces variables such as `${file:…}` in texts that come later, as it did in these.
    """

    def __init__(
        self, texts: Mapping[str, str], resolve: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    ) -> None:
        self.resolve = resolve
        self.texts: dict[str, str] = with_node_id_synonyms(texts)
        self._values: dict[str, ConfigValue] = {}
        for name, key in BROKER_KEYS.items():
            self._values[name] = key.parse(self.texts[name]) if name in self.texts else key.initial()

    def __getitem__(self, name: str) -> ConfigValue:
        return self._values[name]

    def __repr__(self) -> str:
        return f"NodeConfig(node.id={self['node.id']}, process.roles={self['process.roles']})"

    def loggable(self) -> dict[str, str]:
        """What is set, for a log: secrets, and keys that nobody knows and may hold one, are hidden."""
        keys = {name: broker_key(name) for name in self.texts}
        return {
            name: HIDDEN if (key := keys[name]) is None or key.sensitive else text
            for name, text in self.texts.items()
        }

    def is_set(self, name: str) -> bool:
        """Whether the properties set a key, be it to its default."""
        return name in self.texts

    def _typed(self, name: str, kind: type[T]) -> T:
        value = self._values[name]
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {type(value).__name__}, not {kind.__name__}")
        return value

    def flag(self, name: str) -> bool:
        """The value of a boolean key."""
        return self._typed(name, bool)

    def integer(self, name: str) -> int:
        """The value of an int, short or long key that cannot be absent."""
        return self._typed(name, int)

    def number(self, name: str) -> float:
        """The value of a double key."""
        return self._typed(name, float)

    def text(self, name: str) -> str | None:
        """The value of a string or class key."""
        return None if self._values[name] is None else self._typed(name, str)

    def items(self, name: str) -> tuple[str, ...]:
        """The entries of a list key; none if it is absent."""
        return () if self._values[name] is None else self._typed(name, tuple)

    def for_listener(self, listener: str) -> dict[str, ConfigValue]:
        """All values with those that are set for this listener only in their place."""
        prefix = f"listener.name.{listener.lower()}."
        values = dict(self._values)
        for name, text in self.texts.items():
            base = name.removeprefix(prefix)
            if name.startswith(prefix) and base in BROKER_KEYS:
                values[base] = BROKER_KEYS[base].parse(text)
        return values

    @cached_property
    def roles(self) -> frozenset[str]:
        return frozenset(self.items("process.roles"))

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def node_id(self) -> int:
        return self.integer("node.id")

    @property
    def rack(self) -> str | None:
        return self.text("broker.rack")

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        """The data directories, in order."""
        return self.items("log.dirs") or self.items("log.dir")

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The data directories that get no new partitions."""
        cordoned = self.items("cordoned.log.dirs")
        return self.log_dirs if "*" in cordoned else cordoned

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the metadata log."""
        return self.text("metadata.log.dir") or self.log_dirs[0]

    @cached_property
    def voters(self) -> dict[int, Address]:
        """The static set of voters; empty where the metadata log has it."""
        return parse_voters(self.items("controller.quorum.voters"))

    @cached_property
    def bootstrap_servers(self) -> tuple[Address, ...]:
        """Where to find the metadata quorum."""
        found = map(host_and_port, self.items("controller.quorum.bootstrap.servers"))
        return tuple(address for address in found if address is not None)

    @property
    def controller_listener_names(self) -> tuple[str, ...]:
        return self.items("controller.listener.names")

    @cached_property
    def protocols(self) -> dict[str, SecurityProtocol]:
        """The security protocol of each listener name, controllers' names without one taken as plaintext."""
        protocols = parse_protocol_map(self.text(_PROTOCOL_MAP) or "")
        names = self.controller_listener_names
        used = {entry.partition(":")[0].upper() for entry in self.items("listeners")} | set(names)
        secured = {protocol.name for protocol in SecurityProtocol} - {"PLAINTEXT"}
        if not self.is_set(_PROTOCOL_MAP) and not used & secured:
            protocols |= {name: SecurityProtocol.PLAINTEXT for name in names if name != "PLAINTEXT"}
        return protocols

    @cached_property
    def listeners(self) -> tuple[Endpoint, ...]:
        """What this node listens on, for clients, brokers and controllers."""
        return parse_listeners(self.items("listeners"), self.protocols)

    @property
    def broker_listeners(self) -> tuple[Endpoint, ...]:
        """What this node listens on as a broker."""
        return tuple(e for e in self.listeners if e.name not in self.controller_listener_names)

    @property
    def controller_listeners(self) -> tuple[Endpoint, ...]:
        """What this node listens on as a controller."""
        return tuple(e for e in self.listeners if e.name in self.controller_listener_names)

    @cached_property
    def _advertised(self) -> tuple[Endpoint, ...] | None:
        if self["advertised.listeners"] is None:
            return None
        entries = self.items("advertised.listeners")
        return parse_listeners(entries, self.protocols, key="advertised.listeners", distinct_ports=False)

    @property
    def advertised_broker_listeners(self) -> tuple[Endpoint, ...]:
        """The addresses that clients and brokers are told."""
        advertised = self.listeners if self._advertised is None else self._advertised
        return tuple(e for e in advertised if e.name not in self.controller_listener_names)

    @property
    def advertised_controller_listeners(self) -> tuple[Endpoint, ...]:
        """The addresses of this controller that other nodes are told, in the order of their names."""
        advertised = {endpoint.name: endpoint for endpoint in self._advertised or ()}
        own = {endpoint.name: endpoint for endpoint in self.controller_listeners}
        result: list[Endpoint] = []
        for position, name in enumerate(map(listener_name, self.controller_listener_names)):
            if name in advertised:
                result.append(advertised[name])
            elif name in own:
                result.append(self._reachable(own[name], is_first=position == 0))
        return tuple(result)

    def _reachable(self, endpoint: Endpoint, *, is_first: bool) -> Endpoint:
        """A controller listener on every interface is reached at the voter's address, if there is one."""
        if endpoint.host not in (None, WILDCARD_HOST):
            return endpoint
        voter = self.voters.get(self.node_id) if is_first else None
        if voter is not None:
            return Endpoint(endpoint.name, endpoint.protocol, voter.host, voter.port)
        return Endpoint(endpoint.name, endpoint.protocol, None, endpoint.port)

    @cached_property
    def inter_broker_listener(self) -> tuple[str, SecurityProtocol]:
        """Name and protocol of the listener that brokers use among each other."""
        named = self.text(_INTER_BROKER_NAME)
        if named is None:
            protocol = security_protocol(self.text(_INTER_BROKER_PROTOCOL) or "", _INTER_BROKER_PROTOCOL)
            return protocol.name, protocol
        if self.is_set(_INTER_BROKER_PROTOCOL):
            both = f"Only one of {_INTER_BROKER_NAME} and {_INTER_BROKER_PROTOCOL} should be set."
            raise InvalidConfig(both, key=_INTER_BROKER_NAME)
        name = listener_name(named)
        if name not in self.protocols:
            where = f"Listener with name {name} defined in {_INTER_BROKER_NAME}"
            raise InvalidConfig(f"{where} not found in {_PROTOCOL_MAP}.", key=_INTER_BROKER_NAME)
        return name, self.protocols[name]

    @property
    def connections_per_ip_overrides(self) -> dict[str, int]:
        """How many connections certain addresses may have."""
        key = "max.connections.per.ip.overrides"
        pairs = parse_pairs(key, self.text(key) or "")
        for address, number in pairs.items():
            if not number.isdecimal():
                message = f"Invalid value {number} for configuration {key}: not a number for {address}"
                raise InvalidConfig(message, key=key, value=number)
        return {address: int(number) for address, number in pairs.items()}

    @property
    def log_retention_ms(self) -> int:
        """How long records are kept; -1 for ever."""
        retention = self._in_topic_units("retention.ms")
        return retention if retention >= 0 else -1

    @property
    def log_roll_ms(self) -> int:
        return self._in_topic_units("segment.ms")

    @property
    def log_roll_jitter_ms(self) -> int:
        return self._in_topic_units("segment.jitter.ms")

    @property
    def log_flush_interval_ms(self) -> int:
        return self._in_topic_units("flush.ms")

    def _in_topic_units(self, topic_key: str) -> int:
        for synonym in TOPIC_SYNONYMS[topic_key]:
            value = self[synonym.name]
            if isinstance(value, int):
                return value * synonym.factor
        raise LookupError(f"no key of the broker gives {topic_key}")

    def topic_defaults(self) -> dict[str, ConfigValue]:
        """What a topic gets for the keys it does not set, by the topic's names."""
        defaults = {name: self[synonyms[0].name] for name, synonyms in TOPIC_SYNONYMS.items()}
        defaults["segment.ms"] = self.log_roll_ms
        defaults["segment.jitter.ms"] = self.log_roll_jitter_ms
        defaults["flush.ms"] = self.log_flush_interval_ms
        defaults["retention.ms"] = self.log_retention_ms
        return defaults

    def group_defaults(self) -> dict[str, ConfigValue]:
        """What a group gets for the keys it does not set, by the group's names."""
        return {name: self[synonym] for name, synonym in GROUP_SYNONYMS.items()}


def with_node_id_synonyms(texts: Mapping[str, str]) -> dict[str, str]:
    """The properties, with the one of `broker.id` and `node.id` that is missing taken from the other."""
    result = dict(texts)
    for missing, present in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if missing not in result and present in result:
            result[missing] = result[present]
    return result


def broker_key(name: str) -> ConfigKey | None:
    """The key of that name, also behind a listener's prefix; None for a name that no broker knows."""
    if name in BROKER_KEYS:
        return BROKER_KEYS[name]
    base = listener_base_name(name)
    if base is None:
        return None
    if base in BROKER_KEYS:
        return BROKER_KEYS[base]
    # A SASL key may also name its mechanism: listener.name.<listener>.<mechanism>.<key>.
    return BROKER_KEYS.get(base.partition(".")[2])
