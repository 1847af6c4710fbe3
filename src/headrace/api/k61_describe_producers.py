"""DescribeProducers: what partitions know about their producers, to find hanging transactions by."""

from headrace.api.context import RequestContext
from headrace.api.error_texts import default_text
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.partition_log import PartitionLog
from headrace.metadata.topic_names import check_topic_name
from headrace.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

_NO_OFFSET = -1


def handle(
    services: Services, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Every partition by itself; replicas that do not lead answer, too."""
    return DescribeProducersResponse(topics=[_describe_topic(services, topic) for topic in request.topics])


def _describe_topic(services: Services, topic: TopicRequest) -> TopicResponse:
    try:
        check_topic_name(topic.name)
        if not services.replicas.cluster.has_topic(topic.name):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise KafkaError(code, default_text(code))
    except KafkaError as error:
        results = [_failure(index, error) for index in topic.partition_indexes]
    else:
        results = [_describe(services, topic.name, index) for index in topic.partition_indexes]
    return TopicResponse(name=topic.name, partitions=results)


def _describe(services: Services, topic: str, index: int) -> PartitionResponse:
    try:
        log = services.replicas.find(topic, index).log_for(-1, leader_only=False)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    return PartitionResponse(partition_index=index, active_producers=_producers_of(log))


def _producers_of(log: PartitionLog) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=(
                _NO_OFFSET if entry.transaction_first_offset is None else entry.transaction_first_offset
            ),
        )
        for entry in log.producers.entries.values()
    ]


def _failure(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(
        partition_index=index, error_code=error.code, error_message=error.message or None
    )


def error_response(
    request: DescribeProducersRequest, version: int, error: KafkaError
) -> DescribeProducersResponse:
    """The same error for every partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=error.code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


API = Api(
    key=61,
    name="DescribeProducers",
    versions=(0, 0),
    request=DescribeProducersRequest,
    response=DescribeProducersResponse,
    handle=handle,
    error_response=error_response,
)
