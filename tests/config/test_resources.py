"""Topics, groups and metrics subscriptions: what they may set and what holds in the end."""

import pytest

from headrace.config.client_metrics import parse_match_patterns, validate_client_metrics_config
from headrace.config.group import bounded_group_config, effective_group_config, validate_group_config
from headrace.config.refusals import InvalidConfig
from headrace.config.topic import (
    effective_topic_config,
    parse_throttled_replicas,
    topic_defaults,
    validate_topic_config,
)
from headrace.errors import ErrorCode, KafkaError
from tests.support_config import node


def test_a_topics_own_value_goes_before_the_brokers() -> None:
    broker = node({"log.retention.hours": "1", "log.segment.bytes": "2000000"}).topic_defaults()
    values = effective_topic_config({"retention.ms": "5", "gone.in.4.0": "x"}, broker)
    assert (values["retention.ms"], values["segment.bytes"], values["segment.ms"]) == (
        5,
        2_000_000,
        604_800_000,
    )
    assert "gone.in.4.0" not in values
    assert values.keys() == topic_defaults().keys()


@pytest.mark.parametrize(
    ("text", "policy"), [("", ()), ("compact,delete", ("compact", "delete")), ("delete,delete", ("delete",))]
)
def test_a_cleanup_policy_is_a_list_that_may_be_empty(text: str, policy: tuple[str, ...]) -> None:
    assert (
        validate_topic_config({"cleanup.policy": text}, node().topic_defaults())["cleanup.policy"] == policy
    )


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"tea": "1"}, "Unknown topic config name: tea"),
        (
            {"retention.ms": "-2"},
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            {"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"},
            "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        ({"cleanup.policy": ","}, "Configuration 'cleanup.policy' values must not be empty."),
        (
            {"compression.gzip.level": "10"},
            "Invalid value 10 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
    ],
)
def test_a_topic_is_refused_with_kafkas_words(overrides: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        validate_topic_config(overrides, node().topic_defaults())
    assert str(refusal.value) == words
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_remote_storage_is_not_switched_off_without_deleting() -> None:
    existing = {"remote.storage.enable": "true"}
    with pytest.raises(InvalidConfig, match="It is invalid to disable remote storage"):
        validate_topic_config({}, node().topic_defaults(), existing)
    deleting = {"remote.log.delete.on.disable": "true"}
    assert validate_topic_config(deleting, node().topic_defaults(), existing)


def test_throttled_replicas_are_pairs_or_all() -> None:
    name = "leader.replication.throttled.replicas"
    assert parse_throttled_replicas(name, "*") is None
    assert parse_throttled_replicas(name, "") == frozenset()
    assert parse_throttled_replicas(name, "0:1, 2:3") == frozenset({(0, 1), (2, 3)})
    with pytest.raises(InvalidConfig, match="must be the literal"):
        parse_throttled_replicas(name, "0-1")


def test_a_groups_own_value_goes_before_the_brokers() -> None:
    broker = node({"group.consumer.session.timeout.ms": "46000"})
    assert effective_group_config({}, broker)["consumer.session.timeout.ms"] == 46_000
    values = validate_group_config({"consumer.session.timeout.ms": "50000"}, broker)
    assert (values["consumer.session.timeout.ms"], values["share.auto.offset.reset"]) == (50_000, "latest")


def test_a_groups_value_beyond_the_brokers_bounds_is_refused_and_an_old_one_capped() -> None:
    overrides = {"consumer.session.timeout.ms": "70000", "streams.num.standby.replicas": "9"}
    with pytest.raises(InvalidConfig, match=r"must be less than or equal to group\.consumer\.max\.session"):
        validate_group_config(overrides, node())
    values = bounded_group_config(overrides | {"consumer.heartbeat.interval.ms": "1"}, node())
    assert values["consumer.session.timeout.ms"] == 60_000
    assert values["consumer.heartbeat.interval.ms"] == 5000
    assert values["streams.num.standby.replicas"] == 2


def test_a_session_outlasts_a_heartbeat() -> None:
    broker = node(
        {
            "group.consumer.max.heartbeat.interval.ms": "90000",
            "group.consumer.max.session.timeout.ms": "90000",
        }
    )
    with pytest.raises(
        InvalidConfig, match=r"consumer\.session\.timeout\.ms must be greater than consumer\.heartbeat"
    ):
        validate_group_config({"consumer.heartbeat.interval.ms": "50000"}, broker)


def test_an_unknown_group_key_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="Unknown group config name: tea"):
        validate_group_config({"tea": "1"}, node())


@pytest.mark.parametrize(
    ("name", "overrides", "code", "words"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        ("s", {"tea": "1"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: tea"),
        (
            "s",
            {"interval.ms": "1"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be",
        ),
        ("s", {"match": "tea=1"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: tea=1"),
        (
            "s",
            {"match": "client_id=("},
            ErrorCode.INVALID_CONFIG,
            "Illegal client matching pattern: client_id=(",
        ),
    ],
)
def test_a_subscription_is_refused_with_kafkas_words(
    name: str, overrides: dict[str, str], code: ErrorCode, words: str
) -> None:
    with pytest.raises(KafkaError) as refusal:
        validate_client_metrics_config(name, overrides)
    assert refusal.value.code is code
    assert str(refusal.value).startswith(words)


def test_a_subscription_matches_by_patterns() -> None:
    values = validate_client_metrics_config("s", {"match": "client_id=a.*", "metrics": "*"})
    assert (values["metrics"], values["interval.ms"]) == (("*",), 300_000)
    assert parse_match_patterns(("client_id=a.*",))["client_id"].fullmatch("abc")
