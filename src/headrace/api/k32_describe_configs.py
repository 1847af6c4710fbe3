"""DescribeConfigs: every key of topics, brokers, loggers, groups and subscriptions to clients' metrics.

Each resource has its own result; only a resource of a type that nobody knows fails the request. A broker
describes itself and what is set for all brokers, no other.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final

from headrace.api.broker_loggers import levels
from headrace.api.context import RequestContext
from headrace.api.dynamic_config import broker_layers
from headrace.api.error_texts import default_text
from headrace.api.node_ids import node_id_of
from headrace.api.services import Api, Services
from headrace.config.alteration import ResourceType
from headrace.config.describe import (
    ConfigEntry,
    Source,
    describe_broker,
    describe_client_metrics,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.delta import ConfigResource
from headrace.metadata.topic_names import check_topic_name
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

logger: Final = logging.getLogger("headrace.api")

#: Resources that are described before others get their turn.
_SLICE: Final = 4
_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def handle(
    services: Services, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected resource type UNKNOWN for resource {resource.resource_name}",
            )
    describer = _Describer(services, request)
    if len(request.resources) > _SLICE:
        return _in_slices(describer, request.resources)
    return DescribeConfigsResponse(results=[describer.result(each) for each in request.resources])


async def _in_slices(
    describer: "_Describer", resources: list[DescribeConfigsResource]
) -> DescribeConfigsResponse:
    """Tools describe all topics of a cluster at once; others get their turn in between."""
    results: list[DescribeConfigsResult] = []
    for start in range(0, len(resources), _SLICE):
        results += [describer.result(each) for each in resources[start : start + _SLICE]]
        await asyncio.sleep(0)
    return DescribeConfigsResponse(results=results)


class _Describer:
    """Describes the resources of one request. What topics have in common is worked out once."""

    __slots__ = ("_defaults", "_layers", "_request", "_services")

    def __init__(self, services: Services, request: DescribeConfigsRequest) -> None:
        self._services = services
        self._request = request
        self._layers = broker_layers(services)
        self._defaults: dict[tuple[str, ...], list[DescribeConfigsResourceResult]] = {}

    def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        """One resource, or what is wrong with it."""
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                result.configs = _loggers(self._services, resource)
            elif resource.resource_type != ResourceType.TOPIC:
                result.configs = self._told(self._entries(resource))
            elif _has_topic(self._services, resource):
                result.configs = self._topic(resource)
            else:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message or None
        except Exception:
            logger.exception("describing the configuration of %s failed", resource)
            result.error_code, result.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, None
        return result

    def _topic(self, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
        overrides = self._services.image.topic_config(resource.resource_name)
        names = resource.configuration_keys
        if overrides:
            return self._told(describe_topic(overrides, self._layers, names))
        key = tuple(names or ())
        if key not in self._defaults:
            self._defaults[key] = self._told(describe_topic({}, self._layers, names))
        return self._defaults[key]

    def _entries(self, resource: DescribeConfigsResource) -> list[ConfigEntry]:
        name, names = resource.resource_name, resource.configuration_keys
        overrides = self._services.image.config(ConfigResource(resource.resource_type, name))
        match resource.resource_type:
            case ResourceType.BROKER if not name:
                return describe_cluster_defaults(self._layers, names)
            case ResourceType.BROKER:
                _check_broker_id(self._services, name, " or empty string,")
                return describe_broker(self._layers, names)
            case ResourceType.GROUP:
                _check_given(name, "Group name must not be empty")
                return describe_group(overrides, self._layers, names)
            case _:
                _check_given(name, "Client metrics subscription name must not be empty")
                return describe_client_metrics(overrides, names)

    def _told(self, entries: list[ConfigEntry]) -> list[DescribeConfigsResourceResult]:
        return [_entry(each, self._request) for each in entries]


def _has_topic(services: Services, resource: DescribeConfigsResource) -> bool:
    check_topic_name(resource.resource_name)
    return resource.resource_name in services.image.topics


def _loggers(services: Services, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    _check_given(resource.resource_name, "Broker id must not be empty")
    _check_broker_id(services, resource.resource_name, "")
    asked = frozenset(resource.configuration_keys or ())
    return [
        DescribeConfigsResourceResult(name=name, value=level, config_source=Source.DYNAMIC_BROKER_LOGGER)
        for name, level in levels().items()
        if not asked or name in asked
    ]


def _check_given(name: str, otherwise: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, otherwise)


def _check_broker_id(services: Services, name: str, alternative: str) -> None:
    asked, own = node_id_of(name), services.config.node_id
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if asked != own:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {own}{alternative} but received {name}",
        )


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in synonyms
        ],
        config_type=entry.kind,
        documentation=entry.documentation if request.include_documentation else None,
    )


def error_response(
    request: DescribeConfigsRequest, version: int, error: KafkaError
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                error_code=error.code,
                error_message=default_text(error.code),
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


API: Final = Api(
    key=32,
    name="DescribeConfigs",
    versions=(1, 4),
    request=DescribeConfigsRequest,
    response=DescribeConfigsResponse,
    handle=handle,
    error_response=error_response,
)
