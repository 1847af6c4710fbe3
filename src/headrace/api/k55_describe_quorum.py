"""DescribeQuorum: leader, voters and observers of the metadata log, and how far each has come."""

from typing import Final

from headrace.api.context import RequestContext
from headrace.api.error_texts import default_text
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse


def handle(
    services: Services, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    return services.controller.describe_quorum(request, context.version)


def error_response(request: DescribeQuorumRequest, version: int, error: KafkaError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(error_code=error.code, error_message=default_text(error.code))


API: Final = Api(
    key=55,
    name="DescribeQuorum",
    versions=(0, 2),
    request=DescribeQuorumRequest,
    response=DescribeQuorumResponse,
    handle=handle,
    error_response=error_response,
)
