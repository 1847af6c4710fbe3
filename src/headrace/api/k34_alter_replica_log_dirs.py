"""AlterReplicaLogDirs: move partitions to another log directory of this broker.

The reply says that a move has begun; DescribeLogDirs tells how far it is."""

from logging import getLogger
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from headrace.types import TopicPartition

LOGGER: Final = getLogger(__name__)


def handle(
    services: Services, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin, redirect or call off a move for every partition named; the last directory named counts."""
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for partition, path in wanted.items():
        code = _move(services, partition, path)
        result = AlterReplicaLogDirPartitionResult(partition_index=partition.partition, error_code=code)
        topics.setdefault(partition.topic, []).append(result)
    return _response(topics)


def _move(services: Services, partition: TopicPartition, path: str) -> ErrorCode:
    try:
        services.replicas.moves.request(partition, path, services.clock.now_ms())
    except KafkaError as error:
        LOGGER.warning("%s is not moved to %s: %s", partition, path, error)
        # Tools know this one from before replicas could be followers of nobody.
        is_absent = error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.REPLICA_NOT_AVAILABLE if is_absent else error.code
    return ErrorCode.NONE


def _response(topics: dict[str, list[AlterReplicaLogDirPartitionResult]]) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=results)
            for name, results in topics.items()
        ]
    )


def error_response(
    request: AlterReplicaLogDirsRequest, version: int, error: KafkaError
) -> AlterReplicaLogDirsResponse:
    """The same error for every partition."""
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
                for index in topic.partitions
            )
    return _response(topics)


API = Api(
    key=34,
    name="AlterReplicaLogDirs",
    versions=(1, 2),
    request=AlterReplicaLogDirsRequest,
    response=AlterReplicaLogDirsResponse,
    handle=handle,
    error_response=error_response,
)
