"""Partitions: who leads, what is replicated, and how the high watermark moves."""

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_reads import Isolation
from headrace.testing.memory_disk import MemoryDisk
from tests.support_data import NODE, NOW_MS, DataNode, batch, start_node
from tests.support_log import on_loop


async def replicated(isr: tuple[int, ...] = (NODE, 2, 3), minimum: int = 1) -> DataNode:
    node = await start_node()
    node.assign(replicas=(NODE, 2, 3), isr=isr, config={"min.insync.replicas": str(minimum)})
    return node


@on_loop
async def test_alone_the_high_watermark_follows_every_append() -> None:
    node = await start_node()
    node.assign()
    for expected in range(1, 4):
        node.append(1)
        assert node.partition().leader_log.high_watermark == expected


@on_loop
async def test_the_high_watermark_is_what_every_replica_in_sync_has() -> None:
    """Promise 6."""
    node = await replicated()
    partition = node.partition()
    node.append(10)
    for follower, offset, expected in ((2, 10, 0), (3, 4, 4), (3, 10, 10)):
        partition.on_follower_fetch(follower, offset, 0, NOW_MS)
        assert partition.leader_log.high_watermark == expected


@on_loop
async def test_replicas_out_of_sync_do_not_hold_it_back() -> None:
    node = await replicated(isr=(NODE, 2))
    node.append(5)
    node.partition().on_follower_fetch(2, 5, 0, NOW_MS)
    assert node.partition().leader_log.high_watermark == 5


@on_loop
async def test_below_the_minimum_it_stands_still_and_moves_on_when_the_isr_grows() -> None:
    """Promise 6."""
    node = await replicated(isr=(NODE,), minimum=2)
    partition = node.partition()
    assert partition.is_under_min_isr
    node.append(3)
    assert partition.leader_log.high_watermark == 0
    partition.on_follower_fetch(2, 3, 0, NOW_MS)
    node.assign(replicas=(NODE, 2, 3), isr=(NODE, 2), partition_epoch=1)
    assert partition.leader_log.high_watermark == 3


@on_loop
async def test_a_shrinking_isr_lets_it_move_on() -> None:
    node = await replicated()
    node.append(3)
    assert node.partition().leader_log.high_watermark == 0
    node.assign(replicas=(NODE, 2, 3), isr=(NODE,), partition_epoch=1)
    assert node.partition().leader_log.high_watermark == 3


@on_loop
async def test_it_never_moves_back() -> None:
    """Promise 6."""
    node = await replicated(isr=(NODE, 2))
    partition = node.partition()
    node.append(5)
    partition.on_follower_fetch(2, 5, 0, NOW_MS)
    partition.on_follower_fetch(2, 2, 0, NOW_MS)
    node.assign(replicas=(NODE, 2, 3), isr=(NODE, 2), leader_epoch=1, partition_epoch=1)
    assert partition.leader_log.high_watermark == 5


@on_loop
async def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    node = await start_node()
    node.assign(config={"min.insync.replicas": "3"})
    assert node.partition().min_insync_replicas == 1
    assert node.append(1) == 0


@on_loop
async def test_an_older_state_is_passed_over() -> None:
    node = await start_node()
    node.assign(leader_epoch=5, partition_epoch=8)
    node.assign(leader=2, leader_epoch=4, partition_epoch=7, replicas=(NODE, 2))
    assert (node.partition().leader, node.partition().leader_epoch) == (NODE, 5)


@on_loop
async def test_an_epoch_is_known_when_it_begins_and_durable_before_its_first_record() -> None:
    node = await start_node()
    node.assign(leader_epoch=3)
    file = "/logs/a/topic-0/leader-epoch-checkpoint"
    assert node.partition().leader_log.latest_epoch == 3
    assert not node.disk.exists(file)
    node.append(1)
    assert node.disk.durable(file) == b"0\n1\n3 0\n"


@on_loop
async def test_a_follower_takes_no_records() -> None:
    node = await start_node()
    node.assign(replicas=(NODE, 2), leader=2)
    with pytest.raises(KafkaError) as refusal:
        node.append(1)
    assert refusal.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@on_loop
async def test_a_first_batch_that_does_not_fit_is_left_out() -> None:
    """Promise 4: half a batch is no help to a reader that may have nothing more."""
    node = await start_node()
    node.assign()
    node.append(3)
    partition = node.partition()
    log = partition.leader_log
    cut = partition.read(log, 0, 50, Isolation.HIGH_WATERMARK, min_one_message=False)
    whole = partition.read(log, 0, 50, Isolation.HIGH_WATERMARK, min_one_message=True)
    assert cut.records is None
    assert whole.records is not None
    assert len(whole.records) == len(batch(3))


@on_loop
async def test_the_low_watermark_is_the_lowest_start_of_all() -> None:
    """Promise 26."""
    node = await replicated(isr=(NODE, 2, 3))
    partition = node.partition()
    node.append(9)
    partition.on_follower_fetch(2, 9, 0, NOW_MS)
    partition.on_follower_fetch(3, 9, 0, NOW_MS)
    partition.delete_records(6)
    assert partition.low_watermark == 0
    partition.on_follower_fetch(2, 9, 6, NOW_MS)
    partition.on_follower_fetch(3, 9, 5, NOW_MS)
    assert partition.low_watermark == 5


@on_loop
async def test_the_high_watermark_is_kept_over_a_kill() -> None:
    """Promise 6, as far as the checkpoint has it; a leader alone has it all back at once."""
    node = await start_node(MemoryDisk())
    node.assign()
    node.append(4)
    await node.partition().leader_log.flush(NOW_MS)
    node.disk.crash()
    again = await node.restart(cleanly=False)
    assert again.partition().leader_log.high_watermark == 4
