"""DescribeConfigs: every key of topics, brokers, loggers, groups and subscriptions to clients' metrics.

Each resource has its own result; only a resource of a type that nobody knows fails the request. A broker
describes itself and what is set for all brokers, no other.
"""

import logging
from typing import Final

from headrace.api.broker_loggers import levels
from headrace.api.context import RequestContext
from headrace.api.dynamic_config import broker_layers
from headrace.api.error_texts import default_text
from headrace.api.node_ids import node_id_of
from headrace.api.services import Api, Services
from headrace.api.topic_names import check_topic_name
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
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

logger: Final = logging.getLogger("headrace.api")

_TYPES: Final = frozenset(ResourceType) - {ResourceType.UNKNOWN}


def handle(
    services: Services, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    for resource in request.resources:
        if resource.resource_type not in _TYPES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected resource type UNKNOWN for resource {resource.resource_name}",
            )
    return DescribeConfigsResponse(
        results=[_described(services, request, each) for each in request.resources]
    )


def _described(
    services: Services, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        if resource.resource_type == ResourceType.BROKER_LOGGER:
            result.configs = _loggers(services, resource)
        elif resource.resource_type == ResourceType.TOPIC and not _has_topic(services, resource):
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            result.configs = [_entry(each, request) for each in _entries(services, resource)]
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
    except Exception:
        logger.exception("describing the configuration of %s failed", resource)
        result.error_code, result.error_message = ErrorCode.UNKNOWN_SERVER_ERROR, None
    return result


def _has_topic(services: Services, resource: DescribeConfigsResource) -> bool:
    check_topic_name(resource.resource_name)
    return resource.resource_name in services.image.topics


def _entries(services: Services, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name, names = resource.resource_name, resource.configuration_keys
    overrides = services.image.config(ConfigResource(resource.resource_type, name))
    match resource.resource_type:
        case ResourceType.TOPIC:
            return describe_topic(overrides, broker_layers(services), names)
        case ResourceType.BROKER if not name:
            return describe_cluster_defaults(broker_layers(services), names)
        case ResourceType.BROKER:
            _check_broker_id(services, name, " or empty string,")
            return describe_broker(broker_layers(services), names)
        case ResourceType.GROUP:
            _check_given(name, "Group name must not be empty")
            return describe_group(overrides, broker_layers(services), names)
        case _:
            _check_given(name, "Client metrics subscription name must not be empty")
            return describe_client_metrics(overrides, names)


def _loggers(services: Services, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    _check_given(resource.resource_name, "Broker id must not be empty")
    _check_broker_id(services, resource.resource_name, "")
    asked = resource.configuration_keys
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
