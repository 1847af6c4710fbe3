"""The log of `__cluster_metadata-0` and the snapshots beside it.

Opening puts the files right after a crash: a torn tail is cut, unfinished snapshots go, and a log that ends
before its latest snapshot begins anew there."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from headrace.errors import HeadraceError
from headrace.log.deletions import unlink_all
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import LogSurroundings, PartitionLog
from headrace.log.settings import ProducerStateSettings
from headrace.ports import Clock, Disk, Entropy, File
from headrace.raft.batches import ControlBatch, DataBatch, read_batches
from headrace.raft.settings import METADATA_PARTITION, METADATA_TOPIC_ID, QuorumSettings
from headrace.raft.snapshots import (
    DELETED_SUFFIX,
    SUFFIX,
    SnapshotId,
    last_contained_timestamp,
    list_snapshots,
    read_snapshot,
    write_snapshot,
)

_READ_BYTES: Final = 1 << 20


class InconsistentMetadataLog(HeadraceError):
    """The metadata log and its snapshots do not fit together."""


class MetadataLog:
    """The log and the snapshots of the metadata quorum on this node."""

    __slots__ = ("_deletions", "_disk", "_settings", "_snapshots", "_synced_base", "log")

    def __init__(
        self, disk: Disk, settings: QuorumSettings, log: PartitionLog, snapshots: list[SnapshotId]
    ) -> None:
        self._disk = disk
        self._settings = settings
        self._snapshots = snapshots
        self._deletions: deque[tuple[int, str]] = deque()
        #: The segment all of whose names and predecessors are durable.
        self._synced_base: int | None = None
        self.log = log

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The snapshot that reaches furthest."""
        return self._snapshots[-1] if self._snapshots else None

    @property
    def snapshots(self) -> tuple[SnapshotId, ...]:
        return tuple(self._snapshots)

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record in the log, or in the snapshot if the log is empty."""
        latest = self.latest_snapshot
        return max(self.log.latest_epoch, latest.epoch if latest is not None else 0, 0)

    def path_of(self, snapshot_id: SnapshotId) -> str:
        return f"{self._settings.directory}/{snapshot_id.file_name}"

    def read_latest_snapshot(self) -> Iterator[DataBatch | ControlBatch]:
        """The batches of the latest snapshot; none if there is none."""
        if self._snapshots:
            yield from read_snapshot(self._disk, self.path_of(self._snapshots[-1]))

    def read_from(self, offset: int) -> Iterator[DataBatch | ControlBatch]:
        """Every batch of the log from `offset` to its end."""
        while offset < self.log.log_end_offset:
            found = self.log.read(offset, _READ_BYTES, Isolation.LOG_END)
            if found.records is None:
                raise InconsistentMetadataLog(
                    f"{METADATA_PARTITION} ends at {self.log.log_end_offset} but has nothing at {offset}"
                )
            piece = found.records
            for batch in read_batches(piece.file.read_at(piece.position, piece.length)):
                offset = batch.last_offset + 1
                yield batch

    async def flush(self, now_ms: int) -> None:
        """Return once everything up to the present end is durable.

        A commit waits for the bytes of the log alone: indexes are derived from them, every start scans what
        lies beyond the latest snapshot, and nothing before it is looked up."""
        log = self.log
        is_done = False
        while not is_done:
            active, end, cuts = log.segments.active, log.log_end_offset, log.truncations
            is_synced = active.base_offset == self._synced_base
            if is_synced:
                await self._sync_bytes(active.log)
            else:
                await log.flush(now_ms)
            # What a truncation has put in the place of these bytes is not durable by this.
            is_done = log.truncations == cuts
            if not is_done:
                self._synced_base = None
            elif is_synced:
                log.mark_flushed(end)
            else:
                self._synced_base = active.base_offset

    async def _sync_bytes(self, file: File) -> None:
        self.log.health.check()
        try:
            await self._disk.off_loop(file.sync)
        except OSError as error:
            raise self.log.health.fail("syncing the metadata log", error) from error

    async def add_snapshot(self, snapshot_id: SnapshotId, content: bytes) -> None:
        """Keep a snapshot; durable on return."""
        disk, directory = self._disk, self._settings.directory
        try:
            await disk.off_loop(lambda: write_snapshot(disk, directory, snapshot_id, content))
        except OSError as error:
            raise self.log.health.fail("writing a metadata snapshot", error) from error
        self._snapshots.append(snapshot_id)
        self._snapshots.sort()

    async def clean(self, now_ms: int) -> bool:
        """Drop old snapshots, and the log before the first that stays; True if anything went."""
        before = len(self._snapshots), self.log.log_start_offset
        self._clean_by_size(now_ms)
        self._clean_by_age(now_ms)
        await self._delete_due(now_ms)
        await self.log.delete_due_files(now_ms)
        return before != (len(self._snapshots), self.log.log_start_offset)

    def _clean_by_size(self, now_ms: int) -> None:
        limit = self._settings.retention_bytes
        if limit < 0 or len(self._snapshots) < 2:
            return
        sizes = {each: self._disk.size(self.path_of(each)) for each in self._snapshots}
        total = sum(sizes.values())
        while len(self._snapshots) > 1 and self.log.size + total > limit:
            oldest = self._snapshots[0]
            if not self._delete_before(self._snapshots[1], now_ms):
                return
            total -= sizes[oldest]

    def _clean_by_age(self, now_ms: int) -> None:
        limit = self._settings.retention_ms
        while limit >= 0 and len(self._snapshots) > 1:
            timestamp = last_contained_timestamp(self._disk, self.path_of(self._snapshots[0]))
            if now_ms - timestamp <= limit or not self._delete_before(self._snapshots[1], now_ms):
                return

    def _delete_before(self, snapshot_id: SnapshotId, now_ms: int) -> bool:
        """Begin the log at a snapshot. The files go later, since somebody may be reading them."""
        if not self.log.advance_log_start(snapshot_id.offset):
            return False
        self.log.delete_old_segments(now_ms)
        while self._snapshots[0] < snapshot_id:
            path = self.path_of(self._snapshots.pop(0))
            retired = path.removesuffix(SUFFIX) + DELETED_SUFFIX
            self._disk.rename(path, retired)
            self._deletions.append((now_ms + self._settings.delete_delay_ms, retired))
        return True

    async def _delete_due(self, now_ms: int) -> None:
        due = []
        while self._deletions and self._deletions[0][0] <= now_ms:
            due.append(self._deletions.popleft()[1])
        if due:
            await self._disk.off_loop(lambda: unlink_all(self._disk, due))


def open_metadata_log(
    disk: Disk, clock: Clock, entropy: Entropy, health: DirectoryHealth, settings: QuorumSettings
) -> MetadataLog:
    """The metadata log of this node, made if it is not there."""
    directory = settings.directory
    now_ms = clock.now_ms()
    try:
        disk.make_directory(directory)
        found = list_snapshots(disk, directory)
        finished = [each.id for each in found if each.is_finished]
        # Everything that a snapshot holds was committed, so it is durable in the log too.
        request = OpenRequest(
            directory,
            METADATA_PARTITION,
            settings.log,
            ProducerStateSettings(producer_id_expiration_ms=2**31 - 1),
            recovery_point=finished[-1].offset if finished else 0,
        )
        log = open_partition(LogSurroundings(disk, entropy, health), request, now_ms)
        log.assign_topic_id(METADATA_TOPIC_ID)
        _begin_at_snapshot(log, finished, now_ms)
        kept = _kept_snapshots(log, finished)
        for file in found:
            if file.id not in kept or not file.is_finished:
                disk.remove(f"{directory}/{file.name}")
    except OSError as error:
        raise health.fail("opening the metadata log", error) from error
    return MetadataLog(disk, settings, log, kept)


def _begin_at_snapshot(log: PartitionLog, snapshots: list[SnapshotId], now_ms: int) -> None:
    """A snapshot beyond the log's end holds more than the log; the log goes on from there."""
    if not snapshots:
        return
    latest, epoch = snapshots[-1], max(log.latest_epoch, 0)
    if latest.epoch > epoch or (latest.epoch == epoch and latest.offset > log.log_end_offset):
        log.truncate_fully(latest.offset, now_ms)


def _kept_snapshots(log: PartitionLog, snapshots: list[SnapshotId]) -> list[SnapshotId]:
    kept = [each for each in snapshots if each.offset >= log.log_start_offset]
    if log.log_start_offset > 0 and not kept:
        raise InconsistentMetadataLog(
            f"{METADATA_PARTITION} begins at offset {log.log_start_offset} and there is no snapshot of what "
            f"came before (the latest is {snapshots[-1] if snapshots else 'none'})"
        )
    return kept
