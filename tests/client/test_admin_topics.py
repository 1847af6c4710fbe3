"""Topics by the client's administrative calls: every item has its own result, what may pass is retried."""

import asyncio
from uuid import UUID

import pytest

from headrace.client.admin.outcomes import SeveralRefused
from headrace.client.admin.topic_descriptions import describe_topics
from headrace.client.admin.topics import (
    MorePartitions,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topics,
    delete_topics_by_id,
    list_topics,
)
from headrace.client.errors import BrokerRefused, UnsupportedByBroker
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from headrace.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from headrace.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from headrace.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support_client_admin import ScriptedCluster

ID = UUID(int=7)
OTHER_ID = UUID(int=8)


def created(name: str, code: int = 0, message: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, topic_id=ID, error_code=code, error_message=message, num_partitions=3
    )


def test_each_topic_is_created_or_refused_by_itself() -> None:
    reply = CreateTopicsResponse(topics=[created("a"), created("b", ErrorCode.INVALID_CONFIG, "bad key")])
    scripted = ScriptedCluster(reply)
    outcomes = asyncio.run(create_topics(scripted.cluster, [NewTopic("a", 3), NewTopic("b")]))
    assert outcomes.done["a"].partitions == 3
    assert outcomes.done["a"].id == ID
    assert str(outcomes.refused["b"]) == "topic 'b': INVALID_CONFIG: bad key"
    assert scripted.sent[0][0] == "controller"
    with pytest.raises(BrokerRefused, match="bad key"):
        outcomes.all()


def test_several_refusals_are_raised_together() -> None:
    results = [created(name, ErrorCode.POLICY_VIOLATION, f"not {name}") for name in ("a", "b")]
    scripted = ScriptedCluster(CreateTopicsResponse(topics=results))
    outcomes = asyncio.run(create_topics(scripted.cluster, [NewTopic("a"), NewTopic("b")]))
    with pytest.raises(SeveralRefused, match=r"not a.*not b") as caught:
        outcomes.all()
    assert len(caught.value.refusals) == 2


def test_only_topics_that_were_throttled_are_asked_for_again() -> None:
    throttled = created("b", ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    scripted = ScriptedCluster(
        CreateTopicsResponse(topics=[created("a"), throttled], throttle_time_ms=1),
        CreateTopicsResponse(topics=[throttled], throttle_time_ms=1),
        CreateTopicsResponse(topics=[created("b")]),
    )
    outcomes = asyncio.run(create_topics(scripted.cluster, [NewTopic("a"), NewTopic("b")]))
    assert set(outcomes.all()) == {"a", "b"}
    names = [[topic.name for topic in request.topics] for request in scripted.requests]
    assert names == [["a", "b"], ["b"], ["b"]]


def test_throttling_that_outlasts_the_time_is_the_refusal() -> None:
    reply = CreateTopicsResponse(topics=[created("a", ErrorCode.THROTTLING_QUOTA_EXCEEDED)])
    scripted = ScriptedCluster(reply, reply, default_api_timeout_ms=1)
    outcomes = asyncio.run(create_topics(scripted.cluster, [NewTopic("a")], timeout_ms=0))
    assert outcomes.refused["a"].code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_an_item_that_the_reply_leaves_out_is_refused() -> None:
    outcomes = asyncio.run(create_topics(ScriptedCluster(CreateTopicsResponse()).cluster, [NewTopic("a")]))
    assert "no result" in str(outcomes.refused["a"])


def test_assignments_stand_for_numbers_of_partitions_and_replicas() -> None:
    scripted = ScriptedCluster(CreateTopicsResponse(topics=[created("a")]))
    new = NewTopic("a", 5, 3, assignments={1: [2, 1], 0: [1, 2]}, configs={"retention.ms": "5"})
    asyncio.run(create_topics(scripted.cluster, [new], validate_only=True))
    (request,) = scripted.requests
    (topic,) = request.topics
    assert request.validate_only
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [(each.partition_index, each.broker_ids) for each in topic.assignments] == [
        (0, [1, 2]),
        (1, [2, 1]),
    ]
    assert [(each.name, each.value) for each in topic.configs] == [("retention.ms", "5")]


def test_a_topic_is_not_created_twice_in_one_call() -> None:
    with pytest.raises(ValueError, match="twice"):
        asyncio.run(create_topics(ScriptedCluster().cluster, [NewTopic("a"), NewTopic("a")]))


def test_partitions_are_added_with_and_without_assignments() -> None:
    reply = CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name="a"),
            CreatePartitionsTopicResult(
                name="b", error_code=ErrorCode.INVALID_PARTITIONS, error_message="fewer"
            ),
        ]
    )
    scripted = ScriptedCluster(reply)
    wanted = {"a": MorePartitions(3, [[1], [2]]), "b": MorePartitions(1)}
    outcomes = asyncio.run(add_partitions(scripted.cluster, wanted))
    assert set(outcomes.done) == {"a"}
    assert "fewer" in str(outcomes.refused["b"])
    first, second = scripted.requests[0].topics
    assert [each.broker_ids for each in first.assignments] == [[1], [2]]
    assert second.assignments is None


def test_topics_are_deleted_by_name() -> None:
    reply = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="a", topic_id=ID),
            DeletableTopicResult(name="b", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
    )
    outcomes = asyncio.run(delete_topics(ScriptedCluster(reply).cluster, ["a", "b"]))
    assert set(outcomes.done) == {"a"}
    assert outcomes.refused["b"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_are_deleted_by_id() -> None:
    reply = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="a", topic_id=ID),
            DeletableTopicResult(name=None, topic_id=OTHER_ID, error_code=ErrorCode.UNKNOWN_TOPIC_ID),
        ]
    )
    scripted = ScriptedCluster(reply)
    outcomes = asyncio.run(delete_topics_by_id(scripted.cluster, [ID, OTHER_ID]))
    assert set(outcomes.done) == {ID}
    assert outcomes.refused[OTHER_ID].code == ErrorCode.UNKNOWN_TOPIC_ID
    assert scripted.requests[0].topic_names == []


def listed(name: str, *, internal: bool = False, code: int = 0) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1])
    return MetadataResponseTopic(
        name=name, topic_id=ID, is_internal=internal, error_code=code, partitions=[partition]
    )


def test_listing_leaves_out_internal_topics_unless_wanted() -> None:
    reply = MetadataResponse(topics=[listed("z"), listed("__offsets", internal=True), listed("a")])
    shown = asyncio.run(list_topics(ScriptedCluster(reply).cluster))
    assert [(topic.name, topic.partitions, topic.replication_factor) for topic in shown] == [
        ("a", 1, 2),
        ("z", 1, 2),
    ]
    everything = asyncio.run(list_topics(ScriptedCluster(reply).cluster, internal=True))
    assert [topic.name for topic in everything] == ["__offsets", "a", "z"]


def page(*topics: tuple[str, list[int]], cursor: tuple[str, int] | None = None) -> Message:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=ID,
                partitions=[
                    DescribeTopicPartitionsResponsePartition(
                        partition_index=each, leader_id=-1 if each else 1
                    )
                    for each in partitions
                ],
            )
            for name, partitions in topics
        ],
        next_cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def test_pages_of_partitions_are_put_together() -> None:
    scripted = ScriptedCluster(
        page(("a", [0, 1]), ("b", [0]), cursor=("b", 1)), page(("b", [1, 2]), ("c", [0]))
    )
    outcomes = asyncio.run(describe_topics(scripted.cluster, ["c", "b", "a"], page_partitions=3))
    found = {name: [each.partition for each in topic.partitions] for name, topic in outcomes.all().items()}
    assert found == {"a": [0, 1], "b": [0, 1, 2], "c": [0]}
    assert outcomes.done["b"].partitions[1].leader is None
    first, second = scripted.requests
    assert isinstance(first, DescribeTopicPartitionsRequest)
    assert (first.response_partition_limit, first.cursor) == (3, None)
    assert [topic.name for topic in second.topics] == ["b", "c"]
    assert (second.cursor.topic_name, second.cursor.partition_index) == ("b", 1)


def test_a_topic_deleted_between_pages_is_refused_and_the_rest_goes_on() -> None:
    gone = DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(name="a", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        ],
        next_cursor=Cursor(topic_name="a", partition_index=1),
    )
    scripted = ScriptedCluster(page(("a", [0]), cursor=("a", 1)), gone, page(("b", [0])))
    outcomes = asyncio.run(describe_topics(scripted.cluster, ["a", "b"]))
    assert set(outcomes.done) == {"b"}
    assert "there is no such topic" in str(outcomes.refused["a"])


def test_a_broker_that_repeats_a_page_does_not_hold_the_call_forever() -> None:
    again = page(("a", [0]), cursor=("a", 1))
    with pytest.raises(BrokerRefused, match="same page"):
        asyncio.run(describe_topics(ScriptedCluster(again, again, again).cluster, ["a"]))


def test_brokers_without_pages_are_asked_for_metadata() -> None:
    missing = MetadataResponseTopic(name="b", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    scripted = ScriptedCluster(
        UnsupportedByBroker("broker 1", "DescribeTopicPartitions", "no"),
        MetadataResponse(topics=[listed("a"), missing]),
    )
    outcomes = asyncio.run(describe_topics(scripted.cluster, ["a", "b"]))
    assert outcomes.done["a"].partitions[0].in_sync == (1,)
    assert outcomes.done["a"].partitions[0].eligible is None
    assert set(outcomes.refused) == {"b"}
    assert isinstance(scripted.requests[1], MetadataRequest)
    assert not scripted.requests[1].allow_auto_topic_creation


def test_describing_nothing_asks_nobody() -> None:
    scripted = ScriptedCluster()
    assert asyncio.run(describe_topics(scripted.cluster, [])).done == {}
    assert scripted.sent == []
