"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from collections.abc import Iterable

from headrace.protocol.messages.alter_configs import AlterableConfig as LegacyConfig
from headrace.protocol.messages.alter_configs import AlterConfigsRequest
from headrace.protocol.messages.alter_configs import AlterConfigsResource as LegacyResource
from headrace.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.answers.requests import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    await_config,
    create_topic,
    versions,
)
from tests.answers.session import Session

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
Change = tuple[str, int, str | None]


def described_topics(session: Session) -> None:
    """All settings of a topic and some, with synonyms and texts where asked for."""
    create_topic(session, "cd-topic", configs={"retention.ms": "1000000", "cleanup.policy": "compact,delete"})
    for version in versions(DescribeConfigsRequest):
        session.ask("all", _describe((TOPIC, "cd-topic", None)), version)
        session.ask("all with synonyms", _describe((TOPIC, "cd-topic", None), synonyms=True), version)
        some = ["retention.ms", "tea", "segment.bytes", "retention.ms"]
        session.ask("some", _describe((TOPIC, "cd-topic", some), synonyms=True), version)
        session.ask("an empty list", _describe((TOPIC, "cd-topic", [])), version)
        if version >= 3:
            session.ask("with texts", _describe((TOPIC, "cd-topic", some), texts=True), version)


def described_brokers(session: Session) -> None:
    """All settings of the broker, the ones for all brokers, and brokers that are not."""
    for version in versions(DescribeConfigsRequest):
        some = ["log.retention.ms", "num.io.threads", "listeners", "log.dirs", "node.id", "tea"]
        session.ask("some", _describe((BROKER, "1", some), synonyms=True), version)
        session.ask("for all brokers", _describe((BROKER, "", None), synonyms=True), version)
        session.ask("another broker", _describe((BROKER, "7", None)), version)
        session.ask("no number", _describe((BROKER, "x", None)), version)
    session.ask("all", _describe((BROKER, "1", None), synonyms=True), 4)
    session.ask("all, the oldest way", _describe((BROKER, "1", None)), 1)


def described_others(session: Session) -> None:
    """Resources of other kinds, unknown kinds, and names that are none."""
    create_topic(session, "cd-other")
    for version in versions(DescribeConfigsRequest):
        session.ask("an unknown topic", _describe((TOPIC, "cd-nowhere", None)), version)
        session.ask("an invalid topic", _describe((TOPIC, "a b", None)), version)
        session.ask("an empty topic", _describe((TOPIC, "", None)), version)
        session.ask("a group", _describe((GROUP, "cd-group", None), synonyms=True), version)
        session.ask("an empty group", _describe((GROUP, "", None)), version)
        session.ask("metrics", _describe((CLIENT_METRICS, "cd-metrics", None), synonyms=True), version)
        session.ask("empty metrics", _describe((CLIENT_METRICS, "", None)), version)
        session.ask("a kind that is not", _describe((3, "x", None)), version)
        session.ask("the unknown kind", _describe((0, "x", None)), version)
        session.ask("loggers of another broker", _describe((BROKER_LOGGER, "7", None)), version)
        session.ask("loggers of no broker", _describe((BROKER_LOGGER, "", None)), version)
        several = _describe((TOPIC, "cd-other", ["flush.ms"]), (TOPIC, "cd-nowhere", None))
        session.ask("good and bad", several, version)
        twice = _describe((TOPIC, "cd-other", ["flush.ms"]), (TOPIC, "cd-other", ["flush.ms"]))
        session.ask("one twice", twice, version)
        session.ask("none", _describe(), version)


def _describe(
    *resources: tuple[int, str, list[str] | None], synonyms: bool = False, texts: bool = False
) -> DescribeConfigsRequest:
    asked = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in resources
    ]
    return DescribeConfigsRequest(resources=asked, include_synonyms=synonyms, include_documentation=texts)


def topics_altered_step_by_step(session: Session) -> None:
    """Set, delete, append and subtract on a topic, good and bad, tried and done."""
    create_topic(session, "ci-topic")
    for version in versions(IncrementalAlterConfigsRequest):
        number = str(1_000_000 + version)
        session.ask("only tried", _alter(TOPIC, "ci-topic", ("flush.ms", SET, "5"), tried=True), version)
        session.ask("set", _alter(TOPIC, "ci-topic", ("retention.ms", SET, number)), version)
        await_config(session, TOPIC, "ci-topic", "retention.ms", number)
        session.ask("append", _alter(TOPIC, "ci-topic", ("cleanup.policy", APPEND, "compact")), version)
        await_config(session, TOPIC, "ci-topic", "cleanup.policy", "delete,compact")
        session.ask("subtract", _alter(TOPIC, "ci-topic", ("cleanup.policy", SUBTRACT, "compact")), version)
        await_config(session, TOPIC, "ci-topic", "cleanup.policy", "delete")
        session.ask("delete", _alter(TOPIC, "ci-topic", ("cleanup.policy", DELETE, None)), version)
        session.ask("nothing", _alter(TOPIC, "ci-topic"), version)
    described = _describe((TOPIC, "ci-topic", ["retention.ms", "cleanup.policy", "flush.ms"]), synonyms=True)
    session.ask("what is there now", described, 4)


def refused_changes_of_topics(session: Session) -> None:
    """Changes of a topic that are refused, each with its reason, leave everything as it was."""
    create_topic(session, "cr-topic")
    cases: dict[str, tuple[Change, ...]] = {
        "unknown": (("tea", SET, "1"),),
        "no number": (("retention.ms", SET, "long"),),
        "out of range": (("retention.ms", SET, "-2"),),
        "no value": (("retention.ms", SET, None),),
        "append to a number": (("retention.ms", APPEND, "1"),),
        "subtract from a number": (("retention.ms", SUBTRACT, "1"),),
        "append nothing": (("cleanup.policy", APPEND, None),),
        "append a bad word": (("cleanup.policy", APPEND, "burn"),),
        "append what is there": (("cleanup.policy", APPEND, "delete"),),
        "subtract what is not there": (("cleanup.policy", SUBTRACT, "compact"),),
        "an unknown operation": (("retention.ms", 7, "1"),),
        "a key twice": (("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
        "a key set and deleted": (("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
        "one good, one bad": (("flush.ms", SET, "9"), ("tea", SET, "1")),
        "delete what is not there": (("flush.messages", DELETE, None),),
        "delete an unknown key": (("tea", DELETE, None),),
        "an empty key": (("", SET, "1"),),
        "an empty list": (("cleanup.policy", SET, ""),),
        "remote storage": (("remote.storage.enable", SET, "true"),),
        "at odds": (("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")),
    }
    for about, changes in cases.items():
        for version in versions(IncrementalAlterConfigsRequest):
            tried = version == 0
            session.ask(about, _alter(TOPIC, "cr-topic", *changes, tried=tried), version)
    for name in ("cr-nowhere", "", "a b", "__cluster_metadata"):
        session.ask(f"topic {name!r}", _alter(TOPIC, name, ("flush.ms", SET, "1")), 1)


def refused_resources(session: Session) -> None:
    """Resources that cannot be altered, or are named twice."""
    create_topic(session, "cs-topic")
    change: Change = ("flush.ms", SET, "77")
    for version in versions(IncrementalAlterConfigsRequest):
        session.ask("a kind that is not", _alter(3, "x", change), version)
        session.ask("the unknown kind", _alter(0, "x", change), version)
        session.ask("another broker", _alter(BROKER, "7", ("num.io.threads", SET, "9")), version)
        session.ask("no broker number", _alter(BROKER, "x", ("num.io.threads", SET, "9")), version)
        session.ask("a read-only key", _alter(BROKER, "1", ("node.id", SET, "9")), version)
        session.ask("far too many threads", _alter(BROKER, "1", ("num.io.threads", SET, "900")), version)
        session.ask("no number", _alter(BROKER, "", ("log.retention.ms", SET, "x")), version)
        session.ask("one broker's key", _alter(BROKER, "", ("listeners", SET, "PLAINTEXT://:1")), version)
        session.ask("an empty group", _alter(GROUP, "", ("consumer.session.timeout.ms", SET, "5")), version)
        bad_group = _alter(GROUP, "cs-group", ("consumer.session.timeout.ms", SET, "5"))
        session.ask("a group's time too short", bad_group, version)
        session.ask("a group's unknown key", _alter(GROUP, "cs-group", ("tea", SET, "5")), version)
        session.ask("empty metrics", _alter(CLIENT_METRICS, "", ("interval.ms", SET, "5000")), version)
        session.ask("metrics too often", _alter(CLIENT_METRICS, "cs-m", ("interval.ms", SET, "1")), version)
        loggers = _alter(BROKER_LOGGER, "7", ("kafka", SET, "INFO"))
        session.ask("loggers of another broker", loggers, version)
        twice = IncrementalAlterConfigsRequest(
            resources=[_resource(TOPIC, "cs-topic", [change]) for _ in range(2)]
        )
        session.ask("a resource twice", twice, version)
        mixed = IncrementalAlterConfigsRequest(
            resources=[
                _resource(TOPIC, "cs-topic", [change]),
                _resource(TOPIC, "cs-nowhere", [change]),
                _resource(TOPIC, "cs-topic-2", [("tea", SET, "1")]),
            ]
        )
        session.ask("good and bad", mixed, version)
        session.ask("none", IncrementalAlterConfigsRequest(), version)


def _alter(kind: int, name: str, *changes: Change, tried: bool = False) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(resources=[_resource(kind, name, changes)], validate_only=tried)


def _resource(kind: int, name: str, changes: Iterable[Change]) -> AlterConfigsResource:
    configs = [
        AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def topics_altered_whole(session: Session) -> None:
    """The older AlterConfigs replaces all settings of a resource."""
    create_topic(session, "cw-topic", configs={"flush.ms": "7"})
    for version in versions(AlterConfigsRequest):
        number = str(2_000_000 + version)
        tried = _replace(TOPIC, "cw-topic", {"retention.ms": "5"}, tried=True)
        session.ask("only tried", tried, version)
        session.ask("replace", _replace(TOPIC, "cw-topic", {"retention.ms": number}), version)
        await_config(session, TOPIC, "cw-topic", "retention.ms", number)
        described = _describe((TOPIC, "cw-topic", ["retention.ms", "flush.ms"]), synonyms=True)
        session.ask("what is there now", described, 4)
        session.ask("unknown", _replace(TOPIC, "cw-topic", {"tea": "1"}), version)
        session.ask("no number", _replace(TOPIC, "cw-topic", {"retention.ms": "x"}), version)
        session.ask("no value", _replace(TOPIC, "cw-topic", {"retention.ms": None}), version)
        session.ask("an unknown topic", _replace(TOPIC, "cw-nowhere", {"retention.ms": "1"}), version)
        session.ask("an invalid topic", _replace(TOPIC, "a b", {"retention.ms": "1"}), version)
        session.ask("a kind that is not", _replace(3, "x", {"retention.ms": "1"}), version)
        session.ask("another broker", _replace(BROKER, "7", {"num.io.threads": "9"}), version)
        session.ask("a read-only key", _replace(BROKER, "1", {"node.id": "9"}), version)
        session.ask("loggers", _replace(BROKER_LOGGER, "1", {"kafka": "INFO"}), version)
        session.ask("none", AlterConfigsRequest(), version)
    session.ask("all gone", _replace(TOPIC, "cw-topic", {}), 2)
    await_config(session, TOPIC, "cw-topic", "retention.ms", "3600000000000")


def _replace(
    kind: int, name: str, configs: dict[str, str | None], tried: bool = False
) -> AlterConfigsRequest:
    return AlterConfigsRequest(resources=[_legacy(kind, name, configs)], validate_only=tried)


def _legacy(kind: int, name: str, configs: dict[str, str | None]) -> LegacyResource:
    pairs = [LegacyConfig(name=key, value=value) for key, value in configs.items()]
    return LegacyResource(resource_type=kind, resource_name=name, configs=pairs)


def altered_brokers(session: Session) -> None:
    """Settings of brokers that change without a restart: for one, for all, and back."""
    for version in versions(IncrementalAlterConfigsRequest):
        number = str(600_000_000 + version)
        tried = _alter(BROKER, "", ("log.retention.ms", SET, "5"), tried=True)
        session.ask("for all, only tried", tried, version)
        session.ask("for all", _alter(BROKER, "", ("log.retention.ms", SET, number)), version)
        await_config(session, BROKER, "1", "log.retention.ms", number)
        own = str(500_000_000 + version)
        session.ask("for one", _alter(BROKER, "1", ("log.retention.ms", SET, own)), version)
        await_config(session, BROKER, "1", "log.retention.ms", own)
        described = _describe((BROKER, "1", ["log.retention.ms"]), (BROKER, "", None), synonyms=True)
        session.ask("what is there now", described, 4)
        session.ask("not for one", _alter(BROKER, "1", ("log.retention.ms", DELETE, None)), version)
        await_config(session, BROKER, "1", "log.retention.ms", number)
        session.ask("append", _alter(BROKER, "", ("log.cleanup.policy", APPEND, "compact")), version)
        await_config(session, BROKER, "1", "log.cleanup.policy", "delete,compact")
        session.ask("not for all", _alter(BROKER, "", ("log.cleanup.policy", DELETE, None)), version)
    create_topic(session, "cb-topic")
    described = _describe((TOPIC, "cb-topic", ["retention.ms"]), synonyms=True)
    session.ask("a topic inherits it", described, 4)
    session.ask("for one, the older way", _replace(BROKER, "1", {"max.connections": "777"}), 2)
    await_config(session, BROKER, "1", "max.connections", "777")
    session.ask("for all, the older way", _replace(BROKER, "", {"max.connections": "888"}), 2)
    session.ask("for one, nothing", _replace(BROKER, "1", {}), 2)
    await_config(session, BROKER, "1", "max.connections", "2147483647")


def listed_resources(session: Session) -> None:
    """ListConfigResources: every kind that has settings, or may have."""
    for version in versions(ListConfigResourcesRequest):
        session.ask("none there", ListConfigResourcesRequest(), version)
    create_topic(session, "lr-plain")
    create_topic(session, "lr-set", configs={"flush.ms": "9"})
    session.ask("a group", _alter(GROUP, "lr-group", ("consumer.session.timeout.ms", SET, "50000")), 1)
    session.ask("metrics", _alter(CLIENT_METRICS, "lr-metrics", ("interval.ms", SET, "5000")), 1)
    await_config(session, CLIENT_METRICS, "lr-metrics", "interval.ms", "5000")
    session.ask("all", ListConfigResourcesRequest(), 0)
    for kinds in ([], [TOPIC], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [GROUP, TOPIC, GROUP]):
        session.ask(f"kinds {kinds}", ListConfigResourcesRequest(resource_types=kinds), 1)
    for kinds in ([0], [3], [TOPIC, 99]):
        session.ask(f"kinds {kinds}", ListConfigResourcesRequest(resource_types=kinds), 1)
    for version in versions(DescribeConfigsRequest):
        several = _describe((GROUP, "lr-group", None), (CLIENT_METRICS, "lr-metrics", None), synonyms=True)
        session.ask("what was set", several, version)
    session.ask("metrics no more", _alter(CLIENT_METRICS, "lr-metrics", ("interval.ms", DELETE, None)), 1)


SCENARIOS = (
    described_topics,
    described_brokers,
    described_others,
    topics_altered_step_by_step,
    refused_changes_of_topics,
    refused_resources,
    topics_altered_whole,
)
ALONE = (altered_brokers, listed_resources)
