"""AlterConfigs: the checks of a broker, and what it leaves to the controller."""

import pytest

from headrace.api.k33_alter_configs import API
from headrace.config.alteration import ResourceType
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from tests.support_admin import ask, services_of, spoken_versions


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


def decide(request: AlterConfigsRequest) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=each.resource_type, resource_name=each.resource_name, error_message=None
            )
            for each in request.resources
        ]
    )


def alter(
    *resources: AlterConfigsResource, version: int = 2, listener: str = "PLAINTEXT"
) -> tuple[list[tuple[int, str | None]], list[str]]:
    services, controller = services_of()
    controller.answers["alter_configs"] = decide
    request = AlterConfigsRequest(resources=list(resources))
    reply = ask(services, API, request, AlterConfigsResponse, version, listener)
    asked = [each.resource_name for _, request in controller.asked for each in request.resources]
    return [(each.error_code, each.error_message) for each in reply.responses], asked


TOPIC = resource(ResourceType.TOPIC, "t", ("retention.ms", "1"))


@pytest.mark.parametrize("version", spoken_versions(API))
def test_the_controller_decides(version: int) -> None:
    told, asked = alter(
        TOPIC, resource(ResourceType.BROKER, "1", ("log.cleaner.threads", "2")), version=version
    )
    assert told == [(0, None)] * 2
    assert asked == ["t", "1"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (resource(ResourceType.TOPIC, "x", ("a", "1"), ("a", "2")), "Error due to duplicate config keys"),
        (resource(ResourceType.TOPIC, "x", ("a", None)), "Null value not supported for : a"),
        (resource(ResourceType.BROKER_LOGGER, "1"), "Unknown resource type 8"),
        (resource(ResourceType.BROKER, "9"), "Unexpected broker id, expected 1, but received 9"),
        (
            resource(ResourceType.BROKER, "1", ("process.roles", "broker")),
            "Cannot update these configs dynamically: [process.roles]",
        ),
    ],
)
def test_what_a_broker_refuses_never_reaches_the_controller(bad: AlterConfigsResource, message: str) -> None:
    told, asked = alter(bad, TOPIC)
    assert told == [(ErrorCode.INVALID_REQUEST, message), (0, None)]
    assert asked == ["t"]


def test_a_resource_that_comes_twice_is_refused_both_times() -> None:
    told, asked = alter(TOPIC, TOPIC)
    assert told == [(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")] * 2
    assert asked == []


def test_a_controller_knows_no_loggers() -> None:
    told, asked = alter(resource(ResourceType.BROKER_LOGGER, "1"), TOPIC, listener="CONTROLLER")
    assert told == [(0, None), (ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER.")]
    assert asked == ["t"]


def test_a_failure_of_the_controller_is_told_to_every_resource() -> None:
    services, controller = services_of()

    def fail(request: AlterConfigsRequest) -> AlterConfigsResponse:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "gone")

    controller.answers["alter_configs"] = fail
    reply = ask(services, API, AlterConfigsRequest(resources=[TOPIC]), AlterConfigsResponse, 2)
    assert [(each.resource_name, each.error_code, each.error_message) for each in reply.responses] == [
        ("t", ErrorCode.NOT_CONTROLLER, "gone")
    ]
