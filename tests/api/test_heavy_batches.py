"""Produce with batches that take long to look through: a worker does it, and nothing overtakes them."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from headrace.api.k00_produce import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.rules import INFLATED_AT_ONCE_MAX, RECORDS_AT_ONCE_MAX
from headrace.testing.workers import InlineWorkers
from tests.support_data import NODE, NOW_MS, TOPIC, DataNode, batch, start_node
from tests.support_log import on_loop

T = TypeVar("T")
MANY = RECORDS_AT_ONCE_MAX + 1
LIMIT = 6 * 1024 * 1024


class GatedWorkers(InlineWorkers):
    """Workers that begin when they are let."""

    __slots__ = ("gate",)

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        await self.gate.wait()
        return await super().run(function, *arguments)


def many_records(compression: Compression = Compression.NONE, **fields: Any) -> bytes:
    return batch(
        MANY, value=b"", keys=[None] * MANY, timestamp=NOW_MS - MANY, compression=compression, **fields
    )


def bomb(size: int) -> bytes:
    return build_batch([NewRecord(NOW_MS, b"k", bytes(size), ())], compression=Compression.ZSTD)


def request(*records: bytes, acks: int = -1) -> ProduceRequest:
    """A request with a batch for each of the first partitions."""
    data = [PartitionProduceData(index=index, records=each) for index, each in enumerate(records)]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
    )


async def node_with(partitions: int = 1, **properties: str) -> tuple[DataNode, GatedWorkers]:
    keys = {name.replace("_", "."): text for name, text in properties.items()}
    node = await start_node(properties=keys)
    for index in range(partitions):
        node.assign(partition=index)
    workers = GatedWorkers()
    node.services.workers = workers
    return node, workers


def results(reply: Any) -> list[tuple[int, int]]:
    """Error code and first offset of each partition."""
    return [(each.error_code, each.base_offset) for each in reply.responses[0].partition_responses]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
@on_loop
async def test_a_batch_of_very_many_records_is_looked_through_elsewhere(compression: Compression) -> None:
    node, workers = await node_with()
    reply = asyncio.ensure_future(node.call(API, request(many_records(compression)), 12))
    assert node.connection.is_held
    await asyncio.sleep(0)
    assert node.partition().leader_log.log_end_offset == 0
    workers.gate.set()
    assert results(await reply) == [(ErrorCode.NONE, 0)]
    assert workers.runs == 1
    assert not node.connection.is_held
    assert node.partition().leader_log.high_watermark == MANY
    assert node.partition().counters.produce_requests == 1
    assert node.partition().counters.messages_in == MANY


@on_loop
async def test_the_bytes_are_those_that_came_in() -> None:
    node, workers = await node_with()
    workers.gate.set()
    sent = many_records()
    await node.call(API, request(sent), 12)
    found = node.partition().leader_log.read(0, 10_000_000).records
    assert found is not None
    # The base offset stays 0, and the leader epoch is not under the checksum.
    assert found.read()[16:] == sent[16:]


@on_loop
async def test_what_inflates_out_of_proportion_is_looked_through_elsewhere_within_bounds() -> None:
    node, workers = await node_with(3, headrace_batch_decompressed_max_bytes=str(LIMIT))
    workers.gate.set()
    light, heavy, huge = bomb(1000), bomb(INFLATED_AT_ONCE_MAX + 1), bomb(LIMIT + 1)
    assert len(huge) < 1000
    reply = await node.ask(API, request(light, heavy, huge), 12)
    assert results(reply) == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0), (ErrorCode.MESSAGE_TOO_LARGE, -1)]
    assert workers.runs == 2
    ends = [node.partition(TOPIC, index).leader_log.log_end_offset for index in range(3)]
    assert ends == [1, 1, 0]


@on_loop
async def test_a_batch_that_is_found_bad_elsewhere_is_refused_with_its_reason() -> None:
    node, workers = await node_with(2)
    node.configure({"cleanup.policy": "compact"})
    workers.gate.set()
    reply = await node.ask(API, request(many_records(), batch(1)), 12)
    assert results(reply) == [(ErrorCode.INVALID_RECORD, -1), (ErrorCode.NONE, 0)]
    bad = reply.responses[0].partition_responses[0]
    assert len(bad.record_errors) == MANY
    assert bad.error_message
    assert node.partition().leader_log.log_end_offset == 0


@on_loop
async def test_a_partition_that_another_leads_by_then_takes_nothing() -> None:
    node, workers = await node_with()
    reply = asyncio.ensure_future(node.call(API, request(many_records()), 12))
    await asyncio.sleep(0)
    node.assign(replicas=(NODE, 2), isr=(2,), leader=2, leader_epoch=1, partition_epoch=1)
    workers.gate.set()
    answered = await reply
    assert results(answered) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert answered.responses[0].partition_responses[0].current_leader.leader_id == 2


@on_loop
async def test_without_acknowledgement_a_refusal_closes_the_connection() -> None:
    """Promise 9."""
    node, workers = await node_with()
    node.configure({"cleanup.policy": "compact"})
    workers.gate.set()
    assert await node.ask(API, request(many_records(), acks=0), 12) is None
    assert node.connection.closed_because is not None
    assert "INVALID_RECORD" in node.connection.closed_because


@on_loop
async def test_a_retried_heavy_batch_is_known() -> None:
    """Promise 14."""
    node, workers = await node_with()
    workers.gate.set()
    sent = many_records(producer_id=5, epoch=0, sequence=0)
    for _ in range(2):
        assert results(await node.ask(API, request(sent), 12)) == [(ErrorCode.NONE, 0)]
    assert node.partition().leader_log.log_end_offset == MANY
