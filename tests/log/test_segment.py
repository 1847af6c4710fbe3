"""A segment in normal use: appending, reading, rolling, truncating, and the files it leaves."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.index_errors import OffsetOverflow
from headrace.log.segment import Segment, SegmentFull, marks_of, roll_jitter_ms
from headrace.log.settings import LogSettings
from headrace.records.batch import batches
from headrace.system.disk import RealDisk
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import MemoryDisk
from tests.support_segment import DIRECTORY, NOW, build, fill, kafka_files, new_segment, reopened


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


# The files, byte for byte


@pytest.mark.parametrize("base_offset", [0, 1026, 2052])
def test_kafkas_batches_appended_again_give_kafkas_indexes(disk: MemoryDisk, base_offset: int) -> None:
    files = kafka_files("clean-shutdown", "rolled-0")
    name = f"{base_offset:020d}"
    segment = new_segment(disk, base_offset)
    for batch in batches(files[f"{name}.log"]):
        segment.append(batch.last_offset, batch.data)
    segment.close()
    for suffix in (".log", ".index", ".timeindex"):
        assert disk.read(f"{DIRECTORY}/{name}{suffix}") == files[name + suffix]


def test_the_segment_in_use_has_index_files_of_full_size_as_in_a_killed_kafka(disk: MemoryDisk) -> None:
    files = kafka_files("killed", "rolled-0")
    name = f"{2052:020d}"
    segment = new_segment(disk, 2052)
    for batch in batches(files[f"{name}.log"]):
        segment.append(batch.last_offset, batch.data)
    segment.sync()
    for suffix in (".log", ".index", ".timeindex"):
        assert disk.read(f"{DIRECTORY}/{name}{suffix}") == files[name + suffix]


def test_several_batches_in_one_append_are_indexed_one_by_one(disk: MemoryDisk) -> None:
    written = [build(3 * number, 3, timestamp=NOW + number, value_size=700) for number in range(20)]
    together = new_segment(disk)
    together.append(59, b"".join(written))
    together.close()
    singly = MemoryDisk()
    segment = new_segment(singly)
    for number, data in enumerate(written):
        segment.append(3 * number + 2, data, ((3 * number + 2, NOW + number + 2, len(data)),))
    segment.close()
    names = disk.list_directory(DIRECTORY)
    assert names == singly.list_directory(DIRECTORY)
    assert [disk.read(f"{DIRECTORY}/{name}") for name in names] == [
        singly.read(f"{DIRECTORY}/{name}") for name in names
    ]
    assert disk.size(f"{DIRECTORY}/{0:020d}.index") > 0


def test_an_append_is_one_write(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    segment.append(2, build(0, 3))
    disk.operations.clear()
    segment.append(8, build(3, 3) + build(6, 3))
    assert disk.operations == {"append": 1}


def test_a_roll_trims_the_indexes_and_notes_the_largest_timestamp(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 2)
    segment.deactivate()
    assert disk.size(segment.offset_index.path) == 0
    assert disk.size(segment.time_index.path) == 12
    assert segment.time_index.last_entry == (NOW + 2, 2)


def test_what_is_closed_is_durable(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 100, value_size=100)
    segment.close()
    disk.crash()
    assert disk.read(segment.log.path) == b"".join(written)
    assert disk.size(segment.offset_index.path) > 0
    reopened(disk).sanity_check()


def test_closing_what_was_not_touched_writes_nothing(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 10)
    segment.close()
    again = reopened(disk)
    again.next_offset()
    disk.operations.clear()
    again.close()
    assert not disk.operations


def test_preparing_a_sync_hands_out_the_part_that_may_run_elsewhere(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 100, value_size=100)
    call = segment.prepare_sync()
    disk.operations.clear()
    call()
    assert set(disk.operations) == {"sync"}
    index = disk.durable(segment.offset_index.path)
    assert index is not None
    assert index[:8] != bytes(8)


def test_a_segment_deleted_before_its_sync_gets_a_turn_is_no_failure(tmp_path: Path) -> None:
    disk = RealDisk()
    segment = Segment.create(disk, str(tmp_path), 0, LogSettings(), NOW)
    segment.append(0, build(0))
    call = segment.prepare_sync()
    segment.change_suffix("", ".deleted")
    segment.delete()
    call()
    lost = Segment.create(disk, str(tmp_path), 1, LogSettings(), NOW)
    call = lost.prepare_sync()
    lost.delete()
    with pytest.raises(FileNotFoundError):
        call()
    disk.close()


def test_a_preallocated_log_is_trimmed_when_it_is_rolled(disk: MemoryDisk) -> None:
    segment = new_segment(disk, preallocate=True, segment_bytes=5000)
    written = fill(segment, 3)
    assert disk.size(segment.log.path) == 5000
    found = segment.read(3, 9999)
    assert found is not None
    assert (found.position, found.length) == (len(written[0]), len(written[1]) + len(written[2]))
    segment.deactivate()
    assert disk.read(segment.log.path) == b"".join(written)


def test_creating_over_leftovers_begins_anew(disk: MemoryDisk) -> None:
    fill(new_segment(disk), 5)
    segment = new_segment(disk)
    assert segment.size == 0
    assert segment.next_offset() == 0


# Appending


def test_offsets_that_do_not_fit_are_refused_before_anything_is_written(disk: MemoryDisk) -> None:
    segment = new_segment(disk, 100)
    for offset in (99, 100 + 2**31):
        with pytest.raises(OffsetOverflow):
            segment.append(offset, build(offset))
    assert segment.size == disk.size(segment.log.path) == 0


def test_positions_that_do_not_fit_are_refused(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    segment.size = 2**31 - 10
    with pytest.raises(SegmentFull):
        segment.append(0, build(0))


def test_a_failed_append_leaves_the_segment_as_it_was(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 3)
    disk.fail(errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        segment.append(11, build(9, 3, timestamp=NOW + 10**6))
    assert segment.next_offset() == 9
    assert segment.max_timestamp == (NOW + 2, 2)
    data = build(9, 3)
    segment.append(11, data)
    assert disk.read(segment.log.path) == b"".join(written) + data


def test_a_reopened_segment_goes_on_where_it_stopped(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    written = fill(segment, 50, value_size=100)
    segment.close()
    segment = reopened(disk)
    segment.activate()
    assert segment.next_offset() == 150
    data = build(150, 3, timestamp=NOW + 10)
    segment.append(152, data)
    assert disk.size(segment.offset_index.path) == 10_485_760
    segment.close()
    assert disk.read(segment.log.path) == b"".join(written) + data
    assert segment.time_index.last_entry == (NOW + 12, 152)
    assert reopened(disk).next_offset() == 153


# Rolling


def test_a_segment_is_rolled_when_the_append_does_not_fit(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    settings = LogSettings(segment_bytes=1000)
    segment.append(0, build(0))
    size = segment.size
    assert not segment.should_roll(1000 - size, NOW, 1, NOW, settings)
    assert segment.should_roll(1001 - size, NOW, 1, NOW, settings)


def test_an_empty_segment_is_not_rolled_for_its_age(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    assert not segment.should_roll(100, NOW + 10**10, 1, NOW + 10**10, LogSettings(segment_ms=1000))


def test_a_segment_is_rolled_by_the_time_of_its_records(disk: MemoryDisk) -> None:
    settings = LogSettings(segment_ms=1000)
    segment = new_segment(disk)
    segment.append(2, build(0, 3))
    first = NOW + 2
    assert not segment.should_roll(100, first + 1000, 3, NOW + 10**9, settings)
    assert segment.should_roll(100, first + 1001, 3, NOW, settings)
    segment.close()
    again = reopened(disk)
    assert not again.should_roll(100, first + 1000, 3, NOW + 10**9, settings)
    assert again.should_roll(100, first + 1001, 3, NOW, settings)
    assert again.first_batch_timestamp == first


def test_records_without_timestamps_age_by_the_wall_clock(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    segment.append(0, build(0, timestamp=-1))
    settings = LogSettings(segment_ms=1000)
    assert not segment.should_roll(100, -1, 1, NOW + 1000, settings)
    assert segment.should_roll(100, -1, 1, NOW + 1001, settings)
    assert segment.first_batch_timestamp == 2**63 - 1


def test_jitter_brings_the_roll_forward(disk: MemoryDisk) -> None:
    settings = LogSettings(segment_ms=1000, segment_jitter_ms=400)
    jitters = {roll_jitter_ms(settings, SeededEntropy(seed)) for seed in range(50)}
    assert len(jitters) > 20
    assert all(0 <= jitter < 400 for jitter in jitters)
    assert roll_jitter_ms(LogSettings(), SeededEntropy()) == 0
    disk.make_directory(DIRECTORY)
    segment = Segment.create(disk, DIRECTORY, 0, settings, NOW, jitter_ms=300)
    segment.append(0, build(0))
    assert not segment.should_roll(100, NOW + 700, 1, NOW, settings)
    assert segment.should_roll(100, NOW + 701, 1, NOW, settings)


def test_a_segment_is_rolled_when_offsets_no_longer_fit(disk: MemoryDisk) -> None:
    segment = new_segment(disk, 100)
    assert not segment.should_roll(100, NOW, 100 + 2**31 - 1, NOW, LogSettings())
    assert segment.should_roll(100, NOW, 100 + 2**31, NOW, LogSettings())


def test_a_segment_is_rolled_when_an_index_is_full(disk: MemoryDisk) -> None:
    segment = new_segment(disk, index_interval_bytes=0, segment_index_bytes=36)
    rolled_at = None
    for number in range(10):
        if segment.should_roll(100, NOW, number, NOW, LogSettings()):
            rolled_at = number
            break
        segment.append(number, build(number, timestamp=NOW + number))
    assert rolled_at == 3
    segment.deactivate()
    assert [len(segment.offset_index), len(segment.time_index)] == [2, 2]


# Reading


def test_a_read_from_the_middle_of_a_batch_begins_at_its_start(disk: MemoryDisk) -> None:
    segment = new_segment(disk, 100)
    written = fill(segment, 3)
    found = segment.read(104, 10_000)
    assert found is not None
    assert found.file is segment.log
    assert found.position == len(written[0])
    assert found.length == len(written[1]) + len(written[2])
    assert found.start == (103, 100, len(written[0]))
    assert not found.first_batch_incomplete


def test_limits_cut_but_the_first_batch_can_be_asked_for_whole(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    (first, _) = fill(segment, 2)
    cut = segment.read(0, 10)
    assert cut is not None
    assert (cut.length, cut.first_batch_incomplete, cut.first_batch_size) == (10, True, len(first))
    whole = segment.read(0, 10, min_one_message=True)
    assert whole is not None
    assert (whole.length, whole.first_batch_incomplete) == (len(first), False)
    nothing = segment.read(0, 0)
    assert nothing is not None
    assert nothing.length == 0
    with pytest.raises(ValueError, match="cannot read"):
        segment.read(0, -1)


def test_nothing_beyond_the_given_position_is_handed_out(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    (first, _, _) = fill(segment, 3)
    within = segment.read(0, 10_000, max_position=len(first))
    assert within is not None
    assert within.length == len(first)
    beyond = segment.read(3, 10_000, max_position=len(first), min_one_message=True)
    assert beyond is not None
    assert beyond.length == 0


def test_reading_beyond_the_end_finds_nothing(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    assert segment.read(0, 100) is None
    fill(segment, 2)
    assert segment.read(6, 100) is None


class Model:
    """A segment as a list of batches: first offset, last offset, position, size, timestamps."""

    def __init__(self, shapes: list[tuple[int, int, int, int]]) -> None:
        self.batches: list[tuple[int, int, int, bytes, list[int]]] = []
        offset, position = 10, 0
        for gap, count, size, later in shapes:
            base = offset + gap
            timestamps = [NOW + later + index for index in range(count)]
            data = build(base, count, timestamp=NOW + later, value_size=size)
            self.batches.append((base, base + count - 1, position, data, timestamps))
            offset, position = base + count, position + len(data)


SHAPES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 300), st.integers(0, 40)), max_size=25
)


@given(
    shapes=SHAPES,
    interval=st.sampled_from([0, 100, 700, 4096]),
    closed=st.booleans(),
    target=st.integers(5, 120),
)
def test_places_and_times_agree_with_a_list(
    shapes: list[tuple[int, int, int, int]], interval: int, closed: bool, target: int
) -> None:
    model = Model(shapes)
    disk = MemoryDisk()
    segment = new_segment(disk, 10, index_interval_bytes=interval)
    for _, last, _, data, _ in model.batches:
        segment.append(last, data)
    if closed:
        segment.close()
        segment = reopened(disk, 10, index_interval_bytes=interval)
    assert segment.next_offset() == (model.batches[-1][1] + 1 if model.batches else 10)
    at_or_after = [entry for entry in model.batches if entry[1] >= target]
    place = segment.translate(target)
    if at_or_after:
        base, _, position, data, _ = at_or_after[0]
        assert place == (base, position, len(data))
    else:
        assert place is None
    wanted = NOW + target - 60
    found = segment.find_timestamp(wanted, 10)
    records = [
        (timestamp, base + index)
        for base, _, _, _, timestamps in model.batches
        for index, timestamp in enumerate(timestamps)
    ]
    expected = next((record for record in records if record[0] >= wanted), None)
    assert (found[:2] if found else None) == expected
    maximum = max((timestamps[-1] for *_, timestamps in model.batches), default=-1)
    assert segment.max_timestamp.timestamp == maximum


@given(shapes=SHAPES, interval=st.sampled_from([0, 300]), cut=st.integers(5, 120), closed=st.booleans())
def test_truncation_agrees_with_a_list(
    shapes: list[tuple[int, int, int, int]], interval: int, cut: int, closed: bool
) -> None:
    model = Model(shapes)
    disk = MemoryDisk()
    segment = new_segment(disk, 10, index_interval_bytes=interval)
    for _, last, _, data, _ in model.batches:
        segment.append(last, data)
    if closed:
        segment.close()
        segment = reopened(disk, 10, index_interval_bytes=interval)
    kept = [entry for entry in model.batches if entry[1] < cut]
    content = b"".join(data for _, _, _, data, _ in kept)
    total = sum(len(data) for _, _, _, data, _ in model.batches)
    assert segment.truncate_to(cut, NOW) == total - len(content)
    assert disk.read(segment.log.path) == content
    assert segment.next_offset() == (kept[-1][1] + 1 if kept else 10)
    assert segment.max_timestamp.timestamp == max((stamps[-1] for *_, stamps in kept), default=-1)
    data = build(200, 2, timestamp=NOW + 500)
    segment.append(201, data)
    segment.close()
    segment.sanity_check()
    assert disk.read(segment.log.path) == content + data
    assert reopened(disk, 10).translate(150) == (200, len(content), len(data))


def test_a_timestamp_search_honours_the_start_offset(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    segment.append(2, build(0, 3, timestamp=NOW, leader_epoch=4))
    segment.append(5, build(3, 3, timestamp=NOW, leader_epoch=5))
    assert segment.find_timestamp(NOW + 1, 0) == (NOW + 1, 1, 4)
    assert segment.find_timestamp(NOW + 1, 2) == (NOW + 2, 2, 4)
    assert segment.find_timestamp(NOW + 1, 3) == (NOW + 1, 4, 5)
    assert segment.find_timestamp(NOW + 3, 0) is None
    assert segment.find_timestamp(NOW, 6) is None


def test_an_upper_bound_lies_beyond_the_range(disk: MemoryDisk) -> None:
    segment = new_segment(disk, index_interval_bytes=0)
    written = fill(segment, 10)
    size = len(written[0])
    assert segment.upper_bound_offset(0, 2 * size) == 8
    assert segment.upper_bound_offset(0, 100 * size) is None


def test_the_largest_timestamp_falls_back_on_the_time_of_writing() -> None:
    disk = MemoryDisk(clock=ManualClock(5000))
    segment = new_segment(disk)
    segment.append(0, build(0, timestamp=-1))
    assert segment.largest_timestamp == segment.modified_ms == 5000
    segment.append(1, build(1))
    assert segment.largest_timestamp == NOW


# Names


def test_all_files_change_their_suffix_together(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 3)
    segment.close()
    segment.change_suffix("", ".cleaned")
    assert segment.has_suffix(".cleaned")
    segment.change_suffix(".cleaned", ".swap")
    assert disk.list_directory(DIRECTORY) == [
        f"{0:020d}{kind}.swap" for kind in (".index", ".log", ".timeindex")
    ]
    segment.change_suffix(".swap", "")
    assert segment.next_offset() == 9
    assert segment.paths == [
        f"{DIRECTORY}/{0:020d}{kind}" for kind in (".log", ".index", ".timeindex", ".txnindex")
    ]


def test_a_segment_follows_its_directory(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 3)
    disk.rename(DIRECTORY, DIRECTORY + ".gone")
    segment.moved_to(DIRECTORY + ".gone")
    segment.append(9, build(9))
    segment.close()
    assert not disk.exists(DIRECTORY)
    assert reopened_in(disk, DIRECTORY + ".gone").next_offset() == 10


def reopened_in(disk: MemoryDisk, directory: str) -> Segment:
    return Segment.open(disk, directory, 0, LogSettings(), NOW)


def test_deleting_removes_what_is_there(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 3)
    disk.remove(segment.time_index.path)
    segment.delete()
    segment.delete()
    assert disk.list_directory(DIRECTORY) == []


def test_opening_looks_at_nothing_but_the_size(disk: MemoryDisk) -> None:
    segment = new_segment(disk)
    fill(segment, 3)
    segment.close()
    disk.operations.clear()
    assert reopened(disk).size == segment.size
    assert not disk.operations


def test_marks_are_what_the_headers_say() -> None:
    first, second = build(5, 3), build(8, 1, timestamp=7)
    assert marks_of(first + second) == [(7, NOW + 2, len(first)), (8, 7, len(second))]
