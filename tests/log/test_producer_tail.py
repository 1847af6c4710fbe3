"""A producer may retry any of its last five batches after a restart."""

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log import producer_tail
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_entry import BATCHES_REMEMBERED
from headrace.log.settings import LogSettings
from headrace.testing.memory_disk import MemoryDisk
from tests.support_log import LEADER_EPOCH, NOW_MS, SMALL, fill, on_loop, open_log, producer_batch

LARGE = LogSettings(index_interval_bytes=100)


def produce(log: PartitionLog, producer_id: int, sequence: int, epoch: int = 0) -> int:
    """Append one record of a producer; its offset."""
    batch = producer_batch(producer_id, sequence, epoch=epoch)
    return log.append_as_leader(batch, LEADER_EPOCH, NOW_MS).first_offset


async def restarted(
    disk: MemoryDisk, log: PartitionLog, settings: LogSettings, *, clean: bool
) -> PartitionLog:
    if clean:
        await log.close(NOW_MS)
    else:
        log.close_files()
    return open_log(disk, settings, clean=clean)


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("settings", [SMALL, LARGE], ids=["many segments", "one segment"])
@on_loop
async def test_the_last_five_batches_are_known(settings: LogSettings, clean: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk, settings)
    offsets = []
    for sequence in range(8):
        offsets.append(produce(log, 1, sequence))
        produce(log, 2, sequence)
        fill(log, 2)
    log = await restarted(disk, log, settings, clean=clean)
    end = log.log_end_offset
    for sequence in range(8 - BATCHES_REMEMBERED, 8):
        assert produce(log, 1, sequence) == offsets[sequence]
    assert log.log_end_offset == end
    with pytest.raises(KafkaError) as refusal:
        produce(log, 1, 8 - BATCHES_REMEMBERED - 1)
    assert refusal.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 1, 8) == end


@on_loop
async def test_batches_of_a_former_epoch_are_not_recalled() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for sequence in range(3):
        produce(log, 1, sequence)
    produce(log, 1, 0, epoch=1)
    produce(log, 1, 1, epoch=1)
    log = await restarted(disk, log, SMALL, clean=True)
    entry = log.producers.entries[1]
    assert [batch.last_sequence for batch in entry.batches] == [0, 1]


@on_loop
async def test_a_gap_in_the_sequence_ends_the_search() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for sequence, offset in ((3, 0), (7, 1), (8, 2)):
        batch = producer_batch(1, sequence, base_offset=offset, leader_epoch=LEADER_EPOCH)
        log.append_as_follower(batch, LEADER_EPOCH, NOW_MS)
    log = await restarted(disk, log, SMALL, clean=True)
    assert [batch.last_sequence for batch in log.producers.entries[1].batches] == [7, 8]


@on_loop
async def test_the_search_goes_back_no_further_than_its_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = MemoryDisk()
    log = open_log(disk, LARGE)
    for sequence in range(3):
        produce(log, 1, sequence)
        fill(log, 50)
    size = log.segments.active.size
    monkeypatch.setattr(producer_tail, "REACHES", (size // 10, size * 3 // 4))
    log = await restarted(disk, log, LARGE, clean=True)
    assert [batch.last_sequence for batch in log.producers.entries[1].batches] == [1, 2]
