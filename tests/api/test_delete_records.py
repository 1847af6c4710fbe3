"""DeleteRecords: the log's start moves, in all replicas, or the reason is told."""

import asyncio
from typing import Any

import pytest

from headrace.api.k21_delete_records import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.support_data import NODE, TOPIC, DataNode, start_node
from tests.support_log import on_loop


def request(*offsets: tuple[int, int], topic: str = TOPIC, timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=timeout_ms
    )


def told(response: Any) -> list[tuple[int, int]]:
    return [(each.error_code, each.low_watermark) for each in response.topics[0].partitions]


async def filled(**fields: Any) -> DataNode:
    node = await start_node()
    node.assign(**fields)
    node.append(10)
    return node


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
@on_loop
async def test_every_version_moves_the_log_start_at_once(version: int) -> None:
    """Promise 26."""
    node = await filled()
    assert told(node.call(API, request((0, 4)), version)) == [(0, 4)]
    assert node.partition().leader_log.log_start_offset == 4


@on_loop
async def test_minus_one_means_the_high_watermark() -> None:
    node = await filled()
    assert told(await node.ask(API, request((0, -1)))) == [(0, 10)]


@on_loop
async def test_the_start_never_moves_back() -> None:
    node = await filled()
    await node.ask(API, request((0, 6)))
    assert told(await node.ask(API, request((0, 2)))) == [(0, 6)]


@pytest.mark.parametrize("offset", [11, -2])
@on_loop
async def test_offsets_beyond_the_high_watermark_are_out_of_range(offset: int) -> None:
    node = await filled()
    assert told(await node.ask(API, request((0, offset)))) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert node.partition().leader_log.log_start_offset == 0


@pytest.mark.parametrize(
    ("policy", "code"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE), ("delete", ErrorCode.NONE)],
)
@on_loop
async def test_only_topics_that_delete_can_have_records_deleted(policy: str, code: ErrorCode) -> None:
    node = await filled(config={"cleanup.policy": policy})
    assert told(await node.ask(API, request((0, 3))))[0][0] == code


@on_loop
async def test_each_partition_has_its_own_result() -> None:
    node = await filled()
    node.assign(partition=1, replicas=(NODE, 2), leader=2)
    response = await node.ask(API, request((0, 1), (1, 1), (2, 1)))
    assert told(response) == [
        (ErrorCode.NONE, 1),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


@on_loop
async def test_internal_topics_are_spared() -> None:
    node = await start_node()
    node.assign("__consumer_offsets")
    response = await node.ask(API, request((0, -1), topic="__consumer_offsets"))
    assert told(response) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]


async def replicated() -> DataNode:
    node = await start_node()
    partition = node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    assert partition is not None
    node.append(10)
    partition.on_follower_fetch(2, 10, 0, node.clock.now_ms())
    return node


@on_loop
async def test_the_reply_waits_for_the_low_watermark_of_all_replicas() -> None:
    """Promise 26."""
    node = await replicated()
    reply = asyncio.ensure_future(node.ask(API, request((0, 7))))
    await asyncio.sleep(0)
    assert not reply.done()
    node.partition().on_follower_fetch(2, 10, 7, node.clock.now_ms())
    assert told(await reply) == [(0, 7)]
    assert not node.partition().waits


@on_loop
async def test_the_wait_ends_with_the_clients_time() -> None:
    node = await replicated()
    response = await node.ask(API, request((0, 7), timeout_ms=1))
    assert told(response) == [(ErrorCode.REQUEST_TIMED_OUT, 0)]


@on_loop
async def test_the_deletion_of_the_topic_ends_the_wait() -> None:
    node = await replicated()
    reply = asyncio.ensure_future(node.ask(API, request((0, 7))))
    await asyncio.sleep(0)
    node.delete_topic()
    assert told(await reply) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


@on_loop
async def test_what_was_deleted_stays_deleted_after_a_restart() -> None:
    node = await filled()
    await node.ask(API, request((0, 4)))
    again = await node.restart()
    assert again.partition().leader_log.log_start_offset == 4
