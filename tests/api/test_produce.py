"""Produce: what is appended, what is refused with which code, and when a reply comes."""

import asyncio
from typing import Any

import pytest

from headrace.api import k00_produce
from headrace.api.k00_produce import API
from headrace.api.produce_form import is_transactional
from headrace.errors import ErrorCode
from headrace.log.log_reads import Isolation
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from headrace.records.batch import Batch
from headrace.records.compression import Compression
from headrace.testing.memory_disk import Operation
from tests.support_data import NODE, NOW_MS, TOPIC, DataNode, batch, start_node, topic_id_of
from tests.support_log import content, on_loop, only_batch

LATEST = API.versions[1]
ALL_VERSIONS = range(API.versions[0], API.versions[1] + 1)


def request(
    *parts: tuple[int, bytes | None], topic: str = TOPIC, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic_id_of(topic),
                partition_data=[PartitionProduceData(index=index, records=data) for index, data in parts],
            )
        ],
    )


def results(response: Any) -> list[PartitionProduceResponse]:
    return [result for topic in response.responses for result in topic.partition_responses]


async def produce(
    node: DataNode, data: bytes | None, version: int = LATEST, **fields: Any
) -> PartitionProduceResponse:
    (result,) = results(await node.ask(API, request((0, data), **fields), version))
    return result


def stored(node: DataNode, index: int = 0) -> bytes:
    log = node.partition(TOPIC, index).log
    assert log is not None
    return content(log)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@on_loop
async def test_every_version_appends_and_tells_the_offset(version: int) -> None:
    node = await start_node()
    node.assign()
    node.append(2)
    result = await produce(node, batch(3), version)
    assert (result.error_code, result.base_offset, result.log_append_time_ms) == (0, 2, -1)
    assert node.partition().leader_log.high_watermark == 5


@on_loop
async def test_the_reply_comes_at_once_without_an_event_loop_turn() -> None:
    node = await start_node()
    node.assign()
    reply = node.call(API, request((0, batch(1))))
    assert results(reply)[0].error_code == ErrorCode.NONE


@on_loop
async def test_one_bad_partition_does_not_fail_the_others() -> None:
    node = await start_node()
    node.assign()
    node.assign(partition=1)
    corrupt = bytearray(batch(1))
    corrupt[-1] ^= 1
    response = await node.ask(API, request((0, batch(1)), (7, batch(1)), (1, bytes(corrupt))), 12)
    assert [(r.index, r.error_code, r.base_offset) for r in results(response)] == [
        (0, ErrorCode.NONE, 0),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (1, ErrorCode.CORRUPT_MESSAGE, -1),
    ]
    assert stored(node, 1) == b""


@on_loop
async def test_an_unknown_topic_has_its_own_code_by_name_and_by_id() -> None:
    node = await start_node()
    by_name = await produce(node, batch(1), 12, topic="absent")
    by_id = await produce(node, batch(1), 13, topic="absent")
    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@on_loop
async def test_a_topic_made_anew_is_not_the_old_one() -> None:
    """Promise 10: a request with the old topic's id does not reach the new topic."""
    node = await start_node()
    node.assign()
    node.delete_topic()
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    result = await produce(node, batch(1), 13)
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert stored(node) == b""


# What a batch must be (promise 8)


@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (b"", LATEST, ErrorCode.INVALID_RECORD),
        (batch(1)[:40], LATEST, ErrorCode.INVALID_RECORD),
        (batch(1) + batch(1), LATEST, ErrorCode.INVALID_RECORD),
        (batch(1)[:16] + b"\x01" + batch(1)[17:], LATEST, ErrorCode.INVALID_RECORD),
        (batch(1, compression=Compression.ZSTD), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
@on_loop
async def test_the_form_of_the_records_is_checked_first(data: bytes, version: int, code: ErrorCode) -> None:
    node = await start_node()
    node.assign()
    node.append(1)
    result = await produce(node, data, version)
    assert (result.error_code, result.log_start_offset, result.error_message) == (code, -1, None)


@pytest.mark.parametrize("data", [bytes(20), batch(1)[:16] + b"\x09" + batch(1)[17:]])
@on_loop
async def test_bytes_that_are_no_batch_fail_the_whole_request(data: bytes) -> None:
    node = await start_node()
    node.assign()
    node.assign(partition=1)
    with pytest.raises(Exception, match=r"Record size|Invalid magic") as refusal:
        node.call(API, request((0, batch(1)), (1, data)))
    assert API.error_response is not None
    response: Any = API.error_response(request((0, None), (1, None)), LATEST, refusal.value)  # type: ignore[arg-type]
    assert [result.error_code for result in results(response)] == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert stored(node) == b""


@on_loop
async def test_zstd_is_taken_from_version_7_on() -> None:
    node = await start_node()
    node.assign()
    assert (await produce(node, batch(1, compression=Compression.ZSTD), 7)).error_code == ErrorCode.NONE


@on_loop
async def test_a_record_without_key_on_a_compacted_topic_is_named_by_its_index() -> None:
    node = await start_node()
    node.assign(config={"cleanup.policy": "compact"})
    node.append(1)
    result = await produce(node, batch(keys=[b"a", None, b"b", None]))
    assert result.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in result.record_errors] == [1, 3]
    assert result.error_message is not None
    assert result.log_start_offset == 0
    assert node.partition().leader_log.log_end_offset == 1


@on_loop
async def test_too_large_a_batch_and_a_wrong_time_are_refused() -> None:
    node = await start_node()
    node.assign(config={"max.message.bytes": "200", "message.timestamp.before.max.ms": "1000"})
    large = await produce(node, batch(1, value=bytes(300)))
    old = await produce(node, batch(1, timestamp=NOW_MS - 5_000))
    assert (large.error_code, large.log_start_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
    assert (old.error_code, old.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, 0)
    assert [error.batch_index for error in old.record_errors] == [0]
    assert stored(node) == b""


@on_loop
async def test_log_append_time_sets_the_batch_and_tells_the_time() -> None:
    """Promise 12."""
    node = await start_node()
    node.assign(config={"message.timestamp.type": "LogAppendTime"})
    result = await produce(node, batch(2, timestamp=NOW_MS - 77))
    stored_batch = only_batch(stored(node))
    assert result.log_append_time_ms == NOW_MS == stored_batch.max_timestamp
    assert stored_batch.timestamp_type == 1


@pytest.mark.parametrize(
    ("setting", "expected"), [("producer", "LZ4"), ("zstd", "ZSTD"), ("uncompressed", "NONE")]
)
@on_loop
async def test_compression_follows_the_topic(setting: str, expected: str) -> None:
    """Promise 13: `producer` keeps the bytes, except for what the broker stamps."""
    node = await start_node()
    node.assign(config={"compression.type": setting})
    sent = batch(20, compression=Compression.LZ4)
    await produce(node, sent)
    kept = stored(node)
    assert only_batch(kept).compression.name == expected
    assert (kept[16:] == sent[16:]) == (setting == "producer")


# Acknowledgements


@on_loop
async def test_without_acks_there_is_no_reply_and_the_records_are_there() -> None:
    """Promise 9."""
    node = await start_node()
    node.assign()
    assert node.call(API, request((0, batch(2)), acks=0)) is None
    assert node.partition().leader_log.log_end_offset == 2
    assert node.connection.closed_because is None


@on_loop
async def test_an_error_without_acks_closes_the_connection_and_says_why() -> None:
    node = await start_node()
    assert node.call(API, request((3, batch(1)), acks=0), 12) is None
    assert node.connection.closed_because is not None
    assert "topic-3: UNKNOWN_TOPIC_OR_PARTITION" in node.connection.closed_because


@pytest.mark.parametrize("acks", [2, -2, 100])
@on_loop
async def test_other_acks_are_refused(acks: int) -> None:
    node = await start_node()
    node.assign()
    result = await produce(node, batch(1), acks=acks)
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert stored(node) == b""


@on_loop
async def test_acks_all_need_enough_replicas_in_sync_and_the_high_watermark_stands_still() -> None:
    """Promise 6."""
    node = await start_node()
    node.assign(config={"min.insync.replicas": "2"}, replicas=(NODE, 2, 3), isr=(NODE,))
    refused = await produce(node, batch(1))
    taken = await produce(node, batch(1), acks=1)
    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, 0)
    assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)
    log = node.partition().leader_log
    assert (log.high_watermark, log.log_end_offset) == (0, 1)


@on_loop
async def test_acks_all_wait_for_the_replicas_in_sync() -> None:
    node = await start_node()
    partition = node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    assert partition is not None
    reply = asyncio.ensure_future(node.ask(API, request((0, batch(3)))))
    await asyncio.sleep(0)
    partition.on_follower_fetch(2, 0, 0, NOW_MS)
    await asyncio.sleep(0)
    assert not reply.done()
    partition.on_follower_fetch(2, 3, 0, NOW_MS)
    assert results(await reply)[0].error_code == ErrorCode.NONE
    assert not partition.waits


@on_loop
async def test_acks_all_time_out_and_tell_when_leadership_moves() -> None:
    node = await start_node()
    partition = node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    hasty = request((0, batch(1)))
    hasty.timeout_ms = 1
    assert results(await node.ask(API, hasty))[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    reply = asyncio.ensure_future(node.ask(API, request((0, batch(1)))))
    await asyncio.sleep(0)
    node.assign(replicas=(NODE, 2), isr=(2,), leader=2, leader_epoch=1, partition_epoch=1)
    assert results(await reply)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition is not None
    assert not partition.waits


@on_loop
async def test_flush_messages_is_awaited_before_the_ack() -> None:
    node = await start_node()
    node.assign(config={"flush.messages": "1"})
    result = await produce(node, batch(2))
    assert result.error_code == ErrorCode.NONE
    assert node.disk.durable("/logs/a/topic-0/00000000000000000000.log") == stored(node)


@on_loop
async def test_a_sync_that_fails_is_not_acknowledged() -> None:
    """Promise 30."""
    node = await start_node()
    node.assign(config={"flush.messages": "1"})
    node.disk.fail(when=lambda operation: operation.kind == "sync" and operation.path.endswith(".log"))
    result = await produce(node, batch(2))
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.events.failed == ["/logs/a"]


# Leadership and storage


@pytest.mark.parametrize("version", [9, 10, 13])
@on_loop
async def test_another_leader_is_named_from_version_10_on(version: int) -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), leader=2, leader_epoch=5, isr=(NODE, 2))
    node.cluster.addresses[2] = node.cluster.addresses[NODE]._replace(node_id=2, port=9093)
    response = await node.ask(API, request((0, batch(1))), version)
    (result,) = results(response)
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = (result.current_leader.leader_id, result.current_leader.leader_epoch)
    assert told == ((2, 5) if version >= 10 else (-1, -1))
    assert [node.port for node in response.node_endpoints] == ([9093] if version >= 10 else [])


@on_loop
async def test_a_full_disk_takes_the_directory_offline_and_nothing_is_acknowledged() -> None:
    """Promise 30."""
    node = await start_node()
    node.assign()
    node.append(1)

    def is_append(operation: Operation) -> bool:
        return operation.kind == "append" and operation.path.endswith(".log")

    node.disk.fail(28, when=is_append)
    first = await produce(node, batch(1))
    second = await produce(node, batch(1))
    assert {first.error_code, second.error_code} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert node.events.failed == ["/logs/a"]
    assert node.events.fatal


# Idempotence and transactions


@on_loop
async def test_a_retry_gets_its_first_offset_also_after_a_restart() -> None:
    """Promise 14."""
    node = await start_node()
    node.assign()
    sent = [batch(2, producer_id=7, epoch=0, sequence=2 * number) for number in range(5)]
    offsets = [(await produce(node, data)).base_offset for data in sent]
    again = [(await produce(node, data)).base_offset for data in sent]
    assert offsets == again == [0, 2, 4, 6, 8]
    node = await node.restart()
    assert (await produce(node, sent[-1])).base_offset == 8
    gap = await produce(node, batch(1, producer_id=7, epoch=0, sequence=99))
    assert (gap.error_code, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


@on_loop
async def test_transactional_batches_need_an_id_and_a_coordinator() -> None:
    node = await start_node()
    node.assign()
    data = batch(1, producer_id=7, epoch=0, sequence=0, transactional=True)
    with pytest.raises(Exception, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        await produce(node, data)
    unverified = await produce(node, data, transactional_id="orders")
    assert unverified.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert unverified.error_message is not None
    assert "COORDINATOR_NOT_AVAILABLE" in unverified.error_message
    assert stored(node) == b""


@on_loop
async def test_the_batches_of_a_transaction_are_looked_at_a_fixed_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = []

    def counted(records: Any) -> bool:
        looks.append(records)
        return is_transactional(records)

    monkeypatch.setattr(k00_produce, "is_transactional", counted)
    node = await start_node()
    node.assign()
    data = batch(1, producer_id=7, epoch=0, sequence=0, transactional=True)
    count = 50
    await node.ask(API, request(*((index, data) for index in range(count)), transactional_id="orders"), 12)
    assert len(looks) <= 3 * count


@on_loop
async def test_internal_topics_are_for_the_brokers_own_client() -> None:
    node = await start_node()
    node.assign("__consumer_offsets")
    result = await produce(node, batch(1), 12, topic="__consumer_offsets")
    assert (result.error_code, result.log_start_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


@on_loop
async def test_what_was_appended_is_counted() -> None:
    node = await start_node()
    node.assign()
    data = batch(5)
    await produce(node, data)
    await produce(node, batch(1, timestamp=NOW_MS + 10**9))
    counters = node.partition().counters
    assert (counters.messages_in, counters.bytes_in) == (5, len(data))
    assert (counters.produce_requests, counters.produce_requests_failed) == (2, 1)


@on_loop
async def test_offsets_and_epoch_are_stamped() -> None:
    node = await start_node()
    node.assign(leader_epoch=4)
    await produce(node, batch(2))
    await produce(node, batch(2))
    log = node.partition().leader_log
    second = log.read(2, 10_000, Isolation.HIGH_WATERMARK).records
    assert second is not None
    found = Batch(memoryview(second.read()))
    assert (found.base_offset, found.leader_epoch) == (2, 4)
