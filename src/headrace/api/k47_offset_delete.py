"""OffsetDelete: forget offsets of a group, except those of topics that its members are subscribed to."""

from collections.abc import Awaitable

from headrace.api.context import RequestContext
from headrace.api.group_answers import at_once, group_coordinator
from headrace.api.services import Api, Services
from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.shard import GroupShard
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(
    services: Services, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    """Partitions that do not exist have a result of their own; the group is asked in any case."""
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    runtime = group_coordinator(services).runtime
    missing: dict[str, list[int]] = {}
    request.topics = [topic for topic in request.topics if _is_there(services.image, topic, missing)]

    def decide(shard: GroupShard, now_ms: int) -> Decision[OffsetDeleteResponse]:
        decision = shard.commits.delete(request)
        decision.reply = _merged(missing, decision.reply)
        return decision

    return at_once(
        runtime.write(
            runtime.partition_for(request.group_id),
            decide,
            refuse=lambda error: OffsetDeleteResponse(error_code=error.code),
        )
    )


def _is_there(image: MetadataImage, topic: OffsetDeleteRequestTopic, missing: dict[str, list[int]]) -> bool:
    """Leave of a topic what exists; what does not is noted."""
    found = image.topics.get(topic.name)
    known = {} if found is None else found.partitions
    absent = [each.partition_index for each in topic.partitions if each.partition_index not in known]
    if absent or found is None:
        missing.setdefault(topic.name, []).extend(absent)
    topic.partitions = [each for each in topic.partitions if each.partition_index in known]
    return bool(topic.partitions)


def _merged(missing: dict[str, list[int]], response: OffsetDeleteResponse) -> OffsetDeleteResponse:
    if not missing:
        return response
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topics = {
        name: OffsetDeleteResponseTopic(
            name=name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes
            ],
        )
        for name, indexes in missing.items()
    }
    for topic in response.topics:
        if topic.name in topics:
            topics[topic.name].partitions += topic.partitions
        else:
            topics[topic.name] = topic
    return OffsetDeleteResponse(topics=list(topics.values()))


def error_response(request: OffsetDeleteRequest, version: int, error: KafkaError) -> OffsetDeleteResponse:
    """The reply to a request that failed."""
    return OffsetDeleteResponse(error_code=error.code)


API = Api(
    key=47,
    name="OffsetDelete",
    versions=(0, 0),
    request=OffsetDeleteRequest,
    response=OffsetDeleteResponse,
    handle=handle,
    error_response=error_response,
)
