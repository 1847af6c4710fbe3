"""A segment after a crash or damage: what is cut, what is reported, what is rebuilt."""

import zlib
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.index_errors import CorruptIndex
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_errors import CorruptLog
from headrace.log.segment import Segment
from headrace.log.segment_scan import UnsupportedMessageFormat, find_damage, scan_checked, scan_headers
from headrace.log.transaction_index import AbortedTransaction
from headrace.records.batch import Batch, batches
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Loss, MemoryDisk
from tests.support_segment import DIRECTORY, NOW, build, fill, kafka_files, new_segment, reopened


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def test_recovery_of_kafkas_killed_segment_gives_the_indexes_kafka_would_write(disk: MemoryDisk) -> None:
    killed, clean = kafka_files("killed", "rolled-0"), kafka_files("clean-shutdown", "rolled-0")
    disk.make_directory(DIRECTORY)
    for name, content in killed.items():
        disk.replace(f"{DIRECTORY}/{name}", content)
    segment = reopened(disk, 2052)
    assert segment.recover() == (3000, 0, None)
    for suffix in (".log", ".index", ".timeindex"):
        name = f"{2052:020d}{suffix}"
        assert disk.read(f"{DIRECTORY}/{name}") == clean[name]


@given(
    synced=st.integers(0, 12),
    seed=st.integers(0, 10_000),
    loss=st.sampled_from([Loss.TAIL, Loss.HOLES, Loss.EVERYTHING, Loss.NOTHING]),
    sector=st.sampled_from([1, 512]),
)
def test_after_a_crash_at_any_byte_whole_batches_are_left(
    synced: int, seed: int, loss: Loss, sector: int
) -> None:
    disk = MemoryDisk()
    segment = new_segment(disk, index_interval_bytes=200)
    written = fill(segment, synced, value_size=70)
    segment.sync()
    for number in range(synced, 12):
        written.append(build(3 * number, 3, value_size=70))
        segment.append(3 * number + 2, written[-1])
    disk.crash(loss, sector=sector, entropy=SeededEntropy(seed))
    segment = reopened(disk, index_interval_bytes=200)
    recovered = segment.recover()
    survivors = recovered.next_offset // 3
    assert synced <= survivors <= 12
    assert disk.read(segment.log.path) == b"".join(written[:survivors])
    assert (recovered.fault is None) == (recovered.bytes_truncated == 0)
    segment.sanity_check()
    fresh = MemoryDisk()
    fill(copy := new_segment(fresh, index_interval_bytes=200), survivors, value_size=70)
    copy.close()
    for path in (segment.offset_index.path, segment.time_index.path):
        assert disk.read(path) == fresh.read(path)
    segment.append(3 * survivors + 2, build(3 * survivors, 3))
    assert segment.next_offset() == 3 * survivors + 3


def test_a_flipped_bit_anywhere_is_found_where_it_is(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 3)
    segment.close()
    start, end = len(written[0]), len(written[0]) + len(written[1])
    # The leader epoch is not covered by the checksum, and nothing else in the segment says what it should be.
    unprotected = range(start + 12, start + 16)
    for position in range(start, end):
        for bit in (0, 7) if position not in unprotected else ():
            disk.flip_bit(segment.log.path, position, bit)
            damage = find_damage(segment.log, 0, segment.size)
            assert damage is not None
            assert (damage.path, damage.position) == (segment.log.path, start)
            disk.flip_bit(segment.log.path, position, bit)
    assert find_damage(segment.log, 0, segment.size) is None


def test_recovery_cuts_at_the_damage_and_says_why(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 4)
    segment.close()
    disk.flip_bit(segment.log.path, len(written[0]) + 70)
    segment = reopened(disk)
    recovered = segment.recover()
    assert recovered.next_offset == 3
    assert recovered.bytes_truncated == sum(map(len, written[1:]))
    assert recovered.fault is not None
    assert f"{segment.log.path} is corrupt at position {len(written[0])}" in str(recovered.fault)


def test_recovery_works_in_slices(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 40, value_size=30_000)
    segment.close()
    again = reopened(disk)
    positions = list(again.recovery())
    assert again.next_offset() == 120
    assert len(positions) == segment.size // (1024 * 1024)
    assert positions == sorted(positions)


def test_batches_larger_than_a_chunk_are_recovered(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    sizes = [10, 400_000, 10, 1_500_000, 300_000, 20]
    for offset, size in enumerate(sizes):
        segment.append(offset, build(offset, value_size=size))
    segment.close()
    assert reopened(disk).recover() == (len(sizes), 0, None)
    disk.flip_bit(segment.log.path, 1_000_000)
    assert reopened(disk).recover().next_offset == 3


def test_a_damaged_length_of_a_huge_batch_needs_no_huge_buffer(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.log.segment_scan.UNCHECKED_BUFFER_BYTES_MAX", 500_000)
    segment = new_segment(disk)
    segment.append(0, build(0, value_size=600_000))
    segment.append(1, build(1, value_size=600_000))
    segment.close()
    assert reopened(disk).recover() == (2, 0, None)
    disk.flip_bit(segment.log.path, 300_000)
    recovered = reopened(disk).recover()
    assert recovered.next_offset == 0
    assert recovered.fault is not None
    assert recovered.fault.position == 0


def test_observers_see_the_batches_of_producers_and_fill_the_transaction_index(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    segment.append(0, build(0))
    segment.append(2, build(1, 2, producer_id=7))
    segment.transaction_index.append(AbortedTransaction(9, 0, 0, 1))
    segment.close()
    segment = reopened(disk)
    seen: list[tuple[int, int, int]] = []

    def observe(batch: Batch) -> None:
        seen.append((batch.producer_id, batch.base_offset, batch.last_offset))
        segment.transaction_index.append(AbortedTransaction(batch.producer_id, 1, 2, 3))

    segment.recover(observe)
    assert seen == [(7, 1, 2)]
    assert list(segment.transaction_index) == [AbortedTransaction(7, 1, 2, 3)]


def test_recovery_brings_back_leader_epochs(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    for offset, epoch in enumerate([1, 1, 3, -1, 4]):
        segment.append(offset, build(offset, leader_epoch=epoch))
    segment.close()
    epochs = LeaderEpochs(disk, DIRECTORY)
    epochs.assign(1, 0)
    reopened(disk).recover(leader_epochs=epochs)
    assert LeaderEpochs.load(disk, DIRECTORY).entries == [(1, 0), (3, 2), (4, 4)]


def test_gaps_between_offsets_are_fine_as_compaction_leaves_them(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    for offset in (5, 6, 90, 4000, 4001):
        segment.append(offset, build(offset))
    segment.close()
    assert reopened(disk).recover() == (4002, 0, None)


@pytest.mark.parametrize("wrong", [2, 2**40, 90])
def test_an_offset_out_of_line_is_found_although_no_checksum_covers_it(disk: MemoryDisk, wrong: int) -> None:
    segment = new_segment(disk)
    first, second, third = build(0, 3), build(wrong, 3), build(6, 3)
    segment.log.append(first + second + third)
    segment.size = segment.log.size
    damage = find_damage(segment.log, 0, segment.size)
    assert damage is not None
    assert damage.position == len(first)


def test_an_empty_or_zeroed_segment_recovers_to_nothing(disk: MemoryDisk) -> None:
    new_segment(disk).close()
    assert reopened(disk).recover() == (0, 0, None)
    disk.open(f"{DIRECTORY}/{0:020d}.log").append(bytes(5000))
    recovered = reopened(disk).recover()
    assert (recovered.next_offset, recovered.bytes_truncated) == (0, 5000)


def test_old_message_formats_are_refused_rather_than_cut_off(disk: MemoryDisk) -> None:
    body = pack(">bb", 1, 0) + pack(">q", NOW) + pack(">i", -1) + pack(">i", 1) + b"v"
    message = pack(">qi", 0, 4 + len(body)) + pack(">I", zlib.crc32(body)) + body
    new_segment(disk).close()
    disk.open(f"{DIRECTORY}/{0:020d}.log").append(message.ljust(80, b"\0"))
    with pytest.raises(UnsupportedMessageFormat, match="format v1 at position 0"):
        reopened(disk).recover()
    assert disk.size(f"{DIRECTORY}/{0:020d}.log") == 80


def test_walking_by_headers_tells_damage_from_a_torn_end(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    first, second = fill(segment, 2)
    assert [header.base_offset for header in scan_headers(segment.log, 0, segment.size)] == [0, 3]
    for end in range(len(first), len(first) + len(second)):
        assert len(list(scan_headers(segment.log, 0, end))) == 1
    disk.flip_bit(segment.log.path, len(first) + 16, 0)
    with pytest.raises(CorruptLog, match="no batch format v3") as damage:
        list(scan_headers(segment.log, 0, segment.size))
    assert damage.value.position == len(first)


def test_walking_checked_hands_out_the_bytes(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 5, producer_id=3)
    found = [
        bytes(batch.chunk[batch.start : batch.start + batch.size])
        for batch in scan_checked(segment.log, 0, 0, segment.size)
    ]
    assert found == written


# Indexes that are damaged while the log is sound


def damaged_index(disk: MemoryDisk, position: int, bit: int) -> tuple[Segment, bytes]:
    segment = new_segment(disk, index_interval_bytes=200)
    fill(segment, 60, value_size=50)
    segment.close()
    sound = disk.read(segment.offset_index.path)
    disk.flip_bit(segment.offset_index.path, position, bit)
    return reopened(disk, index_interval_bytes=200), sound


@given(position=st.integers(0, 8 * 20 - 1), bit=st.integers(0, 7), target=st.integers(0, 179))
def test_a_damaged_offset_index_never_leads_astray(position: int, bit: int, target: int) -> None:
    disk = MemoryDisk()
    segment, _ = damaged_index(disk, position, bit)
    place = segment.translate(target)
    assert place is not None
    assert place.base_offset == target // 3 * 3
    assert segment.next_offset() == 180


def test_an_index_that_points_nowhere_is_written_anew(disk: MemoryDisk) -> None:
    segment, sound = damaged_index(disk, 7, 0)
    assert segment.translate(6) is not None
    assert disk.read(segment.offset_index.path) == sound


def test_missing_or_impossible_indexes_fail_the_sanity_check_and_can_be_rebuilt(disk: MemoryDisk) -> None:
    segment = new_segment(disk, index_interval_bytes=200)
    fill(segment, 60, value_size=50)
    segment.close()
    sound = {path: disk.read(path) for path in (segment.offset_index.path, segment.time_index.path)}
    for path in sound:
        disk.remove(path)
        segment = reopened(disk, index_interval_bytes=200)
        with pytest.raises(CorruptIndex, match="does not exist"):
            segment.sanity_check()
        segment.rebuild_indexes()
        assert disk.read(path) == sound[path]
        disk.tear(path, len(sound[path]) - 1)
        segment = reopened(disk, index_interval_bytes=200)
        with pytest.raises(CorruptIndex, match="multiple of"):
            segment.sanity_check()
        segment.rebuild_indexes()
        assert disk.read(path) == sound[path]


def test_damage_in_the_log_is_reported_to_readers_with_its_place(disk: MemoryDisk) -> None:
    segment = new_segment(disk, index_interval_bytes=200)
    written = fill(segment, 60, value_size=50)
    position = len(written[0]) * 30
    segment.close()
    segment = reopened(disk, index_interval_bytes=200)
    disk.flip_bit(segment.log.path, position + 16, 4)
    for target in (90, 91, 92):
        with pytest.raises(CorruptLog) as damage:
            segment.translate(target)
        assert (damage.value.path, damage.value.position) == (segment.log.path, position)
    assert [segment.translate(target) is not None for target in (50, 89, 120, 179)] == [True] * 4


def test_a_damaged_batch_is_not_searched_by_time(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 1)
    disk.flip_bit(segment.log.path, 70)
    with pytest.raises(CorruptLog, match="checksum"):
        segment.find_timestamp(NOW, 0)


def test_every_segment_of_the_fixtures_is_sound() -> None:
    for fixture in ("clean-shutdown", "killed"):
        for name, content in kafka_files(fixture, "").items():
            if name.endswith(".log"):
                disk = MemoryDisk()
                file = disk.open("/log", create=True)
                file.append(content)
                base = int(name.rpartition("/")[2][:20])
                assert find_damage(file, base, file.size) is None
                assert len(list(batches(content))) == len(list(scan_headers(file, 0, file.size)))
