"""CreateTopics: new topics, each with its own result. The controller decides."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def handle(
    services: Services, context: RequestContext, request: CreateTopicsRequest
) -> Awaitable[CreateTopicsResponse]:
    return services.controller.create_topics(request)


def error_response(request: CreateTopicsRequest, version: int, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message or None)
            for topic in request.topics
        ]
    )


API: Final = Api(
    key=19,
    name="CreateTopics",
    versions=(2, 7),
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
    handle=handle,
    error_response=error_response,
)
