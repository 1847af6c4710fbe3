"""ConsumerGroupHeartbeat: join, stay in and leave a consumer group. The reply tells what has changed."""

from collections.abc import Awaitable

from headrace.api.consumer_protocol import check_consumer_protocol
from headrace.api.context import RequestContext
from headrace.api.error_texts import default_text
from headrace.api.group_answers import at_once, client_of, group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.groups.consumer_requests import consumer_heartbeat
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    services: Services, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    """Ask the coordinator."""
    check_consumer_protocol(services)
    return at_once(consumer_heartbeat(group_coordinator(services), client_of(context), request))


def error_response(
    request: ConsumerGroupHeartbeatRequest, version: int, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    """The reply to a request that failed."""
    return ConsumerGroupHeartbeatResponse(
        error_code=error.code, error_message=error.message or default_text(error.code)
    )


API = Api(
    key=68,
    name="ConsumerGroupHeartbeat",
    versions=(0, 1),
    request=ConsumerGroupHeartbeatRequest,
    response=ConsumerGroupHeartbeatResponse,
    handle=handle,
    error_response=error_response,
)
