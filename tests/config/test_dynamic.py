"""A broker's keys at run time: what may change, and what holds in the end."""

import pytest

from headrace.config.describe import BrokerLayers, Source, describe_broker
from headrace.config.dynamic import (
    effective_node,
    unsupported_at_run_time,
    usable,
    validate_broker_change,
)
from headrace.config.node import NodeConfig
from headrace.config.providers import resolve_variables
from headrace.errors import ErrorCode, KafkaError
from headrace.testing.memory_disk import MemoryDisk
from tests.support_config import node


def refusal(
    proposed: dict[str, str], *, per_broker: bool = True, static: dict[str, str] | None = None
) -> str:
    with pytest.raises(KafkaError) as caught:
        validate_broker_change(node(static), {}, {}, proposed, per_broker=per_broker)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    return str(caught.value)


def test_this_broker_goes_before_the_cluster_that_before_the_file_that_before_the_default() -> None:
    static = node({"message.max.bytes": "1", "max.connections": "1", "log.index.interval.bytes": "1"})
    config = effective_node(
        static,
        {"message.max.bytes": "2", "max.connections": "2"},
        {"message.max.bytes": "3"},
    )
    assert config["message.max.bytes"] == 3
    assert config["max.connections"] == 2
    assert config["log.index.interval.bytes"] == 1
    assert config["log.preallocate"] is False
    assert static["message.max.bytes"] == 1


def test_a_unit_set_at_run_time_counts_more_than_a_finer_one_in_the_file() -> None:
    config = effective_node(node({"log.roll.hours": "1"}), {"log.roll.ms": "5"}, {})
    assert config.log_roll_ms == 5
    assert "log.roll.hours" not in config.texts


def test_a_stored_text_that_cannot_be_used_is_passed_over() -> None:
    stored = {"max.connections": "many", "node.id": "9", "ssl.keystore.type": "PEM", "custom": "1"}
    assert usable(stored, per_broker=True) == {"custom": "1"}
    assert usable({"listeners": "PLAINTEXT://:1", "max.connections": "1"}, per_broker=False) == {
        "max.connections": "1"
    }
    assert effective_node(node(), stored, stored)["max.connections"] == 2**31 - 1


TLS_LISTENER = {
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093,SSL://:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
}


@pytest.mark.parametrize(
    ("proposed", "words"),
    [
        (TLS_LISTENER, "listeners: SSL://:9094 speaks SSL: Headrace has no TLS"),
        (
            {"listener.name.plaintext.ssl.keystore.location": "/k"},
            "ssl.keystore.location: Headrace has no TLS",
        ),
        ({"listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN"}, "Headrace has no SASL"),
    ],
)
def test_security_that_is_not_there_is_refused_at_run_time_too(proposed: dict[str, str], words: str) -> None:
    """A listener that was meant to be closed must not be opened to everybody."""
    assert words in refusal(proposed)


def test_stored_security_that_is_not_there_is_passed_over_and_told() -> None:
    stored = TLS_LISTENER | {"max.connections": "7"}
    config = effective_node(node(), {}, stored)
    assert config.texts.get("listeners") == node().texts.get("listeners")
    assert config["max.connections"] == 7
    assert [key.name for key in unsupported_at_run_time(node(), {}, stored)] == ["listeners"]


def test_stored_listeners_that_make_no_sense_do_not_stop_a_node() -> None:
    assert (
        effective_node(node(), {}, {"listeners": "nonsense", "max.connections": "7"})["max.connections"] == 7
    )


def test_an_assignment_interval_is_kept_within_its_bounds() -> None:
    config = effective_node(node(), {"group.consumer.assignment.interval.ms": "99999"}, {})
    assert config["group.consumer.assignment.interval.ms"] == 15_000


@pytest.mark.parametrize(
    ("proposed", "words"),
    [
        ({"node.id": "3", "log.dirs": "/x"}, "Cannot update these configs dynamically: [log.dirs, node.id]"),
        (
            {"ssl.keystore.password": "hunter2"},
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.password]",
        ),
        (
            {"max.connections": "x"},
            "Invalid value x for configuration max.connections: Not a number of type INT",
        ),
        (
            {"log.retention.ms": "0"},
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        ({"num.io.threads": "100"}, "Invalid dynamic configuration"),
        ({"num.io.threads": "3"}, "Invalid dynamic configuration"),
        ({"listener.name.plaintext.max.connections": "0"}, "Invalid dynamic configuration"),
        ({"log.local.retention.ms": "-1"}, "Invalid dynamic configuration"),
        ({"log.local.retention.bytes": "5", "log.retention.bytes": "4"}, "Invalid dynamic configuration"),
        ({"listeners": "CONTROLLER://:9093,OTHER://:1"}, "No security protocol defined for listener OTHER"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_kafkas_words(proposed: dict[str, str], words: str) -> None:
    refused = refusal(proposed)
    assert refused.endswith(words)
    assert "hunter2" not in refused


def test_some_keys_belong_to_one_broker_only() -> None:
    words = "Cannot update these configs at default cluster level, broker id must be specified: "
    assert refusal({"listeners": "PLAINTEXT://:1"}, per_broker=False) == f"{words}[listeners]"
    prefixed = "listener.name.plaintext.ssl.keystore.type"
    assert refusal({prefixed: "PEM"}, per_broker=False) == f"{words}[{prefixed}]"


def test_a_change_that_can_be_gives_the_new_configuration() -> None:
    new = validate_broker_change(
        node(), {"max.connections": "5"}, {}, {"num.io.threads": "16"}, per_broker=True
    )
    assert (new["num.io.threads"], new["max.connections"]) == (16, 5)
    broker = {"max.connections": "7"}
    kept = validate_broker_change(node(), {}, broker, {"max.connections": "9"}, per_broker=False)
    assert kept["max.connections"] == 7


FILE_PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


def node_with_file(static: dict[str, str] | None = None) -> NodeConfig:
    """A node that can read `/run/app.properties`."""
    disk = MemoryDisk()
    disk.make_directory("/run")
    disk.replace("/run/app.properties", b"threads=9\nmany=a lot\npolicy=compact\n")
    return NodeConfig(node(static).texts, lambda texts: resolve_variables(texts, disk, {}))


def in_file(key: str, path: str = "/run/app.properties") -> str:
    return f"${{file:{path}:{key}}}"


@pytest.mark.parametrize(
    ("providers", "text", "words"),
    [
        ({}, in_file("threads"), f"Invalid value {in_file('threads')} for configuration num.io.threads"),
        (FILE_PROVIDER, in_file("many"), "Invalid value a lot for configuration num.io.threads"),
        (FILE_PROVIDER, in_file("any", "/nowhere"), "Could not read properties from file /nowhere"),
    ],
    ids=["no provider", "no number", "no file"],
)
def test_a_change_with_variables_is_refused_for_what_they_stand_for(
    providers: dict[str, str], text: str, words: str
) -> None:
    proposed = {**providers, "num.io.threads": text}
    with pytest.raises(KafkaError) as caught:
        validate_broker_change(node_with_file(), {}, {}, proposed, per_broker=True)
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert words in str(caught.value)


def test_variables_of_a_change_hold_by_the_providers_that_come_with_it() -> None:
    static, stored = node_with_file(), {**FILE_PROVIDER, "num.io.threads": in_file("threads")}
    assert validate_broker_change(static, {}, {}, stored, per_broker=True)["num.io.threads"] == 9
    assert effective_node(static, {}, stored)["num.io.threads"] == 9
    layers = BrokerLayers(static, {}, stored)
    assert layers.broker["num.io.threads"] == in_file("threads")
    (entry,) = describe_broker(layers, ["num.io.threads"])
    assert (entry.value, entry.source) == ("9", Source.DYNAMIC_BROKER)


def test_providers_of_the_file_serve_keys_that_take_any_text() -> None:
    static, stored = node_with_file(FILE_PROVIDER), {"log.cleaner.delete.retention.ms": in_file("threads")}
    assert effective_node(static, {}, stored)["log.cleaner.delete.retention.ms"] == 86_400_000
    assert effective_node(static, {"advertised.listeners": in_file("policy")}, {}).texts == static.texts
    reporters = {"metric.reporters": in_file("policy")}
    assert effective_node(static, reporters, {})["metric.reporters"] == ("compact",)


def test_a_variable_that_cannot_be_looked_up_any_more_is_passed_over() -> None:
    stored = {**FILE_PROVIDER, "num.io.threads": in_file("threads", "/gone"), "max.connections": "7"}
    config = effective_node(node_with_file(), {}, stored)
    assert (config["num.io.threads"], config["max.connections"]) == (8, 7)
