"""Set, delete, append and subtract."""

import pytest

from headrace.config.alteration import (
    VALUE_LENGTH_MAX,
    Change,
    Operation,
    ResourceType,
    altered,
    altered_on_broker,
    check_changes,
    merged,
)
from headrace.config.refusals import InvalidConfig
from headrace.errors import ErrorCode, KafkaError

SET, DELETE, APPEND, SUBTRACT = Operation
TOPIC = ResourceType.TOPIC


def test_each_operation_gives_the_keys_new_text() -> None:
    current = {"cleanup.policy": "compact", "retention.ms": "1", "flush.ms": "2"}
    new = altered(
        TOPIC,
        current,
        [
            Change("retention.ms", SET, "9"),
            Change("flush.ms", DELETE, None),
            Change("cleanup.policy", APPEND, "delete,compact"),
        ],
    )
    assert new == {"retention.ms": "9", "flush.ms": None, "cleanup.policy": "compact,delete"}
    assert merged(current, new) == {"retention.ms": "9", "cleanup.policy": "compact,delete"}
    assert current["retention.ms"] == "1"


def test_a_list_that_is_not_set_starts_from_its_default() -> None:
    assert altered(TOPIC, {}, [Change("cleanup.policy", APPEND, "compact")]) == {
        "cleanup.policy": "delete,compact"
    }
    assert altered(TOPIC, {}, [Change("cleanup.policy", SUBTRACT, "delete")]) == {"cleanup.policy": ""}


def test_an_entry_goes_as_often_as_it_is_subtracted_and_comes_once() -> None:
    name = "leader.replication.throttled.replicas"
    current = {name: "0:1,0:2,0:1,0:3,0:1"}
    assert altered(TOPIC, current, [Change(name, SUBTRACT, "0:1,0:9,0:1,0:3")]) == {name: "0:2,0:1"}
    assert altered(TOPIC, {name: "0:1"}, [Change(name, APPEND, "0:2,0:1,0:2,0:3")]) == {name: "0:1,0:2,0:3"}


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (TOPIC, "retention.ms"),
        (TOPIC, "unknown"),
        (ResourceType.GROUP, "consumer.session.timeout.ms"),
        (ResourceType.CLIENT_METRICS, "metrics"),
    ],
)
def test_only_lists_of_topics_and_brokers_take_entries(resource: ResourceType, name: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        altered(resource, {}, [Change(name, APPEND, "x")])
    assert str(refusal.value) == f"Can't APPEND to key {name} because its type is not LIST."


def test_a_value_that_is_too_long_is_refused() -> None:
    entry = "0:1," * (VALUE_LENGTH_MAX // 4 + 1)
    with pytest.raises(InvalidConfig, match="it exceeds the maximum value size of 32767 bytes"):
        altered(TOPIC, {}, [Change("leader.replication.throttled.replicas", SET, entry)])


def test_a_broker_applies_them_in_its_own_words() -> None:
    current = {"log.cleanup.policy": "compact", "background.threads": "5"}
    changes = [
        Change("log.cleanup.policy", APPEND, "delete"),
        Change("background.threads", DELETE, None),
        Change("max.connections", SET, "7"),
    ]
    assert altered_on_broker(current, changes) == {
        "log.cleanup.policy": "compact,delete",
        "max.connections": "7",
    }
    assert (
        altered_on_broker(current, [Change("log.cleanup.policy", SUBTRACT, "compact")])["log.cleanup.policy"]
        == ""
    )
    with pytest.raises(
        InvalidConfig, match=r"Config value append is not allowed for config key: max\.connections"
    ):
        altered_on_broker({}, [Change("max.connections", APPEND, "1")])
    with pytest.raises(InvalidConfig, match="Unknown config name: tea"):
        altered_on_broker({}, [Change("tea", SUBTRACT, "1")])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([Change("a", SET, "1"), Change("a", DELETE, None)], "Error due to duplicate config keys"),
        (
            [Change("a", SET, None), Change("b", APPEND, None), Change("c", DELETE, None)],
            "Null value not supported for : a, b",
        ),
    ],
)
def test_changes_that_make_no_sense_are_refused(changes: list[Change], words: str) -> None:
    with pytest.raises(KafkaError) as refusal:
        check_changes(changes)
    assert (refusal.value.code, str(refusal.value)) == (ErrorCode.INVALID_REQUEST, words)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(KafkaError, match="Unknown operations type 9"):
        altered_on_broker({}, [Change("max.connections", 9, "1")])
