"""DeleteGroups: take groups without members away, with their offsets. Every group by itself."""

from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    services: Services, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Ask the coordinator; a group that is named twice is deleted once."""
    group_ids = list(dict.fromkeys(request.groups_names))
    return DeleteGroupsResponse(results=await group_coordinator(services).delete(group_ids))


def error_response(request: DeleteGroupsRequest, version: int, error: KafkaError) -> DeleteGroupsResponse:
    """The same error for every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in request.groups_names
        ]
    )


API = Api(
    key=42,
    name="DeleteGroups",
    versions=(0, 2),
    request=DeleteGroupsRequest,
    response=DeleteGroupsResponse,
    handle=handle,
    error_response=error_response,
)
