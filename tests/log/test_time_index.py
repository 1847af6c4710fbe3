"""The time index: which entries are taken, searches, truncation and the bytes in its file."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder, OffsetOverflow
from headrace.log.time_index import TimeIndex, TimestampOffset
from headrace.testing.memory_disk import MemoryDisk

PATH = "/00000000000000000100.timeindex"
BASE = 100


def new_index(max_bytes: int = 12 * 100 + 7) -> tuple[MemoryDisk, TimeIndex]:
    disk = MemoryDisk()
    index = TimeIndex(disk, PATH, BASE, max_bytes)
    index.create()
    return disk, index


def reopened(disk: MemoryDisk) -> TimeIndex:
    return TimeIndex(disk, PATH, BASE, 1200)


def test_a_new_index_has_the_largest_size_that_is_a_multiple_of_its_entries() -> None:
    disk, index = new_index()
    assert disk.read(PATH) == bytes(1200)
    assert index.last_entry == TimestampOffset(-1, BASE)


def test_entries_are_a_timestamp_and_a_relative_offset() -> None:
    disk, index = new_index()
    index.maybe_append(1_700_000_000_000, 107)
    index.trim()
    assert disk.read(PATH) == pack(">qi", 1_700_000_000_000, 7)
    assert reopened(disk).last_entry == TimestampOffset(1_700_000_000_000, 107)


def test_only_larger_timestamps_are_taken() -> None:
    _, index = new_index()
    index.maybe_append(10, 101)
    index.maybe_append(10, 105)
    index.maybe_append(9, 106)
    index.maybe_append(-1, 107)
    index.maybe_append(11, 108)
    assert [index.entry(slot) for slot in range(len(index))] == [(10, 101), (11, 108)]


def test_offsets_do_not_go_back_and_must_fit() -> None:
    _, index = new_index()
    index.maybe_append(10, 105)
    with pytest.raises(IndexOutOfOrder):
        index.maybe_append(11, 104)
    with pytest.raises(OffsetOverflow):
        index.maybe_append(11, BASE + 2**31)


def test_the_last_slot_is_kept_for_the_roll() -> None:
    disk, index = new_index(max_bytes=36)
    index.maybe_append(1, 101)
    assert not index.is_full
    index.maybe_append(2, 102)
    assert index.is_full
    index.maybe_append(3, 103)
    assert len(index) == 2
    index.maybe_append(4, 104, closing=True)
    assert len(index) == 3
    index.maybe_append(5, 105, closing=True)
    index.trim()
    assert disk.size(PATH) == 36


@given(
    steps=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 9)), max_size=30),
    probes=st.lists(st.integers(-5, 650), min_size=1, max_size=20),
    on_disk=st.booleans(),
)
def test_lookups_agree_with_a_list(steps: list[tuple[int, int]], probes: list[int], on_disk: bool) -> None:
    disk, index = new_index()
    entries: list[TimestampOffset] = []
    timestamp, offset = 0, BASE
    for later, further in steps:
        timestamp, offset = timestamp + later, offset + further
        index.maybe_append(timestamp, offset)
        entries.append(TimestampOffset(timestamp, offset))
    if on_disk:
        index.trim()
        index = reopened(disk)
    for probe in probes:
        before = [entry for entry in entries if entry.timestamp <= probe]
        assert index.lookup(probe) == (before[-1] if before else TimestampOffset(-1, BASE))


@given(
    offsets=st.sets(st.integers(BASE, BASE + 200), max_size=30),
    cut=st.integers(BASE - 5, BASE + 205),
    on_disk=st.booleans(),
)
def test_truncation_keeps_what_lies_before(offsets: set[int], cut: int, on_disk: bool) -> None:
    disk, index = new_index()
    for offset in sorted(offsets):
        index.maybe_append(offset * 10, offset)
    if on_disk:
        index.trim()
        index = reopened(disk)
    index.truncate_to(cut)
    kept = [offset for offset in sorted(offsets) if offset < cut]
    assert [index.entry(slot).offset for slot in range(len(index))] == kept
    assert index.last_entry == ((kept[-1] * 10, kept[-1]) if kept else (-1, BASE))
    index.maybe_append(9_999, BASE + 300)
    assert index.last_entry == (9_999, BASE + 300)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (bytes(13), "multiple of 12"),
        (pack(">qiqi", 20, 1, 10, 2), "before its first"),
        (pack(">qi", 20, -3), "before the base"),
    ],
)
def test_impossible_files_fail_the_sanity_check(content: bytes, reason: str) -> None:
    disk = MemoryDisk()
    disk.open(PATH, create=True).append(content)
    with pytest.raises(CorruptIndex, match=reason):
        reopened(disk).sanity_check()


def test_sound_and_empty_files_pass_the_sanity_check() -> None:
    disk, index = new_index()
    index.trim()
    reopened(disk).sanity_check()
    index.maybe_append(5, 105)
    index.trim()
    reopened(disk).sanity_check()
