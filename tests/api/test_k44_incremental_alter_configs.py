"""IncrementalAlterConfigs: what a broker checks and does itself, and what it leaves to the controller."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from headrace.api.k44_incremental_alter_configs import API
from headrace.config.alteration import Operation, ResourceType
from headrace.errors import ErrorCode
from headrace.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.support_admin import ask, services_of, spoken_versions

Told = list[tuple[int, str | None]]
SET, DELETE, APPEND, SUBTRACT = Operation


def resource(kind: int, name: str, *configs: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in configs
        ],
    )


def decide(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    """A controller that agrees to all but resources named "refused"."""
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                error_code=ErrorCode.POLICY_VIOLATION if each.resource_name == "refused" else 0,
                error_message="no" if each.resource_name == "refused" else None,
            )
            for each in request.resources
        ]
    )


def alter(
    *resources: AlterConfigsResource, version: int = 1, listener: str = "PLAINTEXT", **fields: Any
) -> tuple[Told, list[str]]:
    """What each resource is told, and the names of those that the controller was asked about."""
    services, controller = services_of()
    controller.answers["incremental_alter_configs"] = decide
    request = IncrementalAlterConfigsRequest(resources=list(resources), **fields)
    reply = ask(services, API, request, IncrementalAlterConfigsResponse, version, listener)
    asked = [each.resource_name for _, request in controller.asked for each in request.resources]
    return [(each.error_code, each.error_message) for each in reply.responses], asked


TOPIC = resource(ResourceType.TOPIC, "t", ("retention.ms", SET, "1"))


@pytest.mark.parametrize("version", spoken_versions(API))
def test_the_controller_decides_on_topics_groups_and_client_metrics(version: int) -> None:
    told, asked = alter(
        TOPIC,
        resource(ResourceType.GROUP, "refused", ("x", DELETE, None)),
        resource(ResourceType.CLIENT_METRICS, "m", ("metrics", APPEND, "a")),
        version=version,
    )
    assert told == [(0, None), (ErrorCode.POLICY_VIOLATION, "no"), (0, None)]
    assert asked == ["t", "refused", "m"]


def test_a_resource_that_comes_twice_is_refused_both_times() -> None:
    told, asked = alter(TOPIC, resource(ResourceType.TOPIC, "u", ("a", SET, "1")), TOPIC)
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert told == [twice, (0, None), twice]
    assert asked == ["u"]


@pytest.mark.parametrize(
    ("bad", "code", "message"),
    [
        (
            resource(ResourceType.TOPIC, "bad", ("a", SET, "1"), ("a", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            resource(ResourceType.TOPIC, "bad", ("a", SET, None), ("b", APPEND, None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : a, b",
        ),
        (resource(0, "bad"), ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (resource(ResourceType.TOPIC, "bad", ("a", 9, "1")), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (resource(77, "bad"), ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
        (
            resource(ResourceType.BROKER, "one"),
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: one",
        ),
        (
            resource(ResourceType.BROKER, "2"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (
            resource(ResourceType.BROKER, "1", ("node.id", SET, "5")),
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            resource(ResourceType.BROKER, "", ("log.cleaner.threads", SET, "many")),
            ErrorCode.INVALID_REQUEST,
            "Invalid value many for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (
            resource(ResourceType.BROKER, "1", ("log.cleaner.threads", APPEND, "2")),
            ErrorCode.INVALID_CONFIG,
            "Config value append is not allowed for config key: log.cleaner.threads",
        ),
        (
            resource(ResourceType.BROKER, "1", ("log.cleaner.threads", 9, "2")),
            ErrorCode.INVALID_REQUEST,
            "Unknown operations type 9",
        ),
    ],
)
def test_what_a_broker_refuses_never_reaches_the_controller(
    bad: AlterConfigsResource, code: ErrorCode, message: str | None
) -> None:
    told, asked = alter(bad, TOPIC)
    assert told == [(code, message), (0, None)]
    assert asked == ["t"]


def test_a_good_change_of_a_broker_is_left_to_the_controller() -> None:
    told, asked = alter(
        resource(ResourceType.BROKER, "1", ("log.cleaner.threads", SET, "2")),
        resource(ResourceType.BROKER, "", ("log.retention.ms", SET, "60000")),
    )
    assert told == [(0, None)] * 2
    assert asked == ["1", ""]


def test_the_controller_is_not_asked_about_nothing() -> None:
    services, controller = services_of()
    request = IncrementalAlterConfigsRequest()
    assert ask(services, API, request, IncrementalAlterConfigsResponse, 1).responses == []
    assert controller.asked == []


def test_a_controller_leaves_brokers_values_alone() -> None:
    told, asked = alter(
        resource(ResourceType.BROKER, "2", ("node.id", SET, "5")), TOPIC, listener="CONTROLLER"
    )
    assert told == [(0, None)] * 2
    assert asked == ["2", "t"]


class TestLoggers:
    @pytest.fixture(autouse=True)
    def own(self) -> Iterator[logging.Logger]:
        self.logger = logging.getLogger("headrace.altered")
        self.logger.setLevel(logging.NOTSET)
        yield self.logger
        self.logger.setLevel(logging.NOTSET)

    def alter(self, operation: int, value: str | None, **fields: Any) -> tuple[int, str | None]:
        name = fields.pop("name", "headrace.altered")
        node = fields.pop("node", "1")
        told, asked = alter(resource(ResourceType.BROKER_LOGGER, node, (name, operation, value)), **fields)
        assert asked == []
        return told[0]

    @pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
    def test_a_level_is_set_and_taken_away(self, listener: str) -> None:
        assert self.alter(SET, "ERROR", listener=listener) == (0, None)
        assert self.logger.level == logging.ERROR
        assert self.alter(DELETE, None, listener=listener) == (0, None)
        assert self.logger.level == logging.NOTSET

    def test_validation_changes_nothing(self) -> None:
        assert self.alter(SET, "ERROR", validate_only=True) == (0, None)
        assert self.logger.level == logging.NOTSET

    def test_levels_and_loggers_must_exist(self) -> None:
        assert self.alter(SET, "LOUD") == (
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of headrace.altered to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        )
        assert self.alter(SET, "INFO", name="nobody") == (
            ErrorCode.INVALID_CONFIG,
            "Logger nobody does not exist!",
        )

    def test_the_root_keeps_a_level(self) -> None:
        assert self.alter(DELETE, None, name="root") == (
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        )

    def test_levels_are_no_lists(self) -> None:
        assert self.alter(APPEND, "INFO") == (
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        )
        assert self.alter(8, "INFO") == (
            ErrorCode.INVALID_REQUEST,
            "Unknown operation type 8 is not allowed for the BROKER_LOGGER resource",
        )

    def test_a_node_alters_its_own_only(self) -> None:
        assert self.alter(SET, "INFO", node="7") == (
            ErrorCode.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 7",
        )
        assert self.alter(SET, "INFO", node="x") == (
            ErrorCode.INVALID_REQUEST,
            "Node id must be an integer, but it is: x",
        )
