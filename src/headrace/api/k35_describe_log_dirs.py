"""DescribeLogDirs: the log directories, what is in them, and how much room is left."""

from collections.abc import Callable

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_directory import LogDirectory
from headrace.log.partition_log import PartitionLog
from headrace.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from headrace.replication.replicas import Replicas
from headrace.types import TopicPartition

_NO_LAG = -1


def handle(
    services: Services, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe every configured directory; those that are offline with an error."""
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions
        }
    directories = services.replicas.directories
    knows_cordons = services.image.metadata_version.has_cordoned_log_dirs
    results = []
    for path in directories.paths:
        directory = directories.online.get(path)
        if directory is None:
            results.append(DescribeLogDirsResult(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        result = _describe(services.replicas, directory, wanted)
        result.is_cordoned = knows_cordons and path in directories.cordoned
        results.append(result)
    return DescribeLogDirsResponse(results=results)


def _describe(
    replicas: Replicas, directory: LogDirectory, wanted: set[TopicPartition] | None
) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for is_future, logs in ((False, directory.logs), (True, directory.future_logs)):
        for partition, log in logs.items():
            if wanted is None or partition in wanted:
                lag = _lag_of(replicas, log, is_future=is_future)
                topics.setdefault(partition.topic, []).append(
                    DescribeLogDirsPartition(
                        partition_index=partition.partition,
                        partition_size=log.size,
                        offset_lag=lag,
                        is_future_key=is_future,
                    )
                )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()],
        total_bytes=_bytes_of(directory, directory.disk.total_bytes),
        usable_bytes=_bytes_of(directory, directory.disk.free_bytes),
    )


def _lag_of(replicas: Replicas, log: PartitionLog, *, is_future: bool) -> int:
    """How far a log is behind the high watermark, or a future one behind the present one."""
    partition = replicas.get(*log.partition)
    present = None if partition is None else partition.log
    if present is None:
        return _NO_LAG
    if is_future:
        return present.log_end_offset - log.log_end_offset
    return max(present.high_watermark - log.log_end_offset, 0)


def _bytes_of(directory: LogDirectory, ask: Callable[[str], int]) -> int:
    try:
        return ask(directory.path)
    except OSError as error:
        raise directory.health.fail("asking for the room left", error) from error


def error_response(
    request: DescribeLogDirsRequest, version: int, error: KafkaError
) -> DescribeLogDirsResponse:
    """An error of the whole."""
    return DescribeLogDirsResponse(error_code=error.code)


API = Api(
    key=35,
    name="DescribeLogDirs",
    versions=(1, 5),
    request=DescribeLogDirsRequest,
    response=DescribeLogDirsResponse,
    handle=handle,
    error_response=error_response,
)
