"""Configuration as DescribeConfigs shows it: each key's value, where that comes from, and what it means."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from headrace.config.client_metrics import effective_client_metrics_config
from headrace.config.definition import ConfigKey
from headrace.config.dynamic import effective_node, usable
from headrace.config.group import effective_group_config
from headrace.config.keys.broker import BROKER_KEYS, DYNAMIC_KEYS, RUN_TIME_ONLY_KEYS
from headrace.config.keys.client_metrics import CLIENT_METRICS_KEYS
from headrace.config.keys.group import GROUP_KEYS
from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.node import NodeConfig
from headrace.config.synonyms import GROUP_SYNONYMS, TOPIC_SYNONYMS, broker_synonyms
from headrace.config.topic import effective_topic_config
from headrace.config.values import ConfigValue, Kind, render, reveal


class Source(IntEnum):
    """Where a value comes from, by its code on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class SynonymValue(NamedTuple):
    """One of the places a value may come from, with what it says there."""

    name: str
    value: str | None
    source: Source


@dataclass(slots=True, frozen=True)
class ConfigEntry:
    """One key of one resource. The value of a secret, and of a key nobody knows, is None."""

    name: str
    value: str | None
    source: Source
    read_only: bool
    sensitive: bool
    synonyms: tuple[SynonymValue, ...]
    kind: Kind
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether nobody set the value."""
        return self.source is Source.DEFAULT


class BrokerLayers:
    """The places a broker's values come from: run time for it, run time for all, server.properties, defaults.

    `effective` is what holds in the end. Stored texts that cannot be used are passed over.
    """

    __slots__ = ("broker", "cluster", "effective", "static")

    def __init__(self, static: NodeConfig, cluster: Mapping[str, str], broker: Mapping[str, str]) -> None:
        self.static = static
        self.cluster = usable(cluster, per_broker=False, resolve=static.resolve)
        self.broker = usable(broker, per_broker=True, resolve=static.resolve)
        self.effective = effective_node(static, self.cluster, self.broker)

    def synonyms(self, name: str, *, sensitive: bool) -> tuple[SynonymValue, ...]:
        """Every place that sets a key or a synonym of it, the one that counts first."""
        layers = (
            (Source.DYNAMIC_BROKER, self.broker),
            (Source.DYNAMIC_DEFAULT_BROKER, self.cluster),
            (Source.STATIC_BROKER, self.static.texts),
        )
        names = broker_synonyms(name)
        found = [
            SynonymValue(synonym, None if sensitive else texts[synonym], source)
            for source, texts in layers
            for synonym in names
            if synonym in texts
        ]
        for synonym in names:
            default = reveal(BROKER_KEYS[synonym].default) if synonym in BROKER_KEYS else None
            if default is not None:
                found.append(SynonymValue(synonym, None if sensitive else default, Source.DEFAULT))
        # What stands before the key's own name is another key's, such as milliseconds before hours.
        first = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[first:])


def describe_topic(
    overrides: Mapping[str, str], layers: BrokerLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """A topic's keys; only those asked for, if any are."""
    values = effective_topic_config(overrides, layers.effective.topic_defaults())
    entries = []
    for name in _asked(_visible(TOPIC_KEYS, overrides), names):
        key = TOPIC_KEYS.get(name)
        inherited: tuple[SynonymValue, ...] = ()
        if name in TOPIC_SYNONYMS:
            inherited = layers.synonyms(TOPIC_SYNONYMS[name][0].name, sensitive=False)
        entries.append(_override_entry(name, key, values.get(name), overrides, Source.TOPIC, inherited))
    return entries


def describe_group(
    overrides: Mapping[str, str], layers: BrokerLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """A group's keys; only those asked for, if any are."""
    values = effective_group_config(overrides, layers.effective)
    entries = []
    for name in _asked(_visible(GROUP_KEYS, overrides), names):
        key = GROUP_KEYS.get(name)
        if name in GROUP_SYNONYMS:
            inherited = layers.synonyms(GROUP_SYNONYMS[name], sensitive=False)
        else:
            default = render(key.default) if key else None
            inherited = () if default is None else (SynonymValue(name, default, Source.DEFAULT),)
        entries.append(_override_entry(name, key, values.get(name), overrides, Source.GROUP, inherited))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The keys of a subscription to clients' metrics; only those asked for, if any are."""
    values = effective_client_metrics_config(overrides)
    return [
        _override_entry(
            name, CLIENT_METRICS_KEYS.get(name), values.get(name), overrides, Source.CLIENT_METRICS, ()
        )
        for name in _asked(_visible(CLIENT_METRICS_KEYS, overrides), names)
    ]


def describe_broker(layers: BrokerLayers, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The keys of one broker; only those asked for, if any are."""
    effective = layers.effective
    entries = []
    for name in _asked(_visible(BROKER_KEYS, effective.texts), names):
        key = _broker_key(name)
        sensitive = key is None or key.sensitive
        if name in BROKER_KEYS and not BROKER_KEYS[name].internal:
            value = render(effective[name])
        else:
            value = effective.texts[name]
        synonyms = layers.synonyms(name, sensitive=sensitive)
        entries.append(_broker_entry(name, key, value, synonyms))
    return entries


def describe_cluster_defaults(
    layers: BrokerLayers, names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """What is set at run time for all brokers; only the keys asked for, if any are."""
    texts = layers.cluster
    entries = []
    for name in _asked(texts, names):
        key = _broker_key(name)
        synonyms = layers.synonyms(name, sensitive=key is None or key.sensitive)
        own = tuple(synonym for synonym in synonyms if synonym.source is Source.DYNAMIC_DEFAULT_BROKER)
        entries.append(_broker_entry(name, key, texts[name], own))
    return entries


def _broker_key(name: str) -> ConfigKey | None:
    for candidate in (name, *broker_synonyms(name)):
        key = BROKER_KEYS.get(candidate) or RUN_TIME_ONLY_KEYS.get(candidate)
        if key is not None:
            return key
    return None


def _broker_entry(
    name: str, key: ConfigKey | None, value: str | None, synonyms: tuple[SynonymValue, ...]
) -> ConfigEntry:
    sensitive = key is None or key.sensitive
    return ConfigEntry(
        name,
        None if sensitive else value,
        synonyms[0].source if synonyms else Source.DEFAULT,
        name not in DYNAMIC_KEYS,
        sensitive,
        synonyms,
        Kind.UNKNOWN if key is None else key.kind,
        BROKER_KEYS[name].documentation if name in BROKER_KEYS else None,
    )


def _override_entry(
    name: str,
    key: ConfigKey | None,
    value: ConfigValue,
    overrides: Mapping[str, str],
    source: Source,
    inherited: tuple[SynonymValue, ...],
) -> ConfigEntry:
    """An entry of a resource whose own texts go before what it inherits; an unknown name may be secret."""
    text = None if key is None else render(value)
    synonyms = (SynonymValue(name, text, source), *inherited) if name in overrides else inherited
    return ConfigEntry(
        name,
        text,
        synonyms[0].source if synonyms else Source.DEFAULT,
        False,
        key is None and source is not Source.CLIENT_METRICS,
        synonyms,
        Kind.UNKNOWN if key is None else key.kind,
        None if key is None else key.documentation,
    )


def _visible(keys: Mapping[str, ConfigKey], texts: Mapping[str, str]) -> list[str]:
    """The names to show: all keys but internal ones that nobody set, and set names that nobody knows."""
    known = [name for name, key in keys.items() if not key.internal or name in texts]
    return known + [name for name in texts if name not in keys]


def _asked(known: Iterable[str], names: Collection[str] | None) -> list[str]:
    wanted = frozenset(names or ())
    return [name for name in known if not wanted or name in wanted]
