"""A node's configuration as a whole: what it comes to, what is refused, what a user is told."""

import pytest

from headrace.config.endpoints import Address
from headrace.config.listeners import SecurityProtocol
from headrace.config.node import NodeConfig, broker_key
from headrace.config.refusals import InvalidConfig
from headrace.config.server_properties import (
    UnknownKey,
    inert_keys,
    load_server_properties,
    unknown_keys,
    warnings,
)
from headrace.config.unsupported import unsupported_keys
from headrace.testing.memory_disk import MemoryDisk
from tests.support_config import BROKER_ONLY, COMBINED, CONTROLLER_ONLY, node


def refusal(texts: dict[str, str], base: dict[str, str] | None = None) -> InvalidConfig:
    with pytest.raises(InvalidConfig) as caught:
        node(texts, base)
    return caught.value


def test_a_small_file_gives_every_value() -> None:
    config = node({"log.dirs": "/a,/b", "broker.rack": "r1", "log.retention.hours": "2"})
    assert (config.node_id, config["broker.id"], config.rack) == (1, 1, "r1")
    assert config.is_broker
    assert config.is_controller
    assert config.log_dirs == ("/a", "/b")
    assert config.metadata_log_dir == "/a"
    assert config.bootstrap_servers == (Address("localhost", 9093),)
    assert [str(e) for e in config.broker_listeners] == ["PLAINTEXT://:9092"]
    assert [str(e) for e in config.controller_listeners] == ["CONTROLLER://:9093"]
    assert config.inter_broker_listener == ("PLAINTEXT", SecurityProtocol.PLAINTEXT)
    assert config.log_retention_ms == 7_200_000
    assert config.integer("num.partitions") == 1
    assert config.flag("auto.create.topics.enable") is True
    assert config.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.text("metadata.log.dir") is None
    assert config.items("early.start.listeners") == ()


def test_a_value_asked_for_as_another_type_is_a_bug_that_shows() -> None:
    with pytest.raises(TypeError, match=r"num\.partitions is int, not bool"):
        node().flag("num.partitions")


def test_broker_id_stands_in_for_node_id() -> None:
    texts = {name: text for name, text in COMBINED.items() if name != "node.id"} | {"broker.id": "7"}
    assert NodeConfig(texts).node_id == 7


@pytest.mark.parametrize(
    ("texts", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.minutes": "1", "log.retention.ms": "1"}, 1),
        ({"log.retention.minutes": "-5"}, -1),
    ],
)
def test_the_finest_unit_that_is_set_counts(texts: dict[str, str], retention_ms: int) -> None:
    assert node(texts).log_retention_ms == retention_ms
    assert node(texts).topic_defaults()["retention.ms"] == retention_ms


def test_topics_inherit_by_their_own_names_and_units() -> None:
    defaults = node(
        {
            "log.roll.hours": "1",
            "log.roll.jitter.hours": "2",
            "log.flush.scheduler.interval.ms": "5",
            "message.max.bytes": "9",
            "log.cleanup.policy": "compact",
        }
    ).topic_defaults()
    assert defaults["segment.ms"] == 3_600_000
    assert defaults["segment.jitter.ms"] == 7_200_000
    assert defaults["flush.ms"] == 5
    assert defaults["max.message.bytes"] == 9
    assert defaults["cleanup.policy"] == ("compact",)


def test_a_controller_on_every_interface_is_advertised_at_its_voters_address() -> None:
    config = node({"controller.quorum.voters": "1@voter.example:9099"})
    assert [str(e) for e in config.advertised_controller_listeners] == ["CONTROLLER://voter.example:9099"]
    plain = node({"listeners": "PLAINTEXT://h:9092,CONTROLLER://0.0.0.0:9093"})
    assert [str(e) for e in plain.advertised_controller_listeners] == ["CONTROLLER://:9093"]


def test_a_listener_may_have_values_of_its_own() -> None:
    config = node({"listener.name.plaintext.max.connections": "5", "max.connections": "9"})
    assert config.for_listener("PLAINTEXT")["max.connections"] == 5
    assert config.for_listener("CONTROLLER")["max.connections"] == 9
    key = broker_key("listener.name.a.scram-sha-256.sasl.jaas.config")
    assert key is not None
    assert key.sensitive


@pytest.mark.parametrize(
    ("texts", "key", "words"),
    [
        ({"node.id": "x"}, "node.id", "Invalid value x for configuration node.id: Not a number of type INT"),
        ({"broker.id": "2"}, "node.id", "You must set `node.id` to the same value as `broker.id`."),
        ({"process.roles": "tea"}, "process.roles", "String must be one of: broker, controller"),
        (
            {"log.retention.ms": "0"},
            "log.retention.ms",
            "must be unlimited (-1) or, greater than or equal to 1",
        ),
        ({"log.dirs": ""}, "log.dirs", "must not be empty"),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners",
            "nonroutable meta-address",
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            "controller.listener.names",
            "must contain at least one value",
        ),
        ({"inter.broker.listener.name": "X"}, "inter.broker.listener.name", "not found in"),
        ({"controller.quorum.voters": "9@a:1"}, "node.id", "must be included in the set of voters"),
        (
            {"max.connections.per.ip.overrides": "a:b"},
            "max.connections.per.ip.overrides",
            "not a number for a",
        ),
        ({"group.consumer.assignors": "tea"}, "group.consumer.assignors", "Class tea cannot be found"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(texts: dict[str, str], key: str, words: str) -> None:
    refused = refusal(texts)
    assert refused.key == key
    assert words in str(refused)


def test_roles_have_rules_of_their_own() -> None:
    assert refusal({"node.id": "1"}, BROKER_ONLY).key == "node.id"
    assert refusal({"controller.quorum.auto.join.enable": "true"}, BROKER_ONLY).key is not None
    assert refusal({"listeners": "CONTROLLER://:1,PLAINTEXT://:2"}, CONTROLLER_ONLY).key == "listeners"
    assert not node({}, BROKER_ONLY).is_controller
    assert not node({}, CONTROLLER_ONLY).is_broker


def test_a_misspelt_key_is_named_with_the_nearest_known_one() -> None:
    config = node({"log.retention.hour": "1", "zebra": "1", "config.providers.x.class": "y"})
    assert unknown_keys(config) == [
        UnknownKey("log.retention.hour", "log.retention.hours"),
        UnknownKey("zebra", None),
    ]
    assert (
        warnings(config)[0]
        == "unknown configuration key log.retention.hour; did you mean log.retention.hours?"
    )
    assert unknown_keys(node()) == []


def test_what_is_probably_not_meant_is_told() -> None:
    assert "broker.session.timeout.ms" in warnings(node({"broker.heartbeat.interval.ms": "8000"}))[0]
    told = warnings(node({"num.partitions": "3", "controller.listener.names": "A,B"}, BROKER_ONLY))
    assert len(told) == 2
    assert warnings(node()) == []


def test_keys_that_do_nothing_here_can_be_listed() -> None:
    assert inert_keys(node({"num.io.threads": "4", "num.network.threads": "3"})) == ["num.io.threads"]


def test_a_file_overrides_and_variables_make_a_configuration() -> None:
    disk = MemoryDisk()
    disk.make_directory("/etc")
    lines = [f"{name}={text}" for name, text in COMBINED.items()]
    lines += ["config.providers=env", "log.dirs=${env:DATA}", "num.partitions=1"]
    lines += ["config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider"]
    disk.replace("/etc/server.properties", "\n".join(lines).encode())
    config = load_server_properties("/etc/server.properties", ["num.partitions=3"], disk, {"DATA": "/d"})
    assert (config["num.partitions"], config.log_dirs) == (3, ("/d",))


MAP = "listener.security.protocol.map"
ALL_PROTOCOLS = (
    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
)


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {MAP: ALL_PROTOCOLS},
        {"authorizer.class.name": ""},
        {"ssl.client.auth": "none", "sasl.enabled.mechanisms": "GSSAPI"},
        {"quota.window.num": "20"},
    ],
)
def test_a_file_without_missing_features_may_start(texts: dict[str, str]) -> None:
    assert unsupported_keys(node(texts)) == []


@pytest.mark.parametrize(
    ("texts", "key"),
    [
        (
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
            "authorizer.class.name",
        ),
        ({"super.users": "User:admin"}, "super.users"),
        ({"listeners": "PLAINTEXT://:1,SSL://:2,CONTROLLER://:3", MAP: ALL_PROTOCOLS}, "listeners"),
        ({"listeners": "PLAINTEXT://:1,SASL_SSL://:2,CONTROLLER://:3", MAP: ALL_PROTOCOLS}, "listeners"),
        ({"ssl.keystore.password": "hunter2"}, "ssl.keystore.password"),
        ({"listener.name.plaintext.ssl.client.auth": "required"}, "listener.name.plaintext.ssl.client.auth"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "sasl.enabled.mechanisms"),
        (
            {"listener.name.plaintext.plain.sasl.jaas.config": "hunter2"},
            "listener.name.plaintext.plain.sasl.jaas.config",
        ),
        ({"delegation.token.secret.key": "hunter2"}, "delegation.token.secret.key"),
        ({"remote.log.storage.system.enable": "true"}, "remote.log.storage.system.enable"),
        ({"replica.selector.class": "com.example.Select"}, "replica.selector.class"),
    ],
)
def test_a_key_whose_feature_is_missing_keeps_the_node_from_starting(texts: dict[str, str], key: str) -> None:
    found = unsupported_keys(node(texts))
    assert [unsupported.name for unsupported in found] == [key]
    assert "hunter2" not in str(found)
    assert "Headrace" in found[0].reason


def test_a_quota_callback_cannot_be_loaded() -> None:
    assert refusal({"client.quota.callback.class": "com.example.Quota"}).key == "client.quota.callback.class"


def test_secrets_are_not_in_a_nodes_representation() -> None:
    config = node({"ssl.key.password": "hunter2", "my.vault.token": "hunter2"})
    assert "hunter2" not in str(config.loggable())
    assert config.loggable()["node.id"] == "1"
    assert "hunter2" not in repr(config)
    assert "hunter2" not in repr(config["ssl.key.password"])
