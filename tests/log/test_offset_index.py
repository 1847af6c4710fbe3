"""The offset index: entries, searches, truncation and the bytes in its file."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder, OffsetOverflow
from headrace.log.offset_index import OffsetIndex, OffsetPosition
from headrace.testing.memory_disk import MemoryDisk

PATH = "/00000000000000000100.index"
BASE = 100


def new_index(max_bytes: int = 8 * 1000 + 5) -> tuple[MemoryDisk, OffsetIndex]:
    disk = MemoryDisk()
    index = OffsetIndex(disk, PATH, BASE, max_bytes)
    index.create()
    return disk, index


def reopened(disk: MemoryDisk) -> OffsetIndex:
    return OffsetIndex(disk, PATH, BASE, 8000)


def test_a_new_index_has_the_largest_size_that_is_a_multiple_of_its_entries() -> None:
    disk, index = new_index(max_bytes=8 * 1000 + 5)
    assert disk.read(PATH) == bytes(8000)
    assert (len(index), index.last_offset) == (0, BASE)
    assert index.lookup(5000) == OffsetPosition(BASE, 0)


def test_entries_are_relative_and_big_endian() -> None:
    disk, index = new_index()
    index.append(105, 4200)
    index.append(BASE + 2**31 - 1, 2**31 - 1)
    index.trim()
    assert disk.read(PATH) == pack(">iiii", 5, 4200, 2**31 - 1, 2**31 - 1)


def test_entries_reach_the_file_with_persist() -> None:
    disk, index = new_index()
    index.append(105, 4200)
    assert disk.read(PATH) == bytes(8000)
    index.persist()
    assert disk.read(PATH) == pack(">ii", 5, 4200).ljust(8000, b"\0")
    index.append(110, 8400)
    index.persist()
    assert disk.read(PATH) == pack(">iiii", 5, 4200, 10, 8400).ljust(8000, b"\0")


def test_sync_makes_persisted_entries_durable() -> None:
    disk, index = new_index()
    index.append(105, 4200)
    index.persist()
    index.sync()
    assert disk.durable(PATH) == pack(">ii", 5, 4200).ljust(8000, b"\0")


def test_offsets_must_grow() -> None:
    _, index = new_index()
    index.append(105, 1)
    for offset in (105, 104):
        with pytest.raises(IndexOutOfOrder):
            index.append(offset, 2)


def test_offsets_must_fit() -> None:
    _, index = new_index()
    for offset in (BASE - 1, BASE + 2**31):
        with pytest.raises(OffsetOverflow):
            index.append(offset, 2)


def test_a_full_index_takes_no_more() -> None:
    disk, index = new_index(max_bytes=16)
    index.append(101, 1)
    assert not index.is_full
    index.append(102, 2)
    assert index.is_full
    index.append(103, 3)
    index.trim()
    assert disk.size(PATH) == 16


def test_a_trimmed_index_is_searched_on_disk_and_takes_appends_again() -> None:
    disk, index = new_index()
    index.append(105, 4200)
    index.trim()
    assert not index.in_memory
    index = reopened(disk)
    assert index.lookup(106) == OffsetPosition(105, 4200)
    assert not index.in_memory
    index.preallocate()
    assert disk.size(PATH) == 8000
    index.append(110, 8400)
    index.trim()
    assert disk.read(PATH) == pack(">iiii", 5, 4200, 10, 8400)


def test_large_indexes_on_disk_are_searched_with_few_reads() -> None:
    disk, index = new_index(max_bytes=8 * 100_000)
    for number in range(100_000):
        index.append(BASE + 2 * number, number)
    index.trim()
    index = reopened(disk)
    assert index.last_offset == BASE + 199_998
    disk.operations.clear()
    assert index.lookup(BASE + 77_777) == OffsetPosition(BASE + 77_776, 38_888)
    assert disk.operations["read"] <= 12


@given(
    steps=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9000)), max_size=40),
    probes=st.lists(st.integers(BASE - 10, BASE + 2500), min_size=1, max_size=20),
    on_disk=st.booleans(),
)
def test_lookups_agree_with_a_list(steps: list[tuple[int, int]], probes: list[int], on_disk: bool) -> None:
    disk, index = new_index()
    entries: list[OffsetPosition] = []
    offset, position = BASE, 0
    for gap, size in steps:
        offset, position = offset + gap, position + size
        index.append(offset, position)
        entries.append(OffsetPosition(offset, position))
    if on_disk:
        index.trim()
        index = reopened(disk)
    for probe in probes:
        before = [entry for entry in entries if entry.offset <= probe]
        assert index.lookup(probe) == (before[-1] if before else OffsetPosition(BASE, 0))
        beyond = [entry for entry in entries if entry.position >= probe]
        assert index.upper_bound(probe) == (beyond[0] if beyond else None)
    assert [index.entry(slot) for slot in range(len(index))] == entries


@given(
    offsets=st.sets(st.integers(BASE, BASE + 200), max_size=30),
    cut=st.integers(BASE - 5, BASE + 205),
    on_disk=st.booleans(),
)
def test_truncation_keeps_what_lies_before(offsets: set[int], cut: int, on_disk: bool) -> None:
    disk, index = new_index()
    for offset in sorted(offsets):
        index.append(offset, offset * 10)
    if on_disk:
        index.trim()
        index = reopened(disk)
    index.truncate_to(cut)
    kept = [offset for offset in sorted(offsets) if offset < cut]
    assert [index.entry(slot).offset for slot in range(len(index))] == kept
    assert index.last_offset == (kept[-1] if kept else BASE)
    index.append(BASE + 300, 9999)
    index.trim()
    assert disk.read(PATH) == b"".join(
        pack(">ii", offset - BASE, position)
        for offset, position in [*((offset, offset * 10) for offset in kept), (BASE + 300, 9999)]
    )


def test_an_index_that_is_reset_is_written_anew() -> None:
    disk, index = new_index()
    for number in range(5):
        index.append(BASE + number, number)
    index.persist()
    index.reset()
    index.append(BASE + 7, 70)
    index.trim()
    assert disk.read(PATH) == pack(">ii", 7, 70)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"123", "multiple of 8"), (bytes(8) + b"1", "multiple of 8"), (pack(">ii", -5, 10), "before the base")],
)
def test_impossible_files_fail_the_sanity_check(content: bytes, reason: str) -> None:
    disk = MemoryDisk()
    disk.open(PATH, create=True).append(content)
    with pytest.raises(CorruptIndex, match=reason) as refusal:
        reopened(disk).sanity_check()
    assert refusal.value.path == PATH


def test_sound_and_empty_files_pass_the_sanity_check() -> None:
    disk, index = new_index()
    index.append(105, 1)
    index.trim()
    reopened(disk).sanity_check()
    index.reset()
    index.trim()
    reopened(disk).sanity_check()


def test_a_file_cut_behind_its_back_is_corrupt_rather_than_misread() -> None:
    disk, index = new_index()
    for number in range(1, 50):
        index.append(BASE + number, number)
    index.trim()
    index = reopened(disk)
    assert len(index) == 49
    disk.tear(PATH, 100)
    with pytest.raises(CorruptIndex):
        index.lookup(BASE + 40)


def test_rename_and_delete() -> None:
    disk, index = new_index()
    index.append(105, 1)
    index.rename(PATH + ".deleted")
    index.trim()
    assert disk.list_directory("/") == [PATH.lstrip("/") + ".deleted"]
    index.delete()
    index.delete()
    assert disk.list_directory("/") == []
