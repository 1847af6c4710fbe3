"""UpdateFeatures: raise or lower the cluster's feature levels. The controller decides."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle(
    services: Services, context: RequestContext, request: UpdateFeaturesRequest
) -> Awaitable[UpdateFeaturesResponse]:
    return services.controller.update_features(request, context.version)


def error_response(request: UpdateFeaturesRequest, version: int, error: KafkaError) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=error.code, error_message=error.message or None)


API: Final = Api(
    key=57,
    name="UpdateFeatures",
    versions=(0, 2),
    request=UpdateFeaturesRequest,
    response=UpdateFeaturesResponse,
    handle=handle,
    error_response=error_response,
)
