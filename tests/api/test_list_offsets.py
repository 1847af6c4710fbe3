"""ListOffsets: offsets by time and by code, by version and isolation."""

from typing import Any

import pytest

from headrace.api.k02_list_offsets import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support_data import NODE, NOW_MS, TOPIC, DataNode, batch, start_node
from tests.support_log import on_loop

LATEST, EARLIEST, MAX_TIME, EARLIEST_LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6
VERSION = API.versions[1]


async def ask(
    node: DataNode,
    timestamp: int,
    version: int = VERSION,
    *,
    index: int = 0,
    committed: bool = False,
    epoch: int = -1,
    replica_id: int = -1,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=int(committed) if version >= 2 else 0,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])],
    )
    response: Any = await node.ask(API, request, version)
    result: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
    return result


def told(result: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert result.error_code == ErrorCode.NONE
    return result.timestamp, result.offset, result.leader_epoch


async def filled() -> DataNode:
    """Three batches of two records, 1,000 ms apart, the newest in the middle; leader epoch 2."""
    node = await start_node()
    node.assign(leader_epoch=2)
    for timestamp in (NOW_MS - 3_000, NOW_MS - 1_000, NOW_MS - 2_000):
        node.append(2, timestamp=timestamp)
    return node


@pytest.mark.parametrize("version", range(API.versions[0], VERSION + 1))
@on_loop
async def test_the_ends_of_the_log_in_every_version(version: int) -> None:
    """Promise 7."""
    node = await filled()
    epoch = 2 if version >= 4 else -1
    assert told(await ask(node, LATEST, version)) == (-1, 6, epoch)
    assert told(await ask(node, EARLIEST, version)) == (-1, 0, epoch)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (NOW_MS - 3_000, 0, 2)),
        (NOW_MS - 3_000, (NOW_MS - 3_000, 0, 2)),
        (NOW_MS - 2_999, (NOW_MS - 2_999, 1, 2)),
        (NOW_MS - 2_998, (NOW_MS - 1_000, 2, 2)),
        (NOW_MS - 999, (NOW_MS - 999, 3, 2)),
        (NOW_MS - 998, (-1, -1, -1)),
        (NOW_MS + 10**6, (-1, -1, -1)),
    ],
)
@on_loop
async def test_the_first_offset_at_or_after_a_time(timestamp: int, expected: tuple[int, int, int]) -> None:
    """Promise 7."""
    node = await filled()
    assert told(await ask(node, timestamp)) == expected


@on_loop
async def test_the_record_with_the_largest_time() -> None:
    node = await filled()
    assert told(await ask(node, MAX_TIME)) == (NOW_MS - 999, 3, 2)
    empty = await start_node()
    empty.assign()
    assert told(await ask(empty, MAX_TIME)) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("code", "since"), [(MAX_TIME, 7), (EARLIEST_LOCAL, 8), (TIERED, 9), (PENDING, 11), (-7, 99)]
)
@pytest.mark.parametrize("version", range(API.versions[0], VERSION + 1))
@on_loop
async def test_a_code_is_known_from_its_version_on(code: int, since: int, version: int) -> None:
    node = await filled()
    expected = ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION
    assert (await ask(node, code, version)).error_code == expected


@on_loop
async def test_nothing_is_in_remote_storage() -> None:
    node = await filled()
    assert told(await ask(node, EARLIEST_LOCAL)) == (-1, 0, 2)
    assert told(await ask(node, TIERED)) == (-1, -1, -1)
    assert told(await ask(node, PENDING)) == (-1, -1, -1)


@on_loop
async def test_deleted_records_are_not_found() -> None:
    node = await filled()
    node.partition().delete_records(3)
    assert told(await ask(node, EARLIEST))[1] == 3
    assert told(await ask(node, 0)) == (NOW_MS - 999, 3, 2)


@on_loop
async def test_isolation_bounds_what_is_found() -> None:
    """Promise 7: the latest offset is capped by isolation."""
    node = await start_node()
    node.assign()
    node.append(1)
    log = node.partition().leader_log
    guard = log.start_verification(7, 0, 0, False, 0)
    data = bytearray(batch(1, producer_id=7, epoch=0, sequence=0, transactional=True, timestamp=NOW_MS + 500))
    node.partition().append(data, 1, NOW_MS, guard=guard)
    assert told(await ask(node, LATEST))[1] == 2
    assert told(await ask(node, LATEST, committed=True))[1] == 1
    assert told(await ask(node, NOW_MS + 1))[1] == 1
    assert told(await ask(node, NOW_MS + 1, committed=True)) == (-1, -1, -1)


@on_loop
async def test_replicas_see_the_log_end_and_consumers_the_high_watermark() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    node.append(3)
    assert told(await ask(node, LATEST))[1] == 0
    assert told(await ask(node, LATEST, replica_id=2))[1] == 3


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
@on_loop
async def test_a_new_leader_that_lags_says_so(version: int, code: ErrorCode) -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), isr=(NODE, 2))
    node.append(3)
    node.assign(replicas=(NODE, 2), isr=(NODE, 2), leader_epoch=1, partition_epoch=1)
    assert (await ask(node, LATEST, version)).error_code == code
    assert (await ask(node, NOW_MS + 10**6, version)).error_code == code
    assert (await ask(node, EARLIEST, version)).error_code == ErrorCode.NONE


@on_loop
async def test_leadership_and_epochs_are_checked() -> None:
    node = await filled()
    assert (await ask(node, LATEST, epoch=1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await ask(node, LATEST, epoch=3)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    absent = await ask(node, LATEST, index=5)
    assert (absent.error_code, absent.timestamp, absent.offset) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        -1,
        -1,
    )
    node.assign(partition=1, replicas=(NODE, 2), leader=2)
    assert (await ask(node, LATEST, index=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await ask(node, LATEST, index=1, replica_id=-2)).error_code == ErrorCode.NONE


@on_loop
async def test_a_partition_named_twice_is_refused_once() -> None:
    node = await filled()
    node.assign(partition=1)
    asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in (0, 0, 1)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=asked)])
    response: Any = await node.ask(API, request)
    found = [(result.partition_index, result.error_code) for result in response.topics[0].partitions]
    assert found == [(0, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE)]
