"""JoinGroup: become or stay a member of a classic group. The reply waits until the others have joined."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.group_answers import client_of, group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_REBALANCE_TIMEOUT_SINCE: Final = 1
_NULL_PROTOCOL_SINCE: Final = 7


def handle(
    services: Services, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    """Ask the coordinator."""
    if context.version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    future = group_coordinator(services).join(client_of(context), request)
    if future.done():
        return _told(future.result(), context.version)
    return _later(future, context.version)


async def _later(future: Awaitable[JoinGroupResponse], version: int) -> JoinGroupResponse:
    return _told(await future, version)


def _told(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Without a protocol, older clients are told an empty one and newer ones none."""
    if not response.protocol_name:
        response.protocol_name = None if version >= _NULL_PROTOCOL_SINCE else ""
    return response


def error_response(request: JoinGroupRequest, version: int, error: KafkaError) -> JoinGroupResponse:
    """The reply to a request that failed."""
    return _told(JoinGroupResponse(error_code=error.code), version)


API = Api(
    key=11,
    name="JoinGroup",
    versions=(0, 9),
    request=JoinGroupRequest,
    response=JoinGroupResponse,
    handle=handle,
    error_response=error_response,
)
