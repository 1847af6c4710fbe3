"""DeleteTopics: topics by name or (since version 6) id, each with its own result. The controller decides."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def handle(
    services: Services, context: RequestContext, request: DeleteTopicsRequest
) -> Awaitable[DeleteTopicsResponse]:
    return services.controller.delete_topics(request, context.version)


def error_response(request: DeleteTopicsRequest, version: int, error: KafkaError) -> DeleteTopicsResponse:
    named = [DeleteTopicState(name=name) for name in request.topic_names]
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error.code)
            for topic in (*named, *request.topics)
        ]
    )


API: Final = Api(
    key=20,
    name="DeleteTopics",
    versions=(1, 6),
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
    handle=handle,
    error_response=error_response,
)
