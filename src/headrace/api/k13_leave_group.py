"""LeaveGroup: members go, one up to version 2 and several at once from 3 on."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

_SEVERAL_SINCE: Final = 3


def handle(
    services: Services, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    """Ask the coordinator."""
    members = request.members
    if context.version < _SEVERAL_SINCE:
        members = [MemberIdentity(member_id=request.member_id)]
    future = group_coordinator(services).leave(request.group_id, members)
    if future.done():
        return _told(future.result(), context.version)
    return _later(future, context.version)


async def _later(future: Awaitable[LeaveGroupResponse], version: int) -> LeaveGroupResponse:
    return _told(await future, version)


def _told(response: LeaveGroupResponse, version: int) -> LeaveGroupResponse:
    """Where only one member can leave, its result is that of the request."""
    if version >= _SEVERAL_SINCE:
        return response
    code = response.error_code
    if code == ErrorCode.NONE:
        (member,) = response.members
        code = member.error_code
    return LeaveGroupResponse(error_code=code)


def error_response(request: LeaveGroupRequest, version: int, error: KafkaError) -> LeaveGroupResponse:
    """The reply to a request that failed."""
    return LeaveGroupResponse(error_code=error.code)


API = Api(
    key=13,
    name="LeaveGroup",
    versions=(0, 5),
    request=LeaveGroupRequest,
    response=LeaveGroupResponse,
    handle=handle,
    error_response=error_response,
)
