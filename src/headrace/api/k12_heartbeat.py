"""Heartbeat: a member of a classic group is alive, and hears whether it has to join again."""

from collections.abc import Awaitable

from headrace.api.context import RequestContext
from headrace.api.group_answers import at_once, group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    services: Services, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
    """Ask the coordinator."""
    return at_once(group_coordinator(services).heartbeat(request))


def error_response(request: HeartbeatRequest, version: int, error: KafkaError) -> HeartbeatResponse:
    """The reply to a request that failed."""
    return HeartbeatResponse(error_code=error.code)


API = Api(
    key=12,
    name="Heartbeat",
    versions=(0, 4),
    request=HeartbeatRequest,
    response=HeartbeatResponse,
    handle=handle,
    error_response=error_response,
)
