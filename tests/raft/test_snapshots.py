"""Snapshot files: names, content, and what is not taken for one."""

from uuid import UUID

import pytest

from headrace.config.endpoints import Address
from headrace.errors import HeadraceError
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.raft.batches import ControlBatch, DataBatch
from headrace.raft.snapshots import (
    CorruptSnapshot,
    SnapshotBuilder,
    SnapshotId,
    last_contained_timestamp,
    list_snapshots,
    read_snapshot,
    write_snapshot,
)
from headrace.raft.voters import Voter
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk

DIRECTORY = "/data/__cluster_metadata-0"
ID = SnapshotId(21, 3)
VOTERS = (Voter(1, UUID(int=500), (("CONTROLLER", Address("host", 9093)),)),)


def disk() -> MemoryDisk:
    made = MemoryDisk()
    made.make_directory(DIRECTORY)
    made.sync_directory(DIRECTORY)
    return made


def content(kraft_version: int = 0) -> bytes:
    voters = VOTERS if kraft_version else None
    builder = SnapshotBuilder(2_000, 1_500, 3, kraft_version=kraft_version, voters=voters)
    builder.add([b"one", b"two"])
    builder.add([])
    builder.add([b"three"])
    return builder.finish()


def test_a_snapshot_is_read_as_it_was_built() -> None:
    storage = disk()
    write_snapshot(storage, DIRECTORY, ID, content())
    first, one, two, last = read_snapshot(storage, f"{DIRECTORY}/{ID.file_name}")
    assert isinstance(first, ControlBatch)
    assert isinstance(one, DataBatch)
    assert isinstance(two, DataBatch)
    assert isinstance(last, ControlBatch)
    assert [type(record.message) for record in first.records] == [SnapshotHeaderRecord]
    assert (one.values, two.values) == ([b"one", b"two"], [b"three"])
    assert (one.base_offset, two.base_offset, last.base_offset, one.epoch) == (1, 3, 4, 3)
    assert [type(record.message) for record in last.records] == [SnapshotFooterRecord]
    assert last_contained_timestamp(storage, f"{DIRECTORY}/{ID.file_name}") == 1_500


def test_from_kraft_version_1_on_it_names_the_voters() -> None:
    storage = disk()
    write_snapshot(storage, DIRECTORY, ID, content(1))
    first = next(read_snapshot(storage, f"{DIRECTORY}/{ID.file_name}"))
    assert isinstance(first, ControlBatch)
    kinds = [type(record.message) for record in first.records]
    assert kinds == [SnapshotHeaderRecord, KRaftVersionRecord, VotersRecord]


def test_files_are_listed_by_offset_and_others_passed_over() -> None:
    storage = disk()
    for name in (
        "00000000000000000021-0000000003.checkpoint",
        "00000000000000000009-0000000001.checkpoint",
        "00000000000000000030-0000000003.checkpoint.part",
        "00000000000000000030-0000000003-1234567.checkpoint.part",
        "00000000000000000005-0000000001.checkpoint.deleted",
        "00000000000000000000.log",
        "quorum-state",
        "bootstrap.checkpoint",
    ):
        storage.replace(f"{DIRECTORY}/{name}", b"")
    found = list_snapshots(storage, DIRECTORY)
    assert [file.id.offset for file in found] == [5, 9, 21, 30, 30]
    assert [file.id.offset for file in found if file.is_finished] == [9, 21]


@pytest.mark.parametrize("cut", [1, 40, 90, 120])
def test_a_torn_snapshot_is_not_used(cut: int) -> None:
    storage = disk()
    storage.replace(f"{DIRECTORY}/{ID.file_name}", content()[:-cut])
    with pytest.raises(CorruptSnapshot, match="no footer"):
        list(read_snapshot(storage, f"{DIRECTORY}/{ID.file_name}"))


def test_a_flipped_bit_is_found() -> None:
    storage = disk()
    storage.replace(f"{DIRECTORY}/{ID.file_name}", content())
    storage.flip_bit(f"{DIRECTORY}/{ID.file_name}", 160)
    with pytest.raises(HeadraceError):
        list(read_snapshot(storage, f"{DIRECTORY}/{ID.file_name}"))


def test_bytes_after_the_footer_are_refused() -> None:
    storage = disk()
    storage.replace(f"{DIRECTORY}/{ID.file_name}", content() + content())
    with pytest.raises(CorruptSnapshot, match="after the footer"):
        list(read_snapshot(storage, f"{DIRECTORY}/{ID.file_name}"))


@pytest.mark.parametrize("loss", list(Loss))
def test_a_crash_leaves_a_whole_snapshot_or_none(loss: Loss) -> None:
    for operations in range(12):
        storage = disk()
        storage.crash_after(operations)
        done = True
        try:
            write_snapshot(storage, DIRECTORY, ID, content())
        except Crashed:
            done = False
        storage.crash(loss)
        finished = [file for file in list_snapshots(storage, DIRECTORY) if file.is_finished]
        assert bool(finished) or not done
        for file in finished:
            assert len(list(read_snapshot(storage, f"{DIRECTORY}/{file.name}"))) == 4
