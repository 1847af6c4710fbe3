"""SyncGroup: the leader of a classic group brings the assignment, and every member waits for its own."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.group_answers import at_once, client_of, group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_SINCE: Final = 5


def handle(
    services: Services, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
    """Ask the coordinator; from version 5 on members have to say which protocol they were told."""
    if context.version >= _PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return at_once(group_coordinator(services).sync(client_of(context), request))


def error_response(request: SyncGroupRequest, version: int, error: KafkaError) -> SyncGroupResponse:
    """The reply to a request that failed."""
    return SyncGroupResponse(error_code=error.code)


API = Api(
    key=14,
    name="SyncGroup",
    versions=(0, 5),
    request=SyncGroupRequest,
    response=SyncGroupResponse,
    handle=handle,
    error_response=error_response,
)
