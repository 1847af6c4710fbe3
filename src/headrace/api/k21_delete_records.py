"""DeleteRecords: give up everything before an offset.

The reply waits until all replicas have, or the client's time is up; it tells the low watermark of each
partition."""

from collections.abc import Awaitable
from typing import Final, NamedTuple

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.replication.partition import Partition
from headrace.replication.waits import Condition, wait_for_all

_NO_LOW_WATERMARK: Final = -1


class Deletion(NamedTuple):
    """A deletion that was done here, and is to be done elsewhere."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult


def handle(
    services: Services, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]:
    """Delete here, and wait for the other replicas if there are any."""
    deletions: list[Deletion] = []
    topics = []
    for topic in request.topics:
        results = [
            _delete(services, topic.name, each.partition_index, each.offset, deletions)
            for each in topic.partitions
        ]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    response = DeleteRecordsResponse(topics=topics)
    waiting = wait_for_all(((each.partition, _is_done(each)) for each in deletions), request.timeout_ms)
    return response if waiting is None else _finish(response, deletions, waiting)


def _delete(
    services: Services, topic: str, index: int, offset: int, deletions: list[Deletion]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK)
    try:
        if topic in INTERNAL_TOPICS and services.replicas.cluster.has_partition(topic, index):
            message = f"Cannot delete records of internal topic {topic}"
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        partition = services.replicas.find(topic, index)
        target = partition.delete_records(offset)
        result.low_watermark = partition.low_watermark
        deletions.append(Deletion(partition, target, result))
    except KafkaError as error:
        result.error_code = error.code
    return result


def _is_done(deletion: Deletion) -> Condition:
    return lambda: deletion.partition.low_watermark >= deletion.offset


async def _finish(
    response: DeleteRecordsResponse, deletions: list[Deletion], waiting: Awaitable[None]
) -> DeleteRecordsResponse:
    await waiting
    for partition, offset, result in deletions:
        try:
            low_watermark = _low_watermark(partition)
        except KafkaError as error:
            result.error_code, result.low_watermark = error.code, _NO_LOW_WATERMARK
            continue
        if low_watermark < offset:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        else:
            result.low_watermark = low_watermark
    return response


def _low_watermark(partition: Partition) -> int:
    if partition.is_offline:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    if partition.is_deleted:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition.low_watermark


def error_response(request: DeleteRecordsRequest, version: int, error: KafkaError) -> DeleteRecordsResponse:
    """The same error for every partition."""
    topics = []
    for topic in request.topics:
        results = [
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=_NO_LOW_WATERMARK, error_code=error.code
            )
            for each in topic.partitions
        ]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


API = Api(
    key=21,
    name="DeleteRecords",
    versions=(0, 2),
    request=DeleteRecordsRequest,
    response=DeleteRecordsResponse,
    handle=handle,
    error_response=error_response,
)
