"""OffsetForLeaderEpoch: where the records of an epoch end."""

from typing import Any

import pytest

from headrace.api.k23_offset_for_leader_epoch import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support_data import NODE, TOPIC, DataNode, start_node
from tests.support_log import on_loop


async def ask(
    node: DataNode, epoch: int, *, current: int = -1, index: int = 0, version: int = 4
) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])])
    response: Any = await node.ask(API, request, version)
    result = response.topics[0].partitions[0]
    assert result.partition == index
    return result.error_code, result.leader_epoch, result.end_offset


async def with_epochs() -> DataNode:
    """Epoch 1 has offsets 0 to 2, epoch 4 has 3 to 7, epoch 6 has begun and has none."""
    node = await start_node()
    for number, (epoch, records) in enumerate([(1, 3), (4, 5), (6, 0)]):
        node.assign(leader_epoch=epoch, partition_epoch=number)
        if records:
            node.append(records)
    return node


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (0, (0, 0, 0)),
        (1, (0, 1, 3)),
        (2, (0, 1, 3)),
        (4, (0, 4, 8)),
        (5, (0, 4, 8)),
        (6, (0, 6, 8)),
        (7, (0, -1, -1)),
        (-1, (0, -1, -1)),
    ],
)
@on_loop
async def test_the_largest_epoch_up_to_the_one_asked_for(
    epoch: int, expected: tuple[int, int, int], version: int
) -> None:
    node = await with_epochs()
    assert await ask(node, epoch, version=version) == expected


@on_loop
async def test_epochs_are_known_after_a_restart() -> None:
    node = await (await with_epochs()).restart()
    assert await ask(node, 4) == (0, 4, 8)


@on_loop
async def test_who_asks_has_to_know_the_leader() -> None:
    node = await with_epochs()
    assert await ask(node, 1, current=6) == (0, 1, 3)
    assert await ask(node, 1, current=5) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert await ask(node, 1, current=7) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert await ask(node, 1, index=3) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    node.assign(partition=1, replicas=(NODE, 2), leader=2)
    assert await ask(node, 1, index=1) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)
