"""DescribeTopicPartitions: pages of partitions in the order of topics."""

from typing import Any
from uuid import UUID

import pytest

from headrace.api.k75_describe_topic_partitions import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.support_admin import ask, broker_record, image_of, services_of, topic_records

IMAGE = image_of(
    broker_record(),
    *topic_records("c", 0xC, [[1]] * 2),
    *topic_records("a", 0xA, [[1]] * 3, isr=[1], eligible_leader_replicas=[1], last_known_elr=[2]),
    *topic_records("b", 0xB, [[1, 9]]),
)


def describe(
    *names: str, texts: dict[str, str] | None = None, **fields: Any
) -> DescribeTopicPartitionsResponse:
    services, _ = services_of(IMAGE, texts)
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names], **fields)
    return ask(services, API, request, DescribeTopicPartitionsResponse, 0)


def told(reply: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in reply.topics]


def test_all_topics_come_in_the_order_of_names() -> None:
    reply = describe()
    assert told(reply) == [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]
    assert reply.next_cursor is None


def test_a_partition_is_told_with_eligible_and_offline_replicas() -> None:
    reply = describe("a", "b")
    first, second = reply.topics
    assert (first.topic_id, first.is_internal, first.topic_authorized_operations) == (
        UUID(int=0xA),
        False,
        3576,
    )
    partition = first.partitions[0]
    assert (partition.leader_id, partition.leader_epoch, partition.error_code) == (1, 3, 0)
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([1], [2])
    assert (second.partitions[0].replica_nodes, second.partitions[0].offline_replicas) == ([1, 9], [9])
    assert (second.partitions[0].eligible_leader_replicas, second.partitions[0].last_known_elr) == ([], [])


def test_pages_follow_each_other_without_gap() -> None:
    seen = []
    cursor = None
    while True:
        reply = describe(response_partition_limit=2, cursor=cursor)
        seen.append(told(reply))
        cursor = reply.next_cursor
        if cursor is None:
            break
    assert seen == [[("a", [0, 1])], [("a", [2]), ("b", [0])], [("c", [0, 1])]]


def test_the_next_page_begins_with_the_next_topic_when_one_ends_a_page() -> None:
    reply = describe(response_partition_limit=3)
    assert reply.next_cursor == Cursor(topic_name="b", partition_index=0)


@pytest.mark.parametrize("limit", [0, -5])
def test_a_page_has_at_least_one_partition(limit: int) -> None:
    assert told(describe(response_partition_limit=limit)) == [("a", [0])]


def test_the_brokers_limit_counts_too() -> None:
    assert told(describe(texts={"max.request.partition.size.limit": "1"})) == [("a", [0])]


def test_missing_topics_have_errors_of_their_own() -> None:
    reply = describe("nope", "b", "n/pe")
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [
        ("b", 0),
        ("n/pe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_topic_without_name_fails_the_request_as_in_kafka() -> None:
    reply = describe("a", "")
    assert [topic.error_code for topic in reply.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    reply = describe("a", "", cursor=Cursor(topic_name="", partition_index=0))
    assert [topic.error_code for topic in reply.topics] == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]


def test_a_cursor_may_stand_at_a_topic_that_is_gone() -> None:
    assert told(describe(cursor=Cursor(topic_name="aa", partition_index=4))) == [("b", [0]), ("c", [0, 1])]


def test_a_cursor_may_stand_behind_the_last_partition() -> None:
    reply = describe("c", cursor=Cursor(topic_name="c", partition_index=4))
    assert told(reply) == [("c", [])]


@pytest.mark.parametrize(
    "cursor", [Cursor(topic_name="c", partition_index=0), Cursor(topic_name="a", partition_index=-1)]
)
def test_a_bad_cursor_is_refused(cursor: Cursor) -> None:
    reply = describe("a", "b", cursor=cursor)
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
