"""Leader epochs: assignment, search, truncation and the checkpoint file."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.checkpoints import CorruptCheckpoint
from headrace.log.leader_epochs import EpochEntry, LeaderEpochs
from headrace.testing.memory_disk import MemoryDisk
from tests.support_segment import kafka_files

FILE = "/t-0/leader-epoch-checkpoint"


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/t-0")
    return disk


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs(new_disk(), "/t-0")
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    return epochs


def test_kafkas_own_file_is_read_and_written_alike() -> None:
    content = kafka_files("clean-shutdown", "rolled-0")["leader-epoch-checkpoint"]
    disk = new_disk()
    disk.replace(FILE, content)
    epochs = LeaderEpochs.load(disk, "/t-0")
    assert epochs.entries == [(0, 0), (2, 3000)]
    epochs.write()
    assert disk.read(FILE) == content


def test_without_a_file_there_are_no_epochs() -> None:
    epochs = LeaderEpochs.load(new_disk(), "/t-0")
    assert (len(epochs), epochs.latest, epochs.earliest, epochs.latest_epoch) == (0, None, None, -1)


def test_a_damaged_file_is_refused_by_name() -> None:
    disk = new_disk()
    disk.replace(FILE, b"0\n1\n5\n")
    with pytest.raises(CorruptCheckpoint, match="leader-epoch-checkpoint"):
        LeaderEpochs.load(disk, "/t-0")


def test_a_new_epoch_is_durable_on_return() -> None:
    disk = new_disk()
    assert LeaderEpochs(disk, "/t-0").assign(3, 10)
    disk.crash()
    assert LeaderEpochs.load(disk, "/t-0").entries == [(3, 10)]


def test_a_known_epoch_is_not_written_again() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, "/t-0")
    epochs.assign(3, 10)
    disk.operations.clear()
    assert not epochs.assign(3, 10)
    assert not epochs.assign(3, 12)
    assert not disk.operations


def test_an_epoch_that_begins_earlier_than_known_replaces_what_contradicts_it() -> None:
    epochs = epochs_of((1, 10), (2, 20), (3, 30))
    epochs.assign(4, 15)
    assert epochs.entries == [(1, 10), (4, 15)]
    epochs.assign(3, 40)
    assert epochs.entries == [(1, 10), (3, 40)]
    epochs.assign(3, 35)
    assert epochs.entries == [(1, 10), (3, 35)]


def test_an_epoch_without_records_gives_way() -> None:
    assert epochs_of((1, 10), (2, 10)).entries == [(2, 10)]


@pytest.mark.parametrize("entry", [(-1, 0), (0, -1)])
def test_impossible_epochs_are_refused(entry: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not a leader epoch"):
        epochs_of(entry)


def test_several_epochs_are_written_at_once() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, "/t-0")
    disk.operations.clear()
    epochs.assign_all([EpochEntry(1, 0), EpochEntry(2, 5)])
    assert disk.operations["rename"] == 1
    assert disk.read(FILE) == b"0\n2\n1 0\n2 5\n"


def test_the_end_of_an_epoch_is_where_the_next_begins() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 30))
    assert epochs.end_offset_for(2, 99) == (2, 20)
    assert epochs.end_offset_for(4, 99) == (4, 30)
    assert epochs.end_offset_for(7, 99) == (7, 99)
    assert epochs.end_offset_for(5, 99) == (4, 30)
    assert epochs.end_offset_for(1, 99) == (1, 10)
    assert epochs.end_offset_for(8, 99) == (-1, -1)
    assert epochs.end_offset_for(-1, 99) == (-1, -1)
    assert epochs_of().end_offset_for(0, 99) == (-1, -1)


def test_epochs_by_offset_and_by_neighbour() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 30))
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 30, 99)] == [None, 2, 2, 4, 7, 7]
    assert [epochs.previous_epoch(epoch) for epoch in (2, 3, 4, 9)] == [None, 2, 2, 7]
    assert [epochs.next_epoch(epoch) for epoch in (1, 2, 5, 7)] == [2, 4, 7, None]
    assert epochs.entry_for(4) == (4, 20)
    assert epochs.entry_for(5) is None


def test_truncation_from_the_end_drops_epochs_that_begin_there() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 30))
    assert not epochs.truncate_from_end(31)
    assert not epochs.truncate_from_end(-1)
    assert epochs.truncate_from_end(20)
    assert epochs.entries == [(2, 10)]
    assert epochs.latest_epoch == 2


def test_truncation_from_the_start_lets_the_epoch_there_begin_later() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 30))
    assert not epochs.truncate_from_start(9)
    assert epochs.truncate_from_start(25)
    assert epochs.entries == [(4, 25), (7, 30)]
    assert epochs.truncate_from_start(30)
    assert epochs.entries == [(7, 30)]
    assert epochs.truncate_from_start(50)
    assert epochs.entries == [(7, 50)]


def test_truncations_reach_the_file_with_flush() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, "/t-0")
    epochs.assign_all([EpochEntry(1, 0), EpochEntry(2, 5)])
    epochs.truncate_from_end(5)
    assert epochs.dirty
    assert LeaderEpochs.load(disk, "/t-0").entries == [(1, 0), (2, 5)]
    epochs.flush()
    assert LeaderEpochs.load(disk, "/t-0").entries == [(1, 0)]
    disk.operations.clear()
    epochs.flush()
    assert not disk.operations
    epochs.clear()
    epochs.flush()
    assert disk.read(FILE) == b"0\n0\n"


def test_a_noted_epoch_is_known_at_once_and_written_when_asked() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, "/t-0")
    epochs.note(3, 7)
    assert (epochs.latest_epoch, disk.exists(FILE)) == (3, False)
    epochs.flush()
    assert LeaderEpochs.load(disk, "/t-0").entries == [(3, 7)]
    disk.operations.clear()
    epochs.note(3, 9)
    epochs.flush()
    assert not disk.operations


def test_the_file_follows_its_directory() -> None:
    disk = new_disk()
    epochs = LeaderEpochs(disk, "/t-0")
    disk.rename("/t-0", "/t-0.gone")
    epochs.moved_to("/t-0.gone")
    epochs.assign(1, 0)
    assert disk.list_directory("/t-0.gone") == ["leader-epoch-checkpoint"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), max_size=15))
def test_epochs_and_offsets_always_grow(entries: list[tuple[int, int]]) -> None:
    epochs = epochs_of(*entries)
    found = epochs.entries
    assert found == sorted(found)
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(found))
    if entries:
        assert epochs.latest_epoch == entries[-1][0]
