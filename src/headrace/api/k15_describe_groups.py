"""DescribeGroups: state, protocol and members of classic groups. One that does not exist is dead."""

from typing import Final

from headrace.api.authorized_operations import GROUP_OPERATIONS
from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_OPERATIONS_SINCE: Final = 3


async def handle(
    services: Services, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Every group by itself."""
    groups = await group_coordinator(services).describe(request.groups, context.version)
    if context.version >= _OPERATIONS_SINCE and request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)


def error_response(request: DescribeGroupsRequest, version: int, error: KafkaError) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups]
    )


API = Api(
    key=15,
    name="DescribeGroups",
    versions=(0, 6),
    request=DescribeGroupsRequest,
    response=DescribeGroupsResponse,
    handle=handle,
    error_response=error_response,
)
