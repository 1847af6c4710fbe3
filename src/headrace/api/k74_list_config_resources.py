"""ListConfigResources: the names of what can be configured. Version 0 lists client metrics only."""

from collections.abc import Iterator
from typing import Final

from headrace.api.brokers import brokers_on
from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.config.alteration import ResourceType
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_LISTED: Final = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle(
    services: Services, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    supported = _LISTED if context.version >= 1 else (ResourceType.CLIENT_METRICS,)
    asked = request.resource_types or supported
    if any(each not in supported for each in asked):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _LISTED
            if kind in asked
            for name in _names(services.image, context.listener, kind)
        ]
    )


def _names(image: MetadataImage, listener: str, kind: ResourceType) -> Iterator[str]:
    if kind is ResourceType.TOPIC:
        yield from image.topics
    elif kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        yield from (str(broker.id) for broker in brokers_on(image, listener))
    else:
        yield from (resource.name for resource in image.configs if resource.type == kind)


def error_response(
    request: ListConfigResourcesRequest, version: int, error: KafkaError
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error.code)


API: Final = Api(
    key=74,
    name="ListConfigResources",
    versions=(0, 1),
    request=ListConfigResourcesRequest,
    response=ListConfigResourcesResponse,
    handle=handle,
    error_response=error_response,
)
