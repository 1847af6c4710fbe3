"""What DescribeConfigs shows: values, sources, synonyms, types and documentation."""

import pytest

from headrace.config.describe import (
    BrokerLayers,
    ConfigEntry,
    Source,
    SynonymValue,
    describe_broker,
    describe_client_metrics,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from headrace.config.keys.broker import BROKER_KEYS
from headrace.config.values import Kind
from tests.support_config import facts, node


def layers(
    static: dict[str, str] | None = None,
    cluster: dict[str, str] | None = None,
    broker: dict[str, str] | None = None,
) -> BrokerLayers:
    return BrokerLayers(node(static), cluster or {}, broker or {})


def one(entries: list[ConfigEntry]) -> ConfigEntry:
    (entry,) = entries
    return entry


def test_a_topic_shows_every_key_with_the_synonyms_of_a_running_kafka() -> None:
    # The facts come from a topic with this override, on a broker with this key set.
    entries = describe_topic(
        {"retention.ms": "604800000"}, layers({"log.cleaner.min.cleanable.ratio": "0.01"})
    )
    shown = facts("topic_configs.json")
    assert {entry.name for entry in entries} == shown.keys()
    for entry in entries:
        fact = shown[entry.name]
        assert entry.value == fact["default"], entry.name
        assert list(dict.fromkeys(s.name for s in entry.synonyms)) == fact["synonyms"], entry.name
        assert (entry.read_only, entry.sensitive) == (False, False)
        assert entry.documentation


def test_a_topic_value_comes_from_the_place_that_counts_first() -> None:
    given = layers({"log.segment.bytes": "2000000"}, {"log.segment.bytes": "3000000"})
    entry = one(describe_topic({"segment.bytes": "4000000"}, given, ["segment.bytes"]))
    assert (entry.value, entry.source, entry.kind) == ("4000000", Source.TOPIC, Kind.INT)
    assert entry.synonyms == (
        SynonymValue("segment.bytes", "4000000", Source.TOPIC),
        SynonymValue("log.segment.bytes", "3000000", Source.DYNAMIC_DEFAULT_BROKER),
        SynonymValue("log.segment.bytes", "2000000", Source.STATIC_BROKER),
        SynonymValue("log.segment.bytes", "1073741824", Source.DEFAULT),
    )
    inherited = one(describe_topic({}, given, ["segment.bytes"]))
    assert (inherited.value, inherited.source) == ("3000000", Source.DYNAMIC_DEFAULT_BROKER)


def test_a_synonym_in_other_units_is_shown_where_kafka_shows_it() -> None:
    entry = one(
        describe_topic({}, layers({"log.retention.ms": "9", "log.retention.hours": "1"}), ["retention.ms"])
    )
    assert [(s.name, s.value) for s in entry.synonyms] == [
        ("log.retention.ms", "9"),
        ("log.retention.hours", "1"),
        ("log.retention.hours", "168"),
    ]
    # Hours alone are not shown under the name of milliseconds, though they count.
    hours = one(describe_topic({}, layers({"log.retention.hours": "1"}), ["retention.ms"]))
    assert (hours.value, hours.source, hours.synonyms) == ("3600000", Source.DEFAULT, ())


def test_a_stored_name_that_nobody_knows_is_shown_without_its_value() -> None:
    entry = one(describe_topic({"gone": "x"}, layers(), ["gone"]))
    assert (entry.value, entry.sensitive, entry.kind, entry.source) == (
        None,
        True,
        Kind.UNKNOWN,
        Source.TOPIC,
    )


def test_an_internal_key_is_shown_only_where_it_is_set() -> None:
    name = "internal.segment.bytes"
    assert describe_topic({}, layers(), [name]) == []
    assert one(describe_topic({name: "5"}, layers(), [name])).value == "5"


def test_a_broker_shows_every_key_of_a_running_kafka() -> None:
    shown = facts("broker_configs.json")
    entries = {entry.name: entry for entry in describe_broker(layers())}
    assert entries.keys() == shown.keys() - {"log.initial.task.delay.ms"}
    for name, entry in entries.items():
        fact = shown[name]
        assert (entry.read_only, entry.sensitive) == (fact["read_only"], fact["sensitive"]), name
        if not BROKER_KEYS[name].required and "note" not in fact and not layers().static.is_set(name):
            assert (entry.value, entry.is_default) == (fact["default"], True), name
        assert entry.documentation


def test_a_brokers_value_comes_from_the_place_that_counts_first() -> None:
    name = "max.connections"
    given = layers({name: "1"}, {name: "2"}, {name: "3"})
    entry = one(describe_broker(given, [name]))
    assert (entry.value, entry.source, entry.read_only) == ("3", Source.DYNAMIC_BROKER, False)
    assert [(s.value, int(s.source)) for s in entry.synonyms] == [
        ("3", 2),
        ("2", 3),
        ("1", 4),
        ("2147483647", 5),
    ]
    cluster = one(describe_cluster_defaults(given))
    assert (cluster.name, cluster.value, cluster.source) == (name, "2", Source.DYNAMIC_DEFAULT_BROKER)
    assert cluster.synonyms == (SynonymValue(name, "2", Source.DYNAMIC_DEFAULT_BROKER),)


@pytest.mark.parametrize(
    "name", ["ssl.key.password", "listener.name.plaintext.ssl.key.password", "my.own.key"]
)
def test_secrets_and_unknown_keys_never_show_their_value(name: str) -> None:
    entry = one(describe_broker(layers({name: "hunter2"}), [name]))
    assert (entry.value, entry.sensitive, entry.source) == (None, True, Source.STATIC_BROKER)
    assert {synonym.value for synonym in entry.synonyms} == {None}
    assert "hunter2" not in repr(entry)


def test_a_key_that_exists_at_run_time_only_is_shown_once_it_is_set() -> None:
    name = "leader.replication.throttled.rate"
    assert describe_broker(layers(), [name]) == []
    entry = one(describe_broker(layers(broker={name: "7"}), [name]))
    assert (entry.value, entry.kind, entry.read_only) == ("7", Kind.LONG, False)


def test_a_group_shows_its_own_values_and_the_brokers() -> None:
    entries = {
        entry.name: entry for entry in describe_group({"consumer.session.timeout.ms": "50000"}, layers())
    }
    assert len(entries) == 17
    own = entries["consumer.session.timeout.ms"]
    assert (own.value, own.source) == ("50000", Source.GROUP)
    assert own.synonyms[1] == SynonymValue("group.consumer.session.timeout.ms", "45000", Source.DEFAULT)
    alone = entries["share.auto.offset.reset"]
    assert alone.synonyms == (SynonymValue("share.auto.offset.reset", "latest", Source.DEFAULT),)


def test_a_subscription_shows_its_three_keys() -> None:
    entries = {entry.name: entry for entry in describe_client_metrics({"metrics": "a,b"})}
    assert {name: (entry.value, int(entry.source)) for name, entry in entries.items()} == {
        "metrics": ("a,b", 7),
        "interval.ms": ("300000", 5),
        "match": ("", 5),
    }
