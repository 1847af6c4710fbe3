"""DescribeConfigs: every key of every kind of resource, each resource with its own result."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.api.k32_describe_configs import API
from headrace.config.alteration import ResourceType
from headrace.config.describe import Source
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.support_admin import (
    ask,
    broker_record,
    config_record,
    image_of,
    services_of,
    spoken_versions,
    topic_records,
)

IMAGE = image_of(
    broker_record(),
    *topic_records("t", 0xA),
    config_record(ResourceType.TOPIC, "t", "retention.ms", "1000"),
    config_record(ResourceType.BROKER, "", "log.retention.ms", "7000"),
    config_record(ResourceType.BROKER, "1", "log.cleaner.threads", "2"),
    config_record(ResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000"),
    config_record(ResourceType.CLIENT_METRICS, "m", "interval.ms", "5000"),
)


def describe(
    *resources: tuple[int, str], version: int = 4, keys: list[str] | None = None, **fields: Any
) -> list[DescribeConfigsResult]:
    services, _ = services_of(IMAGE)
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        **fields,
    )
    return ask(services, API, request, DescribeConfigsResponse, version).results


@pytest.mark.parametrize("version", spoken_versions(API))
def test_a_topic_is_described_with_all_its_keys(version: int) -> None:
    (result,) = describe((ResourceType.TOPIC, "t"), version=version)
    assert (result.error_code, result.error_message) == (0, "")
    values = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert len(values) > 30
    assert values["retention.ms"] == ("1000", Source.TOPIC)
    assert values["segment.bytes"] == ("1073741824", Source.DEFAULT)


def test_only_the_keys_asked_for_are_told() -> None:
    (result,) = describe((ResourceType.TOPIC, "t"), keys=["retention.ms", "nonsense"])
    assert [entry.name for entry in result.configs] == ["retention.ms"]


def test_synonyms_and_documentation_are_told_if_asked_for() -> None:
    (result,) = describe((ResourceType.TOPIC, "t"), keys=["retention.ms"])
    assert (result.configs[0].synonyms, result.configs[0].documentation) == ([], None)
    (result,) = describe(
        (ResourceType.TOPIC, "t"), keys=["retention.ms"], include_synonyms=True, include_documentation=True
    )
    (entry,) = result.configs
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ("retention.ms", "1000", Source.TOPIC),
        ("log.retention.ms", "7000", Source.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.hours", "168", Source.DEFAULT),
    ]
    assert entry.documentation


def test_a_broker_describes_itself_and_what_holds_for_all() -> None:
    own, everyone = describe((ResourceType.BROKER, "1"), (ResourceType.BROKER, ""))
    values = {entry.name: (entry.value, entry.config_source) for entry in own.configs}
    assert values["log.cleaner.threads"] == ("2", Source.DYNAMIC_BROKER)
    assert values["log.retention.ms"] == ("7000", Source.DYNAMIC_DEFAULT_BROKER)
    assert values["node.id"] == ("1", Source.STATIC_BROKER)
    assert [(entry.name, entry.value) for entry in everyone.configs] == [("log.retention.ms", "7000")]


def test_groups_and_client_metrics_are_described() -> None:
    group, metrics = describe((ResourceType.GROUP, "g"), (ResourceType.CLIENT_METRICS, "m"))
    values = {entry.name: (entry.value, entry.config_source) for entry in group.configs}
    assert values["consumer.session.timeout.ms"] == ("50000", Source.GROUP)
    values = {entry.name: (entry.value, entry.config_source) for entry in metrics.configs}
    assert values["interval.ms"] == ("5000", Source.CLIENT_METRICS)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (ResourceType.TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            ResourceType.TOPIC,
            "",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            ResourceType.BROKER,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (
            ResourceType.BROKER,
            "one",
            ErrorCode.INVALID_REQUEST,
            "Broker id must be an integer, but it is: one",
        ),
        (ResourceType.BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (
            ResourceType.BROKER_LOGGER,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 but received 2",
        ),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (
            ResourceType.CLIENT_METRICS,
            "",
            ErrorCode.INVALID_REQUEST,
            "Client metrics subscription name must not be empty",
        ),
    ],
)
def test_a_bad_resource_has_an_error_of_its_own(
    kind: ResourceType, name: str, code: ErrorCode, message: str
) -> None:
    bad, good = describe((kind, name), (ResourceType.TOPIC, "t"))
    assert (bad.error_code, bad.error_message, bad.configs) == (code, message, [])
    assert (bad.resource_type, bad.resource_name) == (kind, name)
    assert good.error_code == 0


def test_an_unknown_type_fails_the_request() -> None:
    results = describe((99, "x"), (ResourceType.TOPIC, "t"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2
    assert {(result.error_message or "")[:22] for result in results} == {"This most likely occur"}


def test_many_resources_are_described_in_order() -> None:
    topics = [*topic_records("plain", 0xB), *topic_records("own", 0xC)]
    own = config_record(ResourceType.TOPIC, "own", "retention.ms", "5")
    services, _ = services_of(image_of(broker_record(), *topics, own))
    names = ["plain", "own", "nope", "plain"] * 5
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=ResourceType.TOPIC, resource_name=name, configuration_keys=["retention.ms"]
            )
            for name in names
        ]
    )
    results = ask(services, API, request, DescribeConfigsResponse, 4).results
    assert [result.resource_name for result in results] == names
    told = {result.resource_name: [entry.value for entry in result.configs] for result in results}
    assert told == {"plain": ["604800000"], "own": ["5"], "nope": []}


@pytest.fixture
def own_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("headrace.described")
    yield logger
    logger.setLevel(logging.NOTSET)


def test_loggers_are_described_with_the_level_that_holds(own_logger: logging.Logger) -> None:
    own_logger.setLevel(logging.ERROR)
    (result,) = describe((ResourceType.BROKER_LOGGER, "1"), keys=["headrace.described", "root"])
    told = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
    assert told["headrace.described"] == ("ERROR", Source.DYNAMIC_BROKER_LOGGER)
    assert set(told) == {"headrace.described", "root"}
