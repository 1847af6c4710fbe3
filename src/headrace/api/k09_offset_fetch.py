"""OffsetFetch: how far groups have got in partitions.

One group up to version 7, several from 8 on; topics by name up to 9, by id from 10 on; without topics, all
that the group has committed."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.coordinator import GroupCoordinator
from headrace.groups.offset_fetches import NO_OFFSET
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from headrace.types import ZERO_UUID

_GROUP_ERRORS_SINCE: Final = 2
_SEVERAL_GROUPS_SINCE: Final = 8
_BY_TOPIC_ID_SINCE: Final = 10

_Finish = Callable[[OffsetFetchResponseGroup], OffsetFetchResponseGroup]


def handle(
    services: Services, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    """Every group by itself."""
    version = context.version
    coordinator = group_coordinator(services)
    asked = [
        _ask(services, coordinator, group, version, request.require_stable)
        for group in _groups(request, version)
    ]
    if all(future.done() for future, _ in asked):
        return _response([finish(future.result()) for future, finish in asked], version)
    return _later(asked, version)


async def _later(
    asked: "list[tuple[asyncio.Future[OffsetFetchResponseGroup], _Finish]]", version: int
) -> OffsetFetchResponse:
    return _response([finish(await future) for future, finish in asked], version)


def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= _SEVERAL_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _ask(
    services: Services,
    coordinator: GroupCoordinator,
    group: OffsetFetchRequestGroup,
    version: int,
    requires_stable: bool,
) -> "tuple[asyncio.Future[OffsetFetchResponseGroup], _Finish]":
    """What is asked, and what is done with the answer."""
    unknown: list[OffsetFetchResponseTopics] = []
    if version >= _BY_TOPIC_ID_SINCE and group.topics is not None:
        unknown = _name_topics(services, group)
    runtime = coordinator.runtime
    future = runtime.read(
        runtime.partition_for(group.group_id),
        lambda shard, now_ms: shard.fetches.fetch(group, requires_stable),
        refuse=lambda error: _refused(group, error, version),
    )

    def finish(response: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if response.error_code:
            return response
        if version >= _BY_TOPIC_ID_SINCE and group.topics is None:
            response.topics = [topic for topic in response.topics if _has_id(services, topic)]
        response.topics += unknown
        return response

    return future, finish


def _name_topics(services: Services, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Find the topics that are asked for by id; the results of those that do not exist."""
    known, unknown = [], []
    for topic in group.topics or ():
        found = services.image.topics_by_id.get(topic.topic_id)
        if found is None:
            unknown.append(_no_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = found.name
            known.append(topic)
    group.topics = known
    return unknown


def _has_id(services: Services, topic: OffsetFetchResponseTopics) -> bool:
    """Give a topic its id; one that is gone has none, and can't be told of."""
    found = services.image.topics.get(topic.name)
    if found is not None:
        topic.topic_id = found.id
    return topic.topic_id != ZERO_UUID


def _refused(group: OffsetFetchRequestGroup, error: KafkaError, version: int) -> OffsetFetchResponseGroup:
    code = error.code
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        # Older consumers do not know this one here, and would not look for the coordinator again.
        code = ErrorCode.NOT_COORDINATOR
    if version >= _GROUP_ERRORS_SINCE:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    topics = [_no_offsets(topic, code) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _no_offsets(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=code)
            for index in topic.partition_indexes
        ],
    )


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= _SEVERAL_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


def error_response(request: OffsetFetchRequest, version: int, error: KafkaError) -> OffsetFetchResponse:
    """The same error for every group, or for every partition where groups have none."""
    groups = _groups(request, version)
    if version >= _GROUP_ERRORS_SINCE:
        found = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code) for group in groups]
    else:
        found = [
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=[_no_offsets(topic, error.code) for topic in group.topics or ()],
            )
            for group in groups
        ]
    return _response(found, version)


API = Api(
    key=9,
    name="OffsetFetch",
    versions=(1, 10),
    request=OffsetFetchRequest,
    response=OffsetFetchResponse,
    handle=handle,
    error_response=error_response,
)
