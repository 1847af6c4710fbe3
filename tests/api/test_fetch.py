"""Fetch: what a reader gets, within which bounds, and which error says what."""

from typing import Any

import pytest

from headrace.api.k01_fetch import API
from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.log_reads import FileRange
from headrace.protocol.codec import encode_parts
from headrace.records.control import ControlType
from tests.support_data import NODE, TOPIC, DataNode, batch, start_node, topic_id_of
from tests.support_fetch import (
    ALL_VERSIONS,
    MEGABYTE,
    data_of,
    fetch,
    fetch_one,
    fetch_request,
    parts,
    records_of,
    wanted,
)
from tests.support_log import marker, on_loop


async def filled(batches: int = 4, records: int = 3, **fields: Any) -> DataNode:
    """A node with one partition that has some batches."""
    node = await start_node(**fields)
    node.assign()
    for _ in range(batches):
        node.append(records)
    return node


@pytest.mark.parametrize("version", ALL_VERSIONS)
@on_loop
async def test_every_version_hands_out_the_records(version: int) -> None:
    node = await filled()
    part = await fetch_one(node, wanted(0), version)
    assert (part.error_code, part.high_watermark, part.last_stable_offset) == (0, 12, 12)
    assert [record.offset for record in records_of(part)] == list(range(12))
    assert part.aborted_transactions is None


@on_loop
async def test_the_reply_carries_the_range_of_the_file_and_not_its_bytes() -> None:
    node = await filled()
    response = await fetch(node, wanted(3))
    pieces = encode_parts(response, 17)
    assert [type(piece) for piece in pieces].count(FileRange) == 1


@on_loop
async def test_a_fetch_from_the_middle_of_a_batch_returns_the_whole_batch() -> None:
    """Promise 4."""
    node = await filled()
    part = await fetch_one(node, wanted(4))
    assert records_of(part)[0].offset == 3


@on_loop
async def test_a_first_batch_larger_than_all_limits_is_returned_and_only_that() -> None:
    """Promise 4: the first partition that has data gets it, the next ones keep to the limits."""
    node = await filled(batches=2)
    node.assign(partition=1)
    node.append(3, index=1)
    response = await fetch(
        node, wanted(6, max_bytes=10), wanted(0, 0, max_bytes=1), wanted(0, 1, max_bytes=1), max_bytes=1
    )
    sizes = {part.partition_index: len(data_of(part)) for part in parts(response)}
    assert sizes[0] >= len(batch(3))
    assert sizes[1] == 0
    empty_first = await fetch(node, wanted(6, 0, max_bytes=1), wanted(0, 1, max_bytes=1))
    assert [len(records_of(part)) for part in parts(empty_first)] == [0, 3]


@on_loop
async def test_the_limits_of_partition_request_and_broker_hold() -> None:
    node = await filled(batches=10, properties={"fetch.max.bytes": "1100"})
    node.assign(partition=1)
    for _ in range(10):
        node.append(3, index=1)
    size = len(batch(3))
    response = await fetch(node, wanted(0, 0, max_bytes=3 * size + 5), wanted(0, 1, max_bytes=MEGABYTE))
    first, second = (len(data_of(part)) for part in parts(response))
    assert first == 3 * size + 5
    assert first + second == 1100


@pytest.mark.parametrize("offset", [-1, 13, 1000])
@on_loop
async def test_an_offset_that_is_not_there_is_out_of_range(offset: int) -> None:
    node = await filled()
    part = await fetch_one(node, wanted(offset))
    assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (part.high_watermark, part.log_start_offset, part.last_stable_offset) == (-1, -1, -1)


@on_loop
async def test_an_offset_before_the_log_start_is_out_of_range() -> None:
    node = await filled()
    node.partition().delete_records(5)
    assert (await fetch_one(node, wanted(4))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    part = await fetch_one(node, wanted(5))
    assert (part.error_code, part.log_start_offset) == (0, 5)


@on_loop
async def test_leader_epochs_of_the_reader_are_checked() -> None:
    node = await start_node()
    node.assign(leader_epoch=3)
    node.append(1)
    assert (await fetch_one(node, wanted(0, leader_epoch=3))).error_code == ErrorCode.NONE
    fenced = await fetch_one(node, wanted(0, leader_epoch=2))
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (fenced.current_leader.leader_id, fenced.current_leader.leader_epoch) == (NODE, 3)
    ahead = await fetch_one(node, wanted(0, leader_epoch=4))
    assert (ahead.error_code, ahead.current_leader.leader_id) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)


@on_loop
async def test_a_reader_whose_log_parts_from_ours_learns_where() -> None:
    node = await start_node()
    node.assign(leader_epoch=1)
    node.append(3)
    node.assign(leader_epoch=4, partition_epoch=1)
    node.append(3)
    part = await fetch_one(node, wanted(5, last_fetched_epoch=2, leader_epoch=4))
    assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (1, 3)
    assert data_of(part) == b""
    fits = await fetch_one(node, wanted(4, last_fetched_epoch=4, leader_epoch=4))
    assert fits.diverging_epoch.epoch == -1
    unknown = await fetch_one(node, wanted(4, last_fetched_epoch=9))
    assert unknown.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@on_loop
async def test_committed_readers_stop_at_open_transactions_and_learn_what_was_aborted() -> None:
    """Promise 5: gaps and markers do not hold a reader up."""
    node = await start_node()
    node.assign()
    log = node.partition().leader_log
    guard = log.start_verification(7, 0, 0, False, 0)
    data = bytearray(batch(2, producer_id=7, epoch=0, sequence=0, transactional=True))
    node.partition().append(data, 1, node.clock.now_ms(), guard=guard)
    node.append(1)
    stopped = await fetch_one(node, wanted(0), committed=True)
    assert (stopped.high_watermark, stopped.last_stable_offset, data_of(stopped)) == (3, 0, b"")
    assert stopped.aborted_transactions == []
    end = marker(7, ControlType.ABORT)
    node.partition().append(
        end, 1, node.clock.now_ms(), origin=AppendOrigin.COORDINATOR, transaction_version=1
    )
    part = await fetch_one(node, wanted(0), committed=True)
    assert part.aborted_transactions is not None
    assert [(each.producer_id, each.first_offset) for each in part.aborted_transactions] == [(7, 0)]
    assert part.last_stable_offset == 4
    at_end = await fetch_one(node, wanted(4), committed=True)
    assert (at_end.error_code, data_of(at_end)) == (0, b"")


@on_loop
async def test_unknown_topics_and_partitions_come_last_and_are_told_by_version() -> None:
    node = await filled()
    response = await fetch(node, wanted(0, 9), wanted(0, 0), version=12)
    assert [(part.partition_index, part.error_code) for part in parts(response)] == [
        (0, ErrorCode.NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    absent = await fetch_one(node, wanted(0), 13, topic="absent")
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@on_loop
async def test_an_offline_directory_is_told_as_old_clients_know_it() -> None:
    node = await filled()
    node.partition().go_offline()
    old = await fetch_one(node, wanted(0), 5)
    new = await fetch_one(node, wanted(0), 17)
    assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert new.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@on_loop
async def test_another_leader_is_named_with_its_address() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), leader=2, leader_epoch=7, isr=(NODE, 2))
    node.cluster.addresses[2] = node.cluster.addresses[NODE]._replace(node_id=2, port=9093)
    response = await fetch(node, wanted(0), version=10)
    assert parts(response)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    follower = await fetch_one(node, wanted(0), 17)
    assert follower.error_code == ErrorCode.NONE, "from version 11 on consumers may read from followers"
    fenced = await fetch(node, wanted(0, leader_epoch=6), version=17)
    assert parts(fenced)[0].current_leader.leader_id == 2
    assert [each.port for each in fenced.node_endpoints] == [9093]


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
@on_loop
async def test_a_broker_that_is_no_replica_can_not_fetch_as_one(epoch: int, code: ErrorCode) -> None:
    node = await filled()
    part = await fetch_one(node, wanted(0, leader_epoch=epoch), replica_id=5)
    assert part.error_code == code


@on_loop
async def test_followers_see_the_log_end_and_move_the_high_watermark() -> None:
    node = await start_node()
    partition = node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    assert partition is not None
    node.append(3)
    part = await fetch_one(node, wanted(0, leader_epoch=0), replica_id=2)
    assert (part.high_watermark, len(records_of(part))) == (0, 3)
    await fetch_one(node, wanted(3, leader_epoch=0), replica_id=2)
    assert partition.leader_log.high_watermark == 3


@on_loop
async def test_an_impossible_limit_fails_that_partition_alone() -> None:
    node = await filled()
    node.assign(partition=1)
    node.append(1, index=1)
    response = await fetch(node, wanted(0, 0, max_bytes=-5), wanted(0, 1))
    assert [part.error_code for part in parts(response)] == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert node.partition().counters.fetch_requests_failed == 1


@pytest.mark.parametrize(("version", "named"), [(12, 1), (13, 0)])
def test_an_error_of_the_whole_names_partitions_for_old_clients_only(version: int, named: int) -> None:
    assert API.error_response is not None
    request = fetch_request(wanted(0))
    response: Any = API.error_response(request, version, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(parts(response)) == named


@on_loop
async def test_what_was_sent_is_counted_once() -> None:
    node = await filled()
    part = await fetch_one(node, wanted(0), max_wait_ms=1, min_bytes=10**6)
    counters = node.partition().counters
    assert (counters.fetch_requests, counters.bytes_out) == (1, len(data_of(part)))


@on_loop
async def test_a_topic_made_anew_under_the_old_name_is_another_one() -> None:
    """Promise 10."""
    node = await filled()
    node.delete_topic()
    node.assign(topic_id=topic_id_of(TOPIC, 1))
    assert (await fetch_one(node, wanted(0))).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    fresh = await fetch_one(node, wanted(0), topic_id=topic_id_of(TOPIC, 1))
    assert (fresh.error_code, fresh.high_watermark) == (0, 0)
