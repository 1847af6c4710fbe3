"""Snapshots of the metadata log: `.checkpoint` files that hold what all records before an offset add up to.

A snapshot begins with a batch of control records (header, and from kraft.version 1 on the version and the
voters) and ends with one that holds the footer; a file without footer is not used."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headrace.errors import HeadraceError
from headrace.ports import Disk
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from headrace.raft.batches import ControlBatch, DataBatch, build_data_batch, read_batches
from headrace.raft.voters import Voter, record_of_voters
from headrace.records.quorum_control import QuorumMessage, build_quorum_batch

SUFFIX: Final = ".checkpoint"
PARTIAL_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".checkpoint.deleted"
#: Records per batch: few enough that building one does not hold up others.
BATCH_RECORDS: Final = 200
_NAME: Final = re.compile(r"(\d{20})-(\d{10})(?:-\d+)?(\.checkpoint(?:\.part|\.deleted)?)")


class CorruptSnapshot(HeadraceError):
    """A snapshot that does not hold together, with its file and the reason."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be used: {reason}")
        self.path = path


class SnapshotId(NamedTuple):
    """A snapshot holds everything before `offset`; `epoch` is that of the last record in it."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{SUFFIX}"


class SnapshotFile(NamedTuple):
    """A file of a snapshot in a directory, finished or not."""

    id: SnapshotId
    name: str

    @property
    def is_finished(self) -> bool:
        return self.name == self.id.file_name


BOOTSTRAP_ID: Final = SnapshotId(0, 0)


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotFile]:
    """Every file of a snapshot, by offset and epoch."""
    found = []
    for name in disk.list_directory(directory):
        match = _NAME.fullmatch(name)
        if match is not None:
            found.append(SnapshotFile(SnapshotId(int(match[1]), int(match[2])), name))
    return sorted(found)


def read_snapshot(disk: Disk, path: str) -> Iterator[DataBatch | ControlBatch]:
    """The batches of a snapshot; CorruptSnapshot where a checksum is wrong or the footer is missing."""
    content = disk.read(path)
    ended = False
    read = 0
    for batch in read_batches(content):
        if ended:
            raise CorruptSnapshot(path, f"there are bytes after the footer, at position {read}")
        read += batch.size
        if isinstance(batch, ControlBatch):
            ended = any(isinstance(record.message, SnapshotFooterRecord) for record in batch.records)
        yield batch
    if not ended or read != len(content):
        raise CorruptSnapshot(path, f"it has no footer in its {len(content)} bytes")


def last_contained_timestamp(disk: Disk, path: str) -> int:
    """The timestamp of the last record in a snapshot, which its header tells."""
    for batch in read_batches(disk.open(path).read_at(0, 4096)):
        if isinstance(batch, ControlBatch):
            for record in batch.records:
                if isinstance(record.message, SnapshotHeaderRecord):
                    return record.message.last_contained_log_timestamp
        break
    raise CorruptSnapshot(path, "it has no header")


class SnapshotBuilder:
    """Puts a snapshot together, batch by batch."""

    __slots__ = ("_epoch", "_now_ms", "_offset", "_parts")

    def __init__(
        self,
        now_ms: int,
        last_contained_timestamp: int,
        epoch: int = 0,
        *,
        kraft_version: int = 0,
        voters: tuple[Voter, ...] | None = None,
    ) -> None:
        self._now_ms = now_ms
        self._epoch = epoch
        self._offset = 0
        self._parts: list[bytes] = []
        messages: list[QuorumMessage] = [
            SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp)
        ]
        if kraft_version > 0:
            messages.append(KRaftVersionRecord(k_raft_version=kraft_version))
            if voters is not None:
                messages.append(record_of_voters(voters))
        self._control(messages)

    def add(self, values: Iterable[bytes]) -> None:
        """One more batch of values."""
        listed = list(values)
        if listed:
            self._parts.append(build_data_batch(listed, self._offset, self._epoch, self._now_ms))
            self._offset += len(listed)

    def finish(self) -> bytes:
        """The whole file."""
        self._control([SnapshotFooterRecord()])
        return b"".join(self._parts)

    def _control(self, messages: list[QuorumMessage]) -> None:
        self._parts.append(
            build_quorum_batch(
                messages, timestamp=self._now_ms, leader_epoch=self._epoch, base_offset=self._offset
            )
        )
        self._offset += len(messages)


def write_snapshot(disk: Disk, directory: str, snapshot_id: SnapshotId, content: bytes) -> None:
    """Put a finished snapshot in place: it is there as a whole and durable, or not at all."""
    partial = f"{directory}/{snapshot_id.file_name.removesuffix(SUFFIX)}{PARTIAL_SUFFIX}"
    file = disk.open(partial, create=True)
    try:
        file.truncate(0)
        file.append(content)
        file.sync()
    finally:
        file.close()
    disk.rename(partial, f"{directory}/{snapshot_id.file_name}")
    disk.sync_directory(directory)
