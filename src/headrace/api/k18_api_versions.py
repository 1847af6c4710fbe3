"""ApiVersions: which APIs and versions this node speaks, and which features the cluster has.

The reply always has the oldest response header. A request of a version nobody knows never gets here: the
dispatch answers it in version 0. Features that can be off (whose lowest level is 0) are left out before
version 4, as older clients can't read them.
"""

import re
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.versions import KRAFT_VERSION, supported_features
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(services: Services, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    # The table has this module in it, so it can't be imported any earlier.
    from headrace.api.table import apis_of

    if context.version >= 3 and not names_software(request):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    is_controller = context.listener in services.config.controller_listener_names
    return ApiVersionsResponse(
        api_keys=[_range(api) for api in apis_of(is_controller)],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in supported_features().items()
            if context.version >= 4 or low > 0
        ],
        finalized_features_epoch=services.image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in _finalized(services).items()
        ],
    )


def names_software(request: ApiVersionsRequest) -> bool:
    """Whether a client says what it is, in a form that may be shown."""
    name, version = request.client_software_name, request.client_software_version
    return bool(_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version))


def _finalized(services: Services) -> dict[str, int]:
    levels = dict(services.image.features)
    # The quorum keeps this level itself, and it is told only where it is on.
    if level := services.controller.kraft_version:
        levels[KRAFT_VERSION] = level
    return levels


def error_response(request: ApiVersionsRequest, version: int, error: KafkaError) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=error.code)


def _range(api: Api) -> ApiVersion:
    low, high = api.versions
    if api.key == ApiKey.PRODUCE:
        # Some clients take compression for granted only where the first versions are offered, as Kafka does
        # although it does not speak them any more.
        low = 0
    return ApiVersion(api_key=api.key, min_version=low, max_version=high)


API: Final = Api(
    key=18,
    name="ApiVersions",
    versions=(0, 4),
    request=ApiVersionsRequest,
    response=ApiVersionsResponse,
    handle=handle,
    error_response=error_response,
)
