"""A broker's keys at run time: what may change, how the change is checked, and what holds in the end.

A value set for one broker goes before one set for the cluster, that before server.properties, that before the
default.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headrace.config.definition import Update
from headrace.config.keys.broker import BROKER_KEYS, DYNAMIC_KEYS
from headrace.config.node import NodeConfig
from headrace.config.node_checks import Requirement, check_node
from headrace.config.providers import PROVIDERS_KEY
from headrace.config.refusals import InvalidConfig, invalid_request, invalid_value
from headrace.config.synonyms import broker_synonyms, listener_base_name
from headrace.config.unsupported import UnsupportedKey, unsupported_keys

Resolve = Callable[[Mapping[str, str]], Mapping[str, str]]

_SECURITY_KEYS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
_CLUSTER_WIDE_FOR_A_LISTENER: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_THREADS: Final = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
_ASSIGNMENT_INTERVALS: Final = tuple(
    (
        f"group.{kind}.assignment.interval.ms",
        f"group.{kind}.min.assignment.interval.ms",
        f"group.{kind}.max.assignment.interval.ms",
    )
    for kind in ("consumer", "share", "streams")
)


def effective_node(static: NodeConfig, cluster: Mapping[str, str], broker: Mapping[str, str]) -> NodeConfig:
    """The node's configuration with what was set at run time for the cluster and for this broker.

    Stored texts that cannot be used (see `usable`) are passed over, so that a bad record can't stop a node;
    so are those of features that Headrace does not have (see `unsupported_at_run_time`).
    """
    texts = _with_run_time_texts(static, cluster, broker)
    for name in {key.name for key in _unsupported_besides(static, NodeConfig(texts))}:
        texts.pop(name, None)
        if name in static.texts:
            texts[name] = static.texts[name]
    for name, least_key, most_key in _ASSIGNMENT_INTERVALS:
        if name in texts:
            least, most = static.integer(least_key), static.integer(most_key)
            texts[name] = str(min(max(int(texts[name]), least), most))
    return NodeConfig(texts, static.resolve)


def unsupported_at_run_time(
    static: NodeConfig, cluster: Mapping[str, str], broker: Mapping[str, str]
) -> list[UnsupportedKey]:
    """What is set at run time and passed over, since the node would be more open with it than was meant."""
    return _unsupported_besides(static, NodeConfig(_with_run_time_texts(static, cluster, broker)))


def _with_run_time_texts(
    static: NodeConfig, cluster: Mapping[str, str], broker: Mapping[str, str]
) -> dict[str, str]:
    texts = dict(static.texts)
    _override(texts, usable(cluster, per_broker=False, resolve=static.resolve))
    _override(texts, usable(broker, per_broker=True, resolve=static.resolve))
    if any(_has_variable(text) for text in texts.values()):
        # By now providers of server.properties count as well as those that were set at run time.
        texts = _resolved(texts, static.resolve)
        for name in [name for name in texts if not _is_readable(name, texts[name])]:
            del texts[name]
            if name in static.texts:
                texts[name] = static.texts[name]
    return texts


def _resolved(texts: Mapping[str, str], resolve: Resolve) -> dict[str, str]:
    """The texts with their variables replaced; without those that have one, if they can't be looked up."""
    try:
        return dict(resolve(texts))
    except InvalidConfig:
        return {name: text for name, text in texts.items() if not _has_variable(text)}


def _has_variable(text: str) -> bool:
    return "${" in text


def _unsupported_besides(static: NodeConfig, node: NodeConfig) -> list[UnsupportedKey]:
    """Keys without which the node could run; those of server.properties are not this module's business."""
    try:
        found = unsupported_keys(node)
    except InvalidConfig:
        # Listeners that make no sense are not opened, so there is nothing to keep closed.
        return []
    return [key for key in found if node.texts.get(key.name) != static.texts.get(key.name)]


def usable(texts: Mapping[str, str], *, per_broker: bool, resolve: Resolve = dict) -> dict[str, str]:
    """The stored texts without those that could not have been set: unreadable, or not to be changed there.

    Variables stay in them, and are looked up where providers are among the texts themselves."""
    resolved = _resolved(texts, resolve)
    return {
        name: text
        for name, text in texts.items()
        if name in resolved and _is_usable(name, resolved[name], per_broker=per_broker)
    }


def _is_usable(name: str, text: str, *, per_broker: bool) -> bool:
    if not _is_readable(name, text):
        return False
    return not (_is_static(name) or name in _SECURITY_KEYS or (not per_broker and _is_per_broker_only(name)))


def _is_readable(name: str, text: str) -> bool:
    try:
        _check_type(name, text)
    except InvalidConfig:
        return False
    return True


def validate_broker_change(
    static: NodeConfig,
    cluster: Mapping[str, str],
    broker: Mapping[str, str],
    proposed: Mapping[str, str],
    *,
    per_broker: bool,
) -> NodeConfig:
    """The configuration this broker would have if `proposed` were its (or the cluster's) run-time texts.

    Refused with INVALID_REQUEST, as Kafka does. Variables such as `${file:…}` are looked up where their
    providers are proposed with them; those of server.properties are heeded once the types have been checked.
    """
    current = effective_node(static, cluster, broker)
    try:
        resolved = {k: v for k, v in static.resolve(proposed).items() if not k.startswith(PROVIDERS_KEY)}
        _check_names(resolved, per_broker=per_broker)
        texts = dict(static.texts)
        resolve = static.resolve
        _override(texts, usable(cluster, per_broker=False, resolve=resolve) if per_broker else resolved)
        _override(texts, resolved if per_broker else usable(broker, per_broker=True, resolve=resolve))
        new = NodeConfig(resolve(texts), resolve)
        check_node(new)
        if unsupported := _unsupported_besides(static, new):
            raise InvalidConfig(str(unsupported[0]), key=unsupported[0].name)
    except Requirement as problem:
        raise invalid_request(f"requirement failed: {problem.message}") from None
    except InvalidConfig as problem:
        raise invalid_request(problem.message) from None
    if new.texts != current.texts:
        try:
            check_reconfiguration(current, new)
        except InvalidConfig as problem:
            # Kafka puts the exception where the value belongs, and its clients may know these words.
            told = f"org.apache.kafka.common.config.ConfigException: {problem.message}"
            message = f"Invalid value {told} for configuration Invalid dynamic configuration"
            raise invalid_request(message) from None
    return new


def check_reconfiguration(old: NodeConfig, new: NodeConfig) -> None:
    """Refuse a step from one configuration to another that a running node does not make."""
    for name in _THREADS:
        _check_thread_step(name, old.integer(name), new.integer(name))
    _check_cleaner_threads(old.integer("log.cleaner.threads"), new.integer("log.cleaner.threads"))
    if new["metric.reporters"] not in (old["metric.reporters"], BROKER_KEYS["metric.reporters"].default):
        # The class named in Kafka's answer is the one that would load the reporters.
        where = "failed with class class kafka.server.DynamicMetricsReporters"
        raise InvalidConfig(f"Validation of dynamic config update of Set(metric.reporters) {where}")
    for name in ("max.connections", "max.connection.creation.rate"):
        for endpoint in new.listeners:
            value = new.for_listener(endpoint.name)[name]
            if new.is_set(endpoint.config_prefix + name) and isinstance(value, int) and value <= 0:
                raise InvalidConfig(f"Invalid {name} {value}", key=name)
    _check_local_retention(new)
    _check_listener_step(old, new)


def _override(texts: dict[str, str], overrides: Mapping[str, str]) -> None:
    """A text set at run time replaces its synonyms too: minutes set now count more than hours set before."""
    for name, text in overrides.items():
        for synonym in broker_synonyms(name, listener_overrides=False):
            texts.pop(synonym, None)
        texts[name] = text


def _is_static(name: str) -> bool:
    return name in BROKER_KEYS and name not in DYNAMIC_KEYS


def _is_per_broker_only(name: str) -> bool:
    key = DYNAMIC_KEYS.get(name)
    if key is not None:
        return key.update is Update.PER_BROKER
    base = listener_base_name(name)
    return base is not None and base not in _CLUSTER_WIDE_FOR_A_LISTENER


def _check_type(name: str, text: str) -> None:
    key = DYNAMIC_KEYS.get(listener_base_name(name) or name)
    if key is not None:
        key.parse(text)


def _check_names(texts: Mapping[str, str], *, per_broker: bool) -> None:
    _refuse(filter(_is_static, texts), "Cannot update these configs dynamically")
    _refuse(
        _SECURITY_KEYS.intersection(texts),
        "These security configs can be dynamically updated only per-listener using the listener prefix",
    )
    for name, text in texts.items():
        _check_type(name, text)
    if not per_broker:
        _refuse(
            filter(_is_per_broker_only, texts),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )


def _refuse(names: Iterable[str], reason: str) -> None:
    found = sorted(names)
    if found:
        raise InvalidConfig(f"{reason}: [{', '.join(found)}]", key=found[0])


def _check_thread_step(name: str, old: int, new: int) -> None:
    if new == old:
        return
    problem = f"Dynamic thread count update validation failed for {name}={new}, value should"
    if new <= 0:
        raise InvalidConfig(f"{problem} be at least 1", key=name)
    if new < old // 2:
        raise InvalidConfig(f"{problem} be at least half the current value {old}", key=name)
    if new > old * 2:
        raise InvalidConfig(f"{problem} not be greater than double the current value {old}", key=name)


def _check_cleaner_threads(old: int, new: int) -> None:
    if new < 1:
        raise InvalidConfig("Log cleaner threads should be at least 1")
    if new < old // 2:
        raise InvalidConfig(
            f"Log cleaner threads cannot be reduced to less than half the current value {old}"
        )
    if new > old * 2:
        raise InvalidConfig(
            f"Log cleaner threads cannot be increased to more than double the current value {old}"
        )


def _check_local_retention(new: NodeConfig) -> None:
    bounds = (
        ("log.local.retention.ms", "log.retention.ms", new.log_retention_ms),
        ("log.local.retention.bytes", "log.retention.bytes", new.integer("log.retention.bytes")),
    )
    for local_key, key, retention in bounds:
        local = new.integer(local_key)
        if retention > -1 and local != -2:
            if local == -1:
                raise invalid_value(
                    local_key, local, f"Value must not be -1 as {key} value is set as {retention}."
                )
            if local > retention:
                reason = f"Value must not be more than {key} property value: {retention}"
                raise invalid_value(local_key, local, reason)


def _check_listener_step(old: NodeConfig, new: NodeConfig) -> None:
    names = {endpoint.name for endpoint in new.listeners}
    missing = [e.name for e in old.advertised_broker_listeners if e.name not in names]
    if missing:
        message = f"Advertised listeners '{', '.join(missing)}' must be a subset of listeners"
        raise InvalidConfig(message, key="listeners")
    for endpoint in old.listeners:
        if endpoint.name in names and old.protocols[endpoint.name] != new.protocols[endpoint.name]:
            message = (
                f"Security protocol cannot be updated for existing listener ListenerName({endpoint.name})"
            )
            raise InvalidConfig(message, key="listener.security.protocol.map")
