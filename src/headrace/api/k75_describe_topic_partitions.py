"""DescribeTopicPartitions: the partitions of topics in the order of names, page by page.

A page holds at most as many partitions as the request and `max.request.partition.size.limit` allow, and says
where the next one begins. Asking for no topic means all of them.
"""

from collections.abc import Iterable
from typing import Final

from headrace.api.authorized_operations import TOPIC_OPERATIONS
from headrace.api.brokers import OnlineReplicas, has_listener
from headrace.api.context import RequestContext
from headrace.api.missing_topics import missing_topic_error
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import TopicState
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_NO_LEADER: Final = -1


def handle(
    services: Services, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    asks_for_all = not request.topics
    given: Iterable[str] = services.image.topics if asks_for_all else [topic.name for topic in request.topics]
    names = sorted({name for name in given if name >= first})
    if cursor is not None:
        _check_cursor(cursor, names, asks_for_all=asks_for_all)
    elif "" in names:
        # Kafka takes a topic without name for the one at the cursor, and stumbles when there is no cursor.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    limit = min(services.config.integer("max.request.partition.size.limit"), request.response_partition_limit)
    response = DescribeTopicPartitionsResponse()
    room = max(limit, 1)
    for name in names:
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = services.image.topics.get(name)
        if topic is None:
            if not asks_for_all:
                response.topics.append(_missing(name))
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        end = min(len(topic.partitions), start + room)
        response.topics.append(_topic(services.image, context.listener, topic, range(start, end)))
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        room -= len(response.topics[-1].partitions)
    return response


def _check_cursor(cursor: Cursor, names: list[str], *, asks_for_all: bool) -> None:
    if not asks_for_all and cursor.topic_name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest cursor partition must be valid: {cursor.partition_index}",
        )


def _topic(
    image: MetadataImage, listener: str, topic: TopicState, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    online = OnlineReplicas(image, listener)
    partitions = []
    for index in indexes:
        partition = topic.partitions.get(index)
        if partition is None:
            continue
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=partition.leader if has_listener(image, partition.leader, listener) else _NO_LEADER,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=online.offline(partition),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic_error(name),
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def error_response(
    request: DescribeTopicPartitionsRequest, version: int, error: KafkaError
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=error.code)
            for topic in request.topics
        ]
    )


API: Final = Api(
    key=75,
    name="DescribeTopicPartitions",
    versions=(0, 0),
    request=DescribeTopicPartitionsRequest,
    response=DescribeTopicPartitionsResponse,
    handle=handle,
    error_response=error_response,
)
