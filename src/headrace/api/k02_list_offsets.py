"""ListOffsets: the first offset at or after a time, or one of the ends of the log.

Negative times are codes, each from the version on that brought it; older versions refuse it per partition."""

from collections import Counter
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.k01_fetch import isolation_of
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_reads import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    Isolation,
)
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_SINCE: Final = {
    EARLIEST_TIMESTAMP: 1,
    LATEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
_NEVER: Final = 32767
_DEBUGGING_REPLICA: Final = -2
_OFFSET_NOT_AVAILABLE_SINCE: Final = 5
_LEADER_EPOCH_SINCE: Final = 4


def handle(services: Services, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look every partition up by itself."""
    asked = Counter(
        (topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    )
    lookup = Lookup(services, context.version, request)
    topics: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        results = topics.setdefault(topic.name, {})
        for partition in topic.partitions:
            index = partition.partition_index
            if asked[topic.name, index] > 1:
                results[index] = failure(index, ErrorCode.INVALID_REQUEST)
            else:
                results[index] = lookup.find(topic.name, partition)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=name, partitions=list(results.values()))
            for name, results in topics.items()
        ]
    )


class Lookup:
    """What holds for all partitions of one request."""

    __slots__ = ("_isolation", "_leader_only", "_services", "_version")

    def __init__(self, services: Services, version: int, request: ListOffsetsRequest) -> None:
        self._services = services
        self._version = version
        self._isolation: Isolation = isolation_of(request.replica_id, request.isolation_level)
        self._leader_only = request.replica_id != _DEBUGGING_REPLICA

    def find(self, topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        """One partition's result."""
        index, timestamp = asked.partition_index, asked.timestamp
        if timestamp < 0 and self._version < _SINCE.get(timestamp, _NEVER):
            return failure(index, ErrorCode.UNSUPPORTED_VERSION)
        try:
            partition = self._services.replicas.find(topic, index)
            found = partition.offset_for_timestamp(
                timestamp, self._isolation, asked.current_leader_epoch, leader_only=self._leader_only
            )
        except KafkaError as error:
            return failure(index, self._code_of(error))
        if found is None:
            return failure(index, ErrorCode.NONE)
        epoch = found.leader_epoch
        return ListOffsetsPartitionResponse(
            partition_index=index,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=-1 if epoch is None or self._version < _LEADER_EPOCH_SINCE else epoch,
        )

    def _code_of(self, error: KafkaError) -> ErrorCode:
        """Clients that do not know of unavailable offsets are told to look for the leader again."""
        if error.code is ErrorCode.OFFSET_NOT_AVAILABLE and self._version < _OFFSET_NOT_AVAILABLE_SINCE:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return error.code


def failure(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    """A result without an offset."""
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def error_response(request: ListOffsetsRequest, version: int, error: KafkaError) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[failure(each.partition_index, error.code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


API = Api(
    key=2,
    name="ListOffsets",
    versions=(1, 11),
    request=ListOffsetsRequest,
    response=ListOffsetsResponse,
    handle=handle,
    error_response=error_response,
)
