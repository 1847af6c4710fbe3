"""Produce to topics with `flush.messages`: nothing is acknowledged or seen before it is on disk."""

import asyncio
from typing import Any

import pytest

from headrace.api.k00_produce import API
from headrace.errors import ErrorCode
from headrace.log.log_reads import Isolation
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.replication.partition import Partition
from tests.support_data import TOPIC, DataNode, batch, start_node
from tests.support_log import PausingDisk, on_loop


async def node_with(partitions: int = 1, messages: int = 1) -> tuple[DataNode, PausingDisk]:
    disk = PausingDisk()
    node = await start_node(disk)
    for index in range(partitions):
        node.assign(partition=index, config={"flush.messages": str(messages)})
    return node, disk


def produce(node: DataNode, *indexes: int, acks: int = -1, **fields: Any) -> "asyncio.Future[Any]":
    """A request that is being answered."""
    data = [PartitionProduceData(index=each, records=batch(2, **fields)) for each in indexes or (0,)]
    topics = [TopicProduceData(name=TOPIC, partition_data=data)]
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)
    return asyncio.ensure_future(node.ask(API, request, 12))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def codes(reply: Any) -> list[int]:
    return [each.error_code for topic in reply.responses for each in topic.partition_responses]


def seen(partition: Partition) -> int:
    """How many records a consumer is given."""
    found = partition.leader_log.read(0, 10_000, Isolation.HIGH_WATERMARK)
    return partition.leader_log.high_watermark if found.records is not None else 0


@pytest.mark.parametrize("acks", [-1, 1])
@on_loop
async def test_records_are_seen_and_acknowledged_once_they_are_on_disk(acks: int) -> None:
    node, disk = await node_with()
    disk.gate.clear()
    reply = produce(node, acks=acks)
    await settle()
    assert not reply.done()
    assert seen(node.partition()) == 0
    disk.gate.set()
    assert codes(await reply) == [ErrorCode.NONE]
    assert seen(node.partition()) == 2


@on_loop
async def test_records_below_the_number_are_seen_at_once_unless_earlier_ones_wait() -> None:
    node, disk = await node_with(messages=4)
    disk.gate.clear()
    assert codes(await produce(node)) == [ErrorCode.NONE]
    assert seen(node.partition()) == 2
    reply = produce(node)
    await settle()
    assert not reply.done()
    node.configure({"flush.messages": "1000"})
    assert codes(await produce(node)) == [ErrorCode.NONE]
    assert seen(node.partition()) == 2
    disk.gate.set()
    assert codes(await reply) == [ErrorCode.NONE]
    assert seen(node.partition()) == 6


@on_loop
async def test_records_come_to_be_seen_though_their_producer_has_left() -> None:
    node, disk = await node_with()
    disk.gate.clear()
    first = produce(node)
    await settle()
    second = produce(node)
    await settle()
    for reply in (first, second):
        reply.cancel()
    disk.gate.set()
    await settle()
    assert seen(node.partition()) == 4


@on_loop
async def test_the_partitions_of_a_request_are_synced_together() -> None:
    node, disk = await node_with(partitions=3)
    disk.gate.clear()
    reply = produce(node, 0, 1, 2)
    await settle()
    assert disk.waiting == 3
    disk.gate.set()
    assert codes(await reply) == [ErrorCode.NONE] * 3


@on_loop
async def test_a_repeated_batch_is_acknowledged_no_earlier_than_the_first() -> None:
    node, disk = await node_with()
    disk.gate.clear()
    first = produce(node, producer_id=7, epoch=0, sequence=0)
    await settle()
    again = produce(node, producer_id=7, epoch=0, sequence=0)
    await settle()
    assert not again.done()
    disk.gate.set()
    replies = [await first, await again]
    assert [codes(each) for each in replies] == [[ErrorCode.NONE]] * 2
    assert seen(node.partition()) == 2
