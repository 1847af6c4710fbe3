"""Fetches that wait: for enough bytes, for at most their time, and for nobody who has gone."""

import asyncio
from typing import Any

import pytest

from headrace.api.k01_fetch import API
from headrace.errors import ErrorCode
from tests.support_data import NODE, TOPIC, DataNode, batch, start_node, topic_id_of
from tests.support_fetch import LATEST, fetch_request, parts, records_of, wanted
from tests.support_log import on_loop

LONG_MS = 600_000


def park(
    node: DataNode, *partitions: Any, max_wait_ms: int = LONG_MS, **fields: Any
) -> "asyncio.Future[Any]":
    """Send a fetch that has to wait."""
    reply = node.call(API, fetch_request(*partitions, max_wait_ms=max_wait_ms, **fields), LATEST)
    assert isinstance(reply, asyncio.Future), f"answered at once: {reply}"
    return reply


async def started(**fields: Any) -> DataNode:
    node = await start_node(**fields)
    node.assign()
    return node


@on_loop
async def test_an_append_wakes_a_waiting_fetch() -> None:
    node = await started()
    reply = park(node, wanted(0))
    node.append(2)
    (part,) = parts(await reply)
    assert len(records_of(part)) == 2
    assert not node.partition().parked


@on_loop
async def test_appends_of_one_turn_are_answered_together() -> None:
    node = await started()
    reply = park(node, wanted(0))
    node.append(2)
    node.append(3)
    (part,) = parts(await reply)
    assert len(records_of(part)) == 5


@on_loop
async def test_a_fetch_waits_for_its_minimum_over_all_its_partitions() -> None:
    node = await started()
    node.assign(partition=1)
    size = len(batch(1))
    reply = park(node, wanted(0, 0), wanted(0, 1), min_bytes=3 * size)
    node.append(1, index=0)
    node.append(1, index=1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reply.done()
    node.append(1, index=0)
    assert sum(len(records_of(part)) for part in parts(await reply)) == 3


@on_loop
async def test_a_partition_counts_no_more_than_it_may_give() -> None:
    node = await started()
    size = len(batch(1))
    reply = park(node, wanted(0, max_bytes=size), min_bytes=2 * size)
    for _ in range(5):
        node.append(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reply.done()
    reply.cancel()


@on_loop
async def test_time_ends_the_wait_with_what_there_is() -> None:
    node = await started()
    node.append(1)
    reply = park(node, wanted(0), max_wait_ms=1, min_bytes=10**6)
    (part,) = parts(await reply)
    assert len(records_of(part)) == 1


@on_loop
async def test_no_wait_is_no_wait() -> None:
    node = await started()
    reply = node.call(API, fetch_request(wanted(0), max_wait_ms=0), LATEST)
    assert [part.error_code for part in parts(reply)] == [ErrorCode.NONE]


@on_loop
async def test_an_error_answers_at_once() -> None:
    node = await started()
    node.assign(partition=1)
    reply = node.call(API, fetch_request(wanted(0), wanted(99, 1), max_wait_ms=LONG_MS), LATEST)
    assert [part.error_code for part in parts(reply)] == [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE]


@on_loop
async def test_a_partition_that_does_not_exist_keeps_no_other_from_waiting() -> None:
    node = await started()
    reply = park(node, wanted(0, 0), wanted(0, 9))
    node.append(1)
    codes = {part.partition_index: part.error_code for part in parts(await reply)}
    assert codes == {0: ErrorCode.NONE, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@on_loop
async def test_a_client_that_goes_leaves_nothing_behind() -> None:
    node = await started()
    for _ in range(100):
        park(node, wanted(0)).cancel()
    await asyncio.sleep(0)
    assert not node.partition().parked


@on_loop
async def test_a_rolled_segment_wakes_a_fetch_on_the_old_one() -> None:
    node = await started()
    node.append(1)
    reply = park(node, wanted(1), min_bytes=10**6)
    node.partition().leader_log.roll(node.clock.now_ms())
    node.append(1)
    (part,) = parts(await reply)
    assert [record.offset for record in records_of(part)] == [1]


@on_loop
async def test_the_deletion_of_a_topic_wakes_its_readers() -> None:
    node = await started()
    reply = park(node, wanted(0))
    node.delete_topic()
    (part,) = parts(await reply)
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@on_loop
async def test_a_topic_made_anew_answers_the_readers_of_the_old_one() -> None:
    """Promise 10: a session or a waiting fetch never slips over to the new topic."""
    node = await started()
    reply = park(node, wanted(0))
    node.delete_topic()
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    node.append(1)
    (part,) = parts(await reply)
    assert (part.error_code, records_of(part)) == (ErrorCode.INCONSISTENT_TOPIC_ID, [])


@on_loop
async def test_a_new_leader_wakes_readers() -> None:
    node = await started()
    node.assign(replicas=(NODE, 2), isr=(NODE, 2), partition_epoch=1)
    reply = park(node, wanted(0, leader_epoch=0))
    node.assign(replicas=(NODE, 2), isr=(2,), leader=2, leader_epoch=1, partition_epoch=2)
    (part,) = parts(await reply)
    assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert part.current_leader.leader_id == 2


@on_loop
async def test_a_failing_directory_wakes_readers() -> None:
    """Promise 30."""
    node = await started()
    reply = park(node, wanted(0))
    node.disk.fail(28, when=lambda operation: operation.kind == "append")
    with pytest.raises(Exception, match="No space left"):
        node.append(1)
    (part,) = parts(await reply)
    assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@on_loop
async def test_only_replicated_records_wake_a_consumer() -> None:
    """Promise 6: what is not replicated is not seen."""
    node = await start_node()
    partition = node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    assert partition is not None
    reply = park(node, wanted(0))
    node.append(1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not reply.done()
    partition.on_follower_fetch(2, 1, 0, node.clock.now_ms())
    (part,) = parts(await reply)
    assert (part.high_watermark, len(records_of(part))) == (1, 1)


@on_loop
async def test_an_append_elsewhere_looks_at_no_other_fetch() -> None:
    node = await started()
    node.assign(partition=1)
    reply = park(node, wanted(0, 0))
    (parked,) = node.partition().parked
    node.append(1, index=1)
    assert list(node.partition().parked) == [parked]
    assert not node.partition(TOPIC, 1).parked
    reply.cancel()


@on_loop
async def test_closing_the_node_answers_those_who_wait() -> None:
    node = await started()
    reply = park(node, wanted(0))
    await node.replicas.close(node.clock.now_ms())
    assert parts(await reply)[0].partition_index == 0
