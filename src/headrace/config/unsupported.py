"""Keys whose feature is not there: a node that ignored them would run more open than its owner meant.

When a feature arrives, its line leaves this module.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.listeners import SecurityProtocol
from headrace.config.node import NodeConfig, broker_key

AUTHORISER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found")
"""Keys of Kafka's own authoriser, which its table of keys does not have."""

_NO_AUTHORISER = "Headrace has no authoriser; without it every client could do everything"
_NO_TLS = "Headrace has no TLS; connections would not be encrypted"
_NO_SASL = "Headrace has no SASL; clients would not be authenticated"
_NO_TOKENS = "Headrace has no delegation tokens"
_NO_TIERED_STORAGE = "Headrace has no tiered storage"
_LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"

_BY_PREFIX: Final = (
    ("ssl.", _NO_TLS),
    ("sasl.", _NO_SASL),
    ("delegation.token.", _NO_TOKENS),
    ("connections.max.reauth.ms", _NO_SASL),
)


class UnsupportedKey(NamedTuple):
    """A key that is set, and why this node cannot start with it. The value may be secret and is not told."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def unsupported_keys(config: NodeConfig) -> list[UnsupportedKey]:
    """Everything that is set and needs a feature Headrace does not have; empty if the node may start."""
    found = {key.name: key for key in (*_listeners(config), *_features(config), *_security_keys(config))}
    return list(found.values())


def _listeners(config: NodeConfig) -> Iterator[UnsupportedKey]:
    for endpoint in config.listeners:
        if endpoint.protocol is not SecurityProtocol.PLAINTEXT:
            reason = _NO_TLS if endpoint.protocol is SecurityProtocol.SSL else _NO_SASL
            yield UnsupportedKey("listeners", f"{endpoint} speaks {endpoint.protocol.name}: {reason}")
    name, protocol = config.inter_broker_listener
    if protocol is not SecurityProtocol.PLAINTEXT:
        reason = _NO_TLS if protocol is SecurityProtocol.SSL else _NO_SASL
        key = "inter.broker.listener.name"
        used = key if config.is_set(key) else "security.inter.broker.protocol"
        yield UnsupportedKey(used, f"{name} speaks {protocol.name}: {reason}")


def _features(config: NodeConfig) -> Iterator[UnsupportedKey]:
    if config["authorizer.class.name"]:
        yield UnsupportedKey("authorizer.class.name", _NO_AUTHORISER)
    for name in AUTHORISER_KEYS:
        if config.is_set(name):
            yield UnsupportedKey(name, _NO_AUTHORISER)
    if config.flag("remote.log.storage.system.enable"):
        yield UnsupportedKey("remote.log.storage.system.enable", _NO_TIERED_STORAGE)
    if config["replica.selector.class"] not in (None, _LEADER_SELECTOR):
        reason = "Headrace serves consumers from leaders only"
        yield UnsupportedKey("replica.selector.class", reason)


def _security_keys(config: NodeConfig) -> Iterator[UnsupportedKey]:
    """Keys of TLS, SASL and tokens that differ from their default, also those for one listener."""
    for name, text in config.texts.items():
        key = broker_key(name)
        if key is None or (name in BROKER_KEYS and config[name] == key.default):
            continue
        for prefix, reason in _BY_PREFIX:
            if key.name.startswith(prefix) and text.strip():
                yield UnsupportedKey(name, reason)
