"""DescribeProducers: the state of producers, partition by partition."""

from typing import Any

from headrace.api.k61_describe_producers import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from tests.support_data import NODE, NOW_MS, TOPIC, DataNode, batch, start_node
from tests.support_log import on_loop


async def describe(node: DataNode, index: int = 0, topic: str = TOPIC) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    response: Any = await node.ask(API, request)
    (found,) = response.topics[0].partitions
    assert (response.topics[0].name, found.partition_index) == (topic, index)
    result: PartitionResponse = found
    return result


@on_loop
async def test_idempotent_and_transactional_producers_are_told() -> None:
    """Promise 17: an open transaction can be found by its start."""
    node = await start_node()
    node.assign()
    node.append(1)
    node.append(3, producer_id=7, epoch=2, sequence=0)
    guard = node.partition().leader_log.start_verification(9, 0, 0, False, NOW_MS)
    data = bytearray(batch(2, producer_id=9, epoch=0, sequence=0, transactional=True))
    node.partition().append(data, 1, NOW_MS, guard=guard)
    found = await describe(node)
    assert found.error_code == ErrorCode.NONE
    told = [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.current_txn_start_offset)
        for each in found.active_producers
    ]
    assert told == [(7, 2, 2, -1), (9, 0, 1, 4)]
    assert {each.coordinator_epoch for each in found.active_producers} == {-1}
    assert all(each.last_timestamp >= NOW_MS for each in found.active_producers)


@on_loop
async def test_wrong_topics_and_partitions_are_told_apart() -> None:
    node = await start_node()
    node.assign()
    absent = await describe(node, topic="absent")
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert absent.error_message == "This server does not host this topic-partition."
    beyond = await describe(node, 5)
    assert (beyond.error_code, beyond.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    bad = await describe(node, topic="no such name!")
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert bad.error_message is not None
    assert bad.error_message.startswith("Topic name is invalid")


@on_loop
async def test_a_follower_answers_and_an_offline_partition_does_not() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), leader=2)
    assert (await describe(node)).error_code == ErrorCode.NONE
    node.partition().go_offline()
    assert (await describe(node)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
