"""Headrace's tables and checks of configuration beside those of Apache Kafka's own classes."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from compat.kafka_libs import RunJava
from headrace.config.client_metrics import validate_client_metrics_config
from headrace.config.definition import ConfigKey, Update
from headrace.config.dynamic import _SECURITY_KEYS
from headrace.config.group import validate_group_config
from headrace.config.keys.broker import BROKER_KEYS, DYNAMIC_KEYS, RUN_TIME_ONLY_KEYS
from headrace.config.keys.client_metrics import CLIENT_METRICS_KEYS
from headrace.config.keys.client_quota import CLIENT_QUOTA_KEYS, IP_QUOTA_KEYS, USER_KEYS
from headrace.config.keys.group import GROUP_KEYS
from headrace.config.keys.topic import TOPIC_KEYS
from headrace.config.node_checks import Requirement
from headrace.config.properties import parse_properties
from headrace.config.rules import ListOf
from headrace.config.server_properties import read_node_config
from headrace.config.synonyms import GROUP_SYNONYMS, TOPIC_SYNONYMS
from headrace.config.topic import validate_topic_config
from headrace.config.values import java_double, reveal
from headrace.errors import HeadraceError
from tests.support_config import BROKER_ONLY, COMBINED, CONTROLLER_ONLY, node

TABLES = {
    "broker": BROKER_KEYS,
    "broker_dynamic_only": RUN_TIME_ONLY_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client_metrics": CLIENT_METRICS_KEYS,
    "quota_user": CLIENT_QUOTA_KEYS,
    "quota_ip": IP_QUOTA_KEYS,
    "scram": USER_KEYS,
}


@pytest.fixture(scope="module")
def dump(run_java: RunJava) -> dict[str, Any]:
    done = run_java("ConfigDump.java")
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


def facts_of(key: ConfigKey) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "type": key.kind.name,
        "has_default": not key.required,
        "default": reveal(key.default),
        "importance": key.importance.name,
        "validator": key.rule.text if key.rule else None,
        "internal": key.internal,
    }
    if isinstance(key.rule, ListOf):
        facts |= {
            "list_empty_allowed": key.rule.empty_allowed,
            "list_null_allowed": key.rule.none_allowed,
        }
    return facts


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_key_has_kafkas_type_default_importance_and_bounds(table: str, dump: dict[str, Any]) -> None:
    theirs = {
        name: {
            field: value for field, value in facts.items() if field not in ("documented", "validator_class")
        }
        for name, facts in dump[table].items()
    }
    assert {name: facts_of(key) for name, key in TABLES[table].items()} == theirs


def test_keys_change_at_run_time_where_kafkas_do(dump: dict[str, Any]) -> None:
    ours = {name: key.update.value for name, key in DYNAMIC_KEYS.items()}
    assert ours == dump["dynamic_modes"]
    assert Update.READ_ONLY not in {key.update for key in DYNAMIC_KEYS.values()}
    assert sorted(_SECURITY_KEYS) == dump["security"]


def test_topics_and_groups_inherit_from_the_same_keys_in_the_same_units(dump: dict[str, Any]) -> None:
    ours = {name: [[s.name, str(s.factor)] for s in synonyms] for name, synonyms in TOPIC_SYNONYMS.items()}
    assert ours == dump["topic_synonyms"]
    assert {name: GROUP_SYNONYMS.get(name) for name in GROUP_KEYS} == dump["group_synonyms"]


NODES: list[dict[str, str]] = [
    COMBINED,
    BROKER_ONLY,
    CONTROLLER_ONLY,
    COMBINED | {"node.id": "-1"},
    COMBINED | {"broker.id": "2"},
    COMBINED | {"process.roles": "broker,tea"},
    COMBINED | {"process.roles": ""},
    {k: v for k, v in COMBINED.items() if k != "process.roles"},
    {k: v for k, v in COMBINED.items() if k != "node.id"},
    {k: v for k, v in COMBINED.items() if k != "controller.listener.names"},
    {k: v for k, v in COMBINED.items() if k != "controller.quorum.bootstrap.servers"},
    COMBINED | {"listeners": "PLAINTEXT://:9092"},
    COMBINED | {"listeners": "CONTROLLER://:9093"},
    COMBINED | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9092"},
    COMBINED | {"listeners": "PLAINTEXT://1.2.3.4:9092,CONTROLLER://[::1]:9092"},
    COMBINED | {"listeners": "PLAINTEXT://1.2.3.4:9092,CONTROLLER://1.2.3.5:9092"},
    COMBINED | {"listeners": "PLAINTEXT://a:9092,PLAINTEXT://b:9094,CONTROLLER://:9093"},
    COMBINED | {"listeners": "plaintext://[fe80::1%eth0]:0,CONTROLLER://:0"},
    COMBINED | {"listeners": "INTERNAL://:9092,CONTROLLER://:9093"},
    COMBINED | {"listeners": "INTERNAL://:9092,CONTROLLER://:9093", "inter.broker.listener.name": "INTERNAL"},
    COMBINED
    | {
        "listeners": "INTERNAL://:9092,CONTROLLER://:9093",
        "inter.broker.listener.name": "internal",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "advertised.listeners": "INTERNAL://broker.example:1234",
    },
    COMBINED | {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
    COMBINED | {"inter.broker.listener.name": "OTHER"},
    COMBINED | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
    COMBINED | {"listener.security.protocol.map": "PLAINTEXT:TEA,CONTROLLER:PLAINTEXT"},
    COMBINED | {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
    COMBINED | {"advertised.listeners": "SSL://there:9092"},
    COMBINED | {"advertised.listeners": "CONTROLLER://there:9093"},
    COMBINED | {"advertised.listeners": "PLAINTEXT://there:9092,CONTROLLER://here:9093"},
    COMBINED | {"early.start.listeners": "OTHER"},
    COMBINED | {"controller.quorum.voters": "2@localhost:9093"},
    COMBINED | {"controller.quorum.voters": "1@voter.example:9099"},
    COMBINED | {"controller.quorum.voters": "one@localhost:9093"},
    COMBINED | {"controller.quorum.voters": "localhost:9093"},
    COMBINED | {"controller.quorum.voters": "1@localhost"},
    COMBINED | {"controller.quorum.bootstrap.servers": "localhost"},
    BROKER_ONLY | {"node.id": "1"},
    BROKER_ONLY | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
    BROKER_ONLY | {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
    BROKER_ONLY | {"controller.quorum.auto.join.enable": "true"},
    CONTROLLER_ONLY | {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"},
    COMBINED | {"log.dirs": "/a, /b,/a"},
    COMBINED | {"log.dirs": ""},
    COMBINED | {"log.dirs": "/a,,/b"},
    COMBINED | {"metadata.log.dir": "/m"},
    COMBINED | {"cordoned.log.dirs": "/nowhere"},
    COMBINED | {"cordoned.log.dirs": "*,/a"},
    COMBINED | {"cordoned.log.dirs": "*"},
    COMBINED | {"log.retention.hours": "2", "log.retention.minutes": "5"},
    COMBINED | {"log.retention.hours": "-7"},
    COMBINED | {"log.retention.ms": "0"},
    COMBINED | {"log.roll.hours": "3"},
    COMBINED | {"log.roll.ms": "0"},
    COMBINED | {"log.roll.jitter.ms": "-1"},
    COMBINED | {"log.retention.ms": "1e3"},
    COMBINED | {"log.segment.bytes": "1024"},
    COMBINED | {"log.segment.bytes": "2147483648"},
    COMBINED | {"log.cleanup.policy": "compact,delete"},
    COMBINED | {"log.cleanup.policy": ""},
    COMBINED | {"log.cleanup.policy": "shred"},
    COMBINED | {"log.cleaner.min.cleanable.ratio": "1.5"},
    COMBINED | {"log.cleaner.dedupe.buffer.size": "1048576"},
    COMBINED | {"compression.type": "zip"},
    COMBINED | {"compression.gzip.level": "0"},
    COMBINED | {"auto.create.topics.enable": "yes"},
    COMBINED | {"auto.create.topics.enable": " TRUE "},
    COMBINED | {"replica.fetch.wait.max.ms": "40000"},
    COMBINED | {"replica.fetch.wait.max.ms": "40000", "replica.socket.timeout.ms": "50000"},
    COMBINED | {"queued.max.request.bytes": "10"},
    COMBINED | {"max.connections.per.ip": "0"},
    COMBINED | {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:5"},
    COMBINED | {"max.connections.per.ip.overrides": "host!:5"},
    COMBINED | {"connections.max.idle.ms": "50"},
    COMBINED | {"connections.max.idle.ms": "-1"},
    COMBINED | {"offsets.topic.replication.factor": "40000"},
    COMBINED | {"group.consumer.session.timeout.ms": "1000"},
    COMBINED | {"group.consumer.heartbeat.interval.ms": "20000"},
    COMBINED | {"group.share.max.delivery.count.limit": "5", "group.share.delivery.count.limit": "6"},
    COMBINED | {"group.streams.num.standby.replicas": "3"},
    COMBINED | {"group.share.assignors": "simple,other"},
    COMBINED | {"group.consumer.assignors": "tea"},
    COMBINED | {"group.consumer.assignors": "range"},
    COMBINED | {"group.share.max.share.sessions": "100"},
    COMBINED | {"group.coordinator.rebalance.protocols": "consumer"},
    COMBINED | {"group.coordinator.rebalance.protocols": "classic,tea"},
    COMBINED | {"group.consumer.migration.policy": "Upgrade"},
    COMBINED | {"principal.builder.class": "com.example.Builder"},
    COMBINED | {"some.unknown.key": "1"},
]

TOPICS: list[dict[str, str]] = [
    {},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact, delete"},
    {"cleanup.policy": ""},
    {"cleanup.policy": ","},
    {"cleanup.policy": "delete,delete"},
    {"cleanup.policy": "tea"},
    {"tea": "1"},
    {"retention.ms": "-2"},
    {"retention.ms": "-1"},
    {"retention.ms": "ten"},
    {"retention.bytes": "-5"},
    {"segment.bytes": "13"},
    {"segment.bytes": ""},
    {"segment.ms": "0"},
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    {"min.insync.replicas": "0"},
    {"min.cleanable.dirty.ratio": "-0.1"},
    {"min.cleanable.dirty.ratio": "2"},
    {"min.cleanable.dirty.ratio": "1d"},
    {"compression.type": "Gzip"},
    {"compression.gzip.level": "-1"},
    {"compression.gzip.level": "10"},
    {"compression.lz4.level": "18"},
    {"compression.zstd.level": "23"},
    {"message.timestamp.type": "createtime"},
    {"message.timestamp.before.max.ms": "-1"},
    {"preallocate": "1"},
    {"leader.replication.throttled.replicas": "*"},
    {"leader.replication.throttled.replicas": "0:1, 1:2"},
    {"leader.replication.throttled.replicas": "0:1,x"},
    {"follower.replication.throttled.replicas": "*,0:1"},
    {"remote.storage.enable": "true"},
    {"remote.storage.enable": "false"},
    {"local.retention.ms": "-3"},
    {"local.retention.ms": "5"},
    {"flush.ms": "-1"},
    {"index.interval.bytes": "+7"},
    {"max.message.bytes": "2147483648"},
    {"internal.segment.bytes": "5"},
]

GROUPS: list[dict[str, str]] = [
    {},
    {"tea": "1"},
    {"consumer.session.timeout.ms": "50000"},
    {"consumer.session.timeout.ms": "44999"},
    {"consumer.session.timeout.ms": "60001"},
    {"consumer.heartbeat.interval.ms": "4999"},
    {"consumer.heartbeat.interval.ms": "0"},
    {"consumer.assignment.interval.ms": "15001"},
    {"share.record.lock.duration.ms": "14999"},
    {"share.delivery.count.limit": "11"},
    {"share.partition.max.record.locks": "4001"},
    {"share.auto.offset.reset": "earliest"},
    {"share.auto.offset.reset": "by_duration:PT1H"},
    {"share.auto.offset.reset": "by_duration:P1DT2H3.5S"},
    {"share.auto.offset.reset": "by_duration:-PT1H"},
    {"share.auto.offset.reset": "by_duration:PT"},
    {"share.auto.offset.reset": "none"},
    {"share.isolation.level": "read_committed"},
    {"share.isolation.level": "read"},
    {"streams.num.standby.replicas": "3"},
    {"streams.session.timeout.ms": "1"},
    {"streams.assignment.interval.ms": "20000"},
]

SUBSCRIPTIONS: list[dict[str, str]] = [
    {},
    {"metrics": "*", "interval.ms": "100"},
    {"interval.ms": "99"},
    {"interval.ms": "3600001"},
    {"match": "client_id=a.*,client_software_name=java"},
    {"match": "client_id"},
    {"match": "client_id=("},
    {"match": "colour=red"},
    {"match": "client_id=a=b"},
    {"tea": "1"},
]

PROPERTIES = [
    "a=b",
    "a:b\nc d\n  e\t=  f  ",
    "# c\n! d\n\n a = b\\\n   c\\\n\n d=e",
    "k\\ ey\\=\\:=v\\=a:l",
    "empty\nempty2=\nempty3 :",
    "path=C\\:\\\\x\\y\\tz",
    "u=\\u00e9\\u20AC\\uD83D\\uDE00",
    "trailing=x\\\\\nnext=1",
    "end=x\\",
    "a=1\ra=2\r\nb=3",
    "=v\n:w",
    "\\\n#c=1\nd=2",
    "x=\\\n\n y=2",
    "a=#no comment\nb=!x",
]

DOUBLES = [
    "0",
    "1",
    "0.5",
    "1e7",
    "9999999",
    "0.001",
    "0.00099",
    "1.7976931348623157e308",
    "2147483647",
    "1e-5",
]
DOUBLES += ["123456789.125", "-0.0002", "1e21", "100", "0.1", "NaN", "Infinity", "-Infinity"]


def verdict(check: Callable[[], str | bool]) -> str:
    """What Headrace says: ok with what is described, or the words of the refusal."""
    try:
        result = check()
        return f"ok{result}" if isinstance(result, str) else "ok"
    except Requirement as refusal:
        return f"requirement failed: {refusal}"
    except HeadraceError as refusal:
        return str(refusal)


def ask(run_java: RunJava, kind: str, cases: list[list[str]]) -> list[str]:
    done = run_java("ConfigCheck.java", stdin="\n".join("\t".join([kind, *case]) for case in cases))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def pairs(case: dict[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in case.items()]


def described(case: dict[str, str]) -> str:
    config = read_node_config(case)
    listeners = (config.listeners, config.advertised_broker_listeners, config.advertised_controller_listeners)
    lists = " ".join(
        "[" + "".join(f" {e.name} {e.protocol.name} {e.host or 'null'} {e.port}" for e in endpoints) + "]"
        for endpoints in listeners
    )
    dirs = ", ".join(config.log_dirs)
    return f" {lists} {config.log_retention_ms} {config.log_roll_ms} [{dirs}] {config.metadata_log_dir}"


def test_a_node_is_taken_or_refused_with_kafkas_words(run_java: RunJava) -> None:
    theirs = ask(run_java, "node", [pairs(case) for case in NODES])
    ours = [verdict(partial(described, case)) for case in NODES]
    compared = zip(NODES, ours, theirs, strict=True)
    assert [(case, our, their) for case, our, their in compared if our != their] == []


def test_topics_groups_and_subscriptions_are_taken_or_refused_with_kafkas_words(run_java: RunJava) -> None:
    broker = node()
    checks: dict[str, tuple[list[dict[str, str]], Callable[[dict[str, str]], bool]]] = {
        "topic": (TOPICS, lambda case: bool(validate_topic_config(case, broker.topic_defaults()))),
        "group": (GROUPS, lambda case: bool(validate_group_config(case, broker))),
        "metrics": (SUBSCRIPTIONS, lambda case: bool(validate_client_metrics_config("name", case))),
    }
    for kind, (cases, check) in checks.items():
        theirs = ask(run_java, kind, [pairs(case) for case in cases])
        ours = [verdict(partial(check, case)) for case in cases]
        compared = zip(cases, ours, theirs, strict=True)
        assert [(case, our, their) for case, our, their in compared if our != their] == []


def test_properties_files_are_read_as_java_reads_them(run_java: RunJava) -> None:
    escaped = [text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") for text in PROPERTIES]
    theirs = ask(run_java, "properties", [[text.replace("\t", "\\t")] for text in escaped])
    ours = []
    for text in PROPERTIES:
        loaded = sorted(parse_properties(text).items())
        shown = "ok {" + ", ".join(f"{key}={value}" for key, value in loaded) + "}"
        ours.append(shown.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"))
    assert ours == theirs


def test_doubles_are_printed_as_java_prints_them(run_java: RunJava) -> None:
    theirs = ask(run_java, "double", [[number] for number in DOUBLES])
    assert [f"ok {java_double(float(number))}" for number in DOUBLES] == theirs
