"""ListGroups: the groups that this broker coordinates, of all kinds, by state and type if asked for."""

from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.coordinator.refusals import told
from headrace.errors import KafkaError
from headrace.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(
    services: Services, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """Ask every partition that this broker leads."""
    coordinator = group_coordinator(services)
    try:
        groups = await coordinator.list_groups(request.states_filter, request.types_filter)
    except KafkaError as error:
        return ListGroupsResponse(error_code=told(error).code)
    return ListGroupsResponse(groups=groups)


def error_response(request: ListGroupsRequest, version: int, error: KafkaError) -> ListGroupsResponse:
    """The reply to a request that failed."""
    return ListGroupsResponse(error_code=error.code)


API = Api(
    key=16,
    name="ListGroups",
    versions=(0, 5),
    request=ListGroupsRequest,
    response=ListGroupsResponse,
    handle=handle,
    error_response=error_response,
)
