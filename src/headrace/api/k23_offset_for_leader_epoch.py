"""OffsetForLeaderEpoch: where the records of an epoch end, for clients and followers that look for the place
where their log parts from the leader's."""

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import KafkaError
from headrace.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    services: Services, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Look every partition up by itself; only its leader knows."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end_of(services, topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end_of(services: Services, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    result = EpochEndOffset(partition=asked.partition)
    try:
        partition = services.replicas.find(topic, asked.partition)
        log = partition.log_for(asked.current_leader_epoch, leader_only=True)
    except KafkaError as error:
        result.error_code = error.code
        return result
    end = log.end_offset_for_epoch(asked.leader_epoch)
    if end is not None:
        result.leader_epoch, result.end_offset = end.epoch, end.end_offset
    return result


def error_response(
    request: OffsetForLeaderEpochRequest, version: int, error: KafkaError
) -> OffsetForLeaderEpochResponse:
    """The same error for every partition."""
    topics = []
    for topic in request.topics:
        results = [
            EpochEndOffset(partition=each.partition, error_code=error.code) for each in topic.partitions
        ]
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    return OffsetForLeaderEpochResponse(topics=topics)


API = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions=(2, 4),
    request=OffsetForLeaderEpochRequest,
    response=OffsetForLeaderEpochResponse,
    handle=handle,
    error_response=error_response,
)
