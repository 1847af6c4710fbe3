"""ListConfigResources: what can be configured, by type."""

import pytest

from headrace.api.k74_list_config_resources import API
from headrace.config.alteration import ResourceType
from headrace.errors import ErrorCode
from headrace.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tests.support_admin import ask, broker_record, config_record, image_of, services_of, topic_records

IMAGE = image_of(
    broker_record(1),
    broker_record(2, fenced=True),
    *topic_records("t", 0xA),
    config_record(ResourceType.TOPIC, "t", "retention.ms", "1"),
    config_record(ResourceType.BROKER, "", "log.retention.ms", "1"),
    config_record(ResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000"),
    config_record(ResourceType.CLIENT_METRICS, "m", "interval.ms", "5000"),
)


def list_resources(version: int, *types: int) -> ListConfigResourcesResponse:
    services, _ = services_of(IMAGE)
    request = ListConfigResourcesRequest(resource_types=list(types))
    return ask(services, API, request, ListConfigResourcesResponse, version)


def test_the_first_version_lists_client_metrics() -> None:
    reply = list_resources(0)
    assert [(each.resource_name, each.resource_type) for each in reply.config_resources] == [("m", 16)]


def test_everything_is_listed_when_no_type_is_asked_for() -> None:
    told = {(each.resource_type, each.resource_name) for each in list_resources(1).config_resources}
    assert told == {
        (ResourceType.TOPIC, "t"),
        (ResourceType.BROKER, "1"),
        (ResourceType.BROKER, "2"),
        (ResourceType.BROKER_LOGGER, "1"),
        (ResourceType.BROKER_LOGGER, "2"),
        (ResourceType.CLIENT_METRICS, "m"),
        (ResourceType.GROUP, "g"),
    }


def test_only_the_types_asked_for_are_listed() -> None:
    reply = list_resources(1, ResourceType.GROUP, ResourceType.TOPIC)
    assert [each.resource_name for each in reply.config_resources] == ["g", "t"]


@pytest.mark.parametrize("kind", [0, 99])
def test_an_unknown_type_is_refused(kind: int) -> None:
    reply = list_resources(1, ResourceType.TOPIC, kind)
    assert (reply.error_code, reply.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
