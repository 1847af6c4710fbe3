"""UnregisterBroker: forget a broker that is gone for good. The controller decides."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.error_texts import told_text
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(
    services: Services, context: RequestContext, request: UnregisterBrokerRequest
) -> Awaitable[UnregisterBrokerResponse]:
    return services.controller.unregister_broker(request)


def error_response(
    request: UnregisterBrokerRequest, version: int, error: KafkaError
) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=told_text(error))


API: Final = Api(
    key=64,
    name="UnregisterBroker",
    versions=(0, 0),
    request=UnregisterBrokerRequest,
    response=UnregisterBrokerResponse,
    handle=handle,
    error_response=error_response,
)
