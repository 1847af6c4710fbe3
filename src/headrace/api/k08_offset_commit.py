"""OffsetCommit: remember how far a group has got in partitions.

Topics are named up to version 9 and given by id from 10 on. Every partition has a result of its own; one that
does not exist keeps nobody from committing for the others."""

from collections.abc import Awaitable
from typing import Final
from uuid import UUID

from headrace.api.context import RequestContext
from headrace.api.group_answers import at_once, group_coordinator
from headrace.api.services import Api, Services
from headrace.coordinator.shard import Decision
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.shard import GroupShard
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.types import ZERO_UUID

_BY_TOPIC_ID_SINCE: Final = 10


def handle(
    services: Services, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    """Commit what can be committed, and say of the rest why it can't."""
    version = context.version
    wanted = request.topics
    results = Results(version >= _BY_TOPIC_ID_SINCE)
    request.topics = [topic for topic in wanted if _is_there(services.image, topic, results, version)]
    if not request.topics:
        return OffsetCommitResponse(topics=results.topics)
    runtime = group_coordinator(services).runtime

    def decide(shard: GroupShard, now_ms: int) -> Decision[OffsetCommitResponse]:
        decision = shard.commits.commit(request, version, now_ms)
        if results.topics:
            decision.reply = results.merged(decision.reply)
        return decision

    def refuse(error: KafkaError) -> OffsetCommitResponse:
        return results.merged(_failure(request.topics, error.code))

    return at_once(runtime.write(runtime.partition_for(request.group_id), decide, refuse=refuse, joins=True))


def _is_there(
    image: MetadataImage, topic: OffsetCommitRequestTopic, results: "Results", version: int
) -> bool:
    """Find the name of a topic by its id or the other way round; what is missing gets its result here."""
    if version >= _BY_TOPIC_ID_SINCE:
        found = image.topics_by_id.get(topic.topic_id)
        if found is None:
            results.refuse(topic, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            return False
        topic.name = found.name
    else:
        found = image.topics.get(topic.name)
        if found is None:
            results.refuse(topic, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return False
        topic.topic_id = found.id
    known = found.partitions
    for partition in topic.partitions:
        if partition.partition_index not in known:
            break
    else:
        return bool(topic.partitions)
    missing = [each for each in topic.partitions if each.partition_index not in known]
    topic.partitions = [each for each in topic.partitions if each.partition_index in known]
    refused = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
    results.refuse(refused, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return bool(topic.partitions)


class Results:
    """What is known before the coordinator is asked, by topic."""

    __slots__ = ("_by_id", "topics")

    def __init__(self, by_id: bool) -> None:
        self._by_id = by_id
        self.topics: list[OffsetCommitResponseTopic] = []

    def refuse(self, topic: OffsetCommitRequestTopic, topic_id: UUID, code: ErrorCode) -> None:
        """The same code for all partitions of a topic."""
        result = self._find(topic.name, topic_id)
        if result is None:
            result = OffsetCommitResponseTopic(name=topic.name, topic_id=topic_id)
            self.topics.append(result)
        result.partitions += [
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ]

    def merged(self, response: OffsetCommitResponse) -> OffsetCommitResponse:
        """The coordinator's results beside these."""
        if not self.topics:
            return response
        for topic in response.topics:
            known = self._find(topic.name, topic.topic_id)
            if known is None:
                self.topics.append(topic)
            else:
                known.partitions += topic.partitions
        return OffsetCommitResponse(topics=self.topics)

    def _find(self, name: str, topic_id: UUID) -> OffsetCommitResponseTopic | None:
        for topic in self.topics:
            if topic.topic_id == topic_id if self._by_id else topic.name == name:
                return topic
        return None


def _failure(topics: list[OffsetCommitRequestTopic], code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def error_response(request: OffsetCommitRequest, version: int, error: KafkaError) -> OffsetCommitResponse:
    """The same error for every partition."""
    return _failure(request.topics, error.code)


API = Api(
    key=8,
    name="OffsetCommit",
    versions=(2, 10),
    request=OffsetCommitRequest,
    response=OffsetCommitResponse,
    handle=handle,
    error_response=error_response,
)
