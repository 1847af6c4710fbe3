"""The tables of keys: the defaults a running Kafka shows, and sentences that say what a key does here."""

import pytest

from headrace.config.definition import ConfigKey
from headrace.config.keys.broker import BROKER_KEYS, DYNAMIC_KEYS, RUN_TIME_ONLY_KEYS
from headrace.config.keys.client_metrics import CLIENT_METRICS_KEYS
from headrace.config.keys.client_quota import IP_QUOTA_KEYS, USER_KEYS
from headrace.config.keys.group import GROUP_KEYS
from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.synonyms import GROUP_SYNONYMS, TOPIC_SYNONYMS
from headrace.config.values import render
from tests.support_config import facts

TABLES = {
    "broker": BROKER_KEYS,
    "run time": RUN_TIME_ONLY_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client metrics": CLIENT_METRICS_KEYS,
    "user": USER_KEYS,
    "ip": IP_QUOTA_KEYS,
}
# The fact was read while the broker's default was set to this.
SET_WHILE_READ = {"min.cleanable.dirty.ratio": "0.01"}


def test_every_broker_key_of_a_running_kafka_is_there_with_its_default_and_mode() -> None:
    for name, fact in facts("broker_configs.json").items():
        key = BROKER_KEYS[name]
        if "note" not in fact:
            assert render(key.default) == fact["default"], name
        assert (name not in DYNAMIC_KEYS) == fact["read_only"], name
        assert key.sensitive == fact["sensitive"], name


def test_keys_beyond_the_facts_are_internal() -> None:
    extra = BROKER_KEYS.keys() - facts("broker_configs.json").keys()
    assert extra == {name for name in extra if BROKER_KEYS[name].internal}


def test_every_topic_key_of_a_running_kafka_is_there_with_its_default() -> None:
    shown = facts("topic_configs.json")
    assert TOPIC_KEYS.keys() - shown.keys() == {"internal.segment.bytes"}
    for name, fact in shown.items():
        assert SET_WHILE_READ.get(name, render(TOPIC_KEYS[name].default)) == fact["default"], name


@pytest.mark.parametrize("table", TABLES)
def test_every_key_says_what_it_does_and_whether_it_does_nothing(table: str) -> None:
    for name, key in TABLES[table].items():
        assert key.documentation.endswith("."), name
        assert len(key.documentation) > 20, name
        assert ("No effect in Headrace" in key.documentation) == key.inert, name


@pytest.mark.parametrize("table", TABLES)
def test_every_default_keeps_to_its_own_rule(table: str) -> None:
    for key in TABLES[table].values():
        if not key.required:
            key.check(key.default)


def test_a_text_made_of_a_default_reads_back_as_it() -> None:
    for key in BROKER_KEYS.values():
        text = render(key.default)
        if text is not None:
            assert key.parse(text) == key.default, key.name


def test_synonyms_name_keys_that_exist() -> None:
    named = {synonym.name for synonyms in TOPIC_SYNONYMS.values() for synonym in synonyms}
    assert named | set(GROUP_SYNONYMS.values()) <= BROKER_KEYS.keys()
    assert TOPIC_SYNONYMS.keys() <= TOPIC_KEYS.keys()
    assert GROUP_SYNONYMS.keys() <= GROUP_KEYS.keys()


def test_a_key_is_not_changed_by_those_who_use_it() -> None:
    key: ConfigKey = TOPIC_KEYS["retention.ms"]
    with pytest.raises(AttributeError):
        key.default = 1  # type: ignore[misc]
