"""ConsumerGroupDescribe: epochs, members and assignments of consumer groups."""

from headrace.api.authorized_operations import GROUP_OPERATIONS
from headrace.api.consumer_protocol import check_consumer_protocol
from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.consumer_requests import describe_consumer_groups
from headrace.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


async def handle(
    services: Services, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Every group by itself."""
    check_consumer_protocol(services)
    groups = await describe_consumer_groups(group_coordinator(services), request.group_ids)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def error_response(
    request: ConsumerGroupDescribeRequest, version: int, error: KafkaError
) -> ConsumerGroupDescribeResponse:
    """The same error for every group."""
    return ConsumerGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.group_ids]
    )


API = Api(
    key=69,
    name="ConsumerGroupDescribe",
    versions=(0, 1),
    request=ConsumerGroupDescribeRequest,
    response=ConsumerGroupDescribeResponse,
    handle=handle,
    error_response=error_response,
)
