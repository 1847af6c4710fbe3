"""CreatePartitions: more partitions for existing topics, each with its own result. The controller decides."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


def handle(
    services: Services, context: RequestContext, request: CreatePartitionsRequest
) -> Awaitable[CreatePartitionsResponse]:
    return services.controller.create_partitions(request)


def error_response(
    request: CreatePartitionsRequest, version: int, error: KafkaError
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=topic.name, error_code=error.code, error_message=error.message or None
            )
            for topic in request.topics
        ]
    )


API: Final = Api(
    key=37,
    name="CreatePartitions",
    versions=(0, 3),
    request=CreatePartitionsRequest,
    response=CreatePartitionsResponse,
    handle=handle,
    error_response=error_response,
)
