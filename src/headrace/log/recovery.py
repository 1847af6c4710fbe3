"""Puts a partition's files right after a crash: torn tails cut, indexes, epochs and producers rebuilt.

Every batch from the segment of the recovery point on is checked; the log ends before the first that is not
sound, and what lies beyond goes. Nothing but files is changed, so that all of it can run in a worker process:
loading finds the results on disk, a producer snapshot at the log's end among them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.log.index_errors import CorruptIndex
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_errors import CorruptLog
from headrace.log.partition_files import PartitionNames, list_partition
from headrace.log.producer_rebuild import rebuild_producers, replay_batch
from headrace.log.producer_state import ProducerState
from headrace.log.segment import Segment
from headrace.log.segment_list import SegmentList
from headrace.log.segment_results import Recovered
from headrace.log.segment_scan import BatchHeader, scan_checked, scan_headers
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.log.transaction_index import ENTRY as TRANSACTION_ENTRY
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import Disk
from headrace.records.batch import Batch
from headrace.types import TopicPartition


@dataclass(slots=True, frozen=True)
class RecoveryJob:
    """Which files to put right, and from where on."""

    directory: str
    partition: TopicPartition
    settings: LogSettings
    producer_settings: ProducerStateSettings
    log_start_offset: int
    recovery_point: int
    now_ms: int


@dataclass(slots=True)
class RecoveryReport:
    """What recovery has found and done in one partition; `damage` names files and positions."""

    partition: TopicPartition
    log_end_offset: int = 0
    segments_checked: int = 0
    segments_removed: int = 0
    bytes_truncated: int = 0
    damage: list[str] = field(default_factory=list)


def recover_partition(make_disk: Callable[[], Disk], job: RecoveryJob) -> RecoveryReport:
    """Recover one partition with a disk of its own, as a worker process does."""
    return recover_files(make_disk(), job)


def recover_files(disk: Disk, job: RecoveryJob) -> RecoveryReport:
    """Recover one partition. It may be interrupted at any point and repeated."""
    return _Recovery(disk, job).run()


class _Recovery:
    """The state of one partition's recovery."""

    __slots__ = ("_disk", "_epochs", "_job", "_names", "_producers", "_report", "_segments")

    def __init__(self, disk: Disk, job: RecoveryJob) -> None:
        self._disk = disk
        self._job = job
        self._names: PartitionNames = list_partition(disk, job.directory)
        self._segments = SegmentList(
            Segment.open(disk, job.directory, base, job.settings, job.now_ms) for base in self._names.bases
        )
        self._epochs = LeaderEpochs.load(disk, job.directory)
        self._producers = ProducerState(
            disk, job.directory, str(job.partition), job.producer_settings, self._names.snapshots
        )
        self._report = RecoveryReport(job.partition, job.log_start_offset)

    def run(self) -> RecoveryReport:
        if not len(self._segments):
            return self._report
        self._mend_flushed()
        self._check_unflushed()
        log_end = self._segments.active.next_offset()
        self._report.log_end_offset = log_end
        self._epochs.truncate_from_end(log_end)
        self._epochs.flush()
        for segment in self._segments:
            segment.close()
        self._disk.sync_directory(self._job.directory)
        return self._report

    def _mend_flushed(self) -> None:
        """Below the recovery point files are durable; one that is missing or unfit was lost otherwise."""
        first_unflushed = self._first_unflushed()
        for segment in self._segments:
            if segment.base_offset >= first_unflushed:
                return
            try:
                segment.sanity_check()
                self._require_whole_entries(segment)
            except CorruptIndex as error:
                self._report.damage.append(str(error))
                segment.rebuild_indexes()
                self._rebuild_transactions(segment)

    def _require_whole_entries(self, segment: Segment) -> None:
        path = segment.transaction_index.path
        if self._disk.exists(path) and self._disk.size(path) % TRANSACTION_ENTRY.size:
            raise CorruptIndex(path, "its last entry is incomplete")

    def _rebuild_transactions(self, segment: Segment) -> None:
        """Note aborted transactions anew, without touching the batches."""
        self._rebuild_producers(segment.base_offset)
        segment.transaction_index.reset()
        try:
            for checked in scan_checked(segment.log, segment.base_offset, 0, segment.size):
                if checked.producer_id >= 0:
                    self._replay(segment, Batch(checked.chunk, checked.start))
                self._producers.end_offset = checked.last_offset + 1
        except CorruptLog as error:
            self._report.damage.append(str(error))

    def _check_unflushed(self) -> None:
        unflushed = self._segments.from_base(self._first_unflushed())
        while unflushed:
            is_cut = self._recover(unflushed.pop(0))
            if unflushed and (is_cut or self._does_not_follow(unflushed[0])):
                self._remove(unflushed)
                return

    def _does_not_follow(self, segment: Segment) -> bool:
        """Whether a segment begins elsewhere than the one before it ends.

        If it begins earlier, truncation had removed it and the crash undid that. If it begins later, the
        crash took the end of the one before and left this one; serving it would hide the loss. Compaction
        leaves such gaps, so they mean nothing in a compacted topic."""
        end = self._producers.end_offset
        if segment.base_offset == end or (segment.base_offset > end and self._job.settings.cleanup_compact):
            return False
        self._report.damage.append(f"{segment.log.path} does not follow offset {end - 1}, which is the last")
        return True

    def _first_unflushed(self) -> int:
        at = self._segments.floor(self._job.recovery_point)
        return self._segments.first.base_offset if at is None else at.base_offset

    def _recover(self, segment: Segment) -> bool:
        """Check one segment and rebuild all that is derived from it; True if it had to be cut."""
        recovered = self._replay_segment(segment)
        bytes_truncated = recovered.bytes_truncated
        if recovered.fault is not None:
            self._report.damage.append(str(recovered.fault))
        stale_offset = self._stale_offset(segment)
        if stale_offset is not None:
            bytes_truncated += segment.truncate_to(stale_offset, self._job.now_ms)
            self._report.damage.append(
                f"{segment.log.path} had batches of an older leader from offset {stale_offset} on"
            )
            self._replay_segment(segment)
        self._producers.take_snapshot()
        self._report.segments_checked += 1
        self._report.bytes_truncated += bytes_truncated
        return bytes_truncated > 0

    def _replay_segment(self, segment: Segment) -> Recovered:
        self._rebuild_producers(segment.base_offset)
        recovered = segment.recover(lambda batch: self._replay(segment, batch), self._epochs)
        self._producers.end_offset = recovered.next_offset
        return recovered

    def _stale_offset(self, segment: Segment) -> int | None:
        """Where batches begin that a truncation had removed and a crash has brought back.

        They can only be at the end, and are of an older epoch than the checkpoint has for their offsets: an
        epoch is durable before its first record."""
        index = segment.offset_index
        if not self._has_stale(segment, index.lookup(index.last_offset).position):
            return None
        for header in scan_headers(segment.log, 0, segment.size):
            if self._is_stale(header):
                return header.base_offset
        return None

    def _has_stale(self, segment: Segment, position: int) -> bool:
        last = None
        for header in scan_headers(segment.log, position, segment.size):
            last = header
        return last is not None and self._is_stale(last)

    def _is_stale(self, header: BatchHeader) -> bool:
        expected = self._epochs.epoch_for_offset(header.base_offset)
        return expected is not None and 0 <= header.leader_epoch < expected

    def _rebuild_producers(self, offset: int) -> None:
        rebuild_producers(
            self._producers,
            self._segments,
            self._job.log_start_offset,
            offset,
            self._job.now_ms,
            stopped_cleanly=False,
        )

    def _replay(self, segment: Segment, batch: Batch) -> None:
        ended = replay_batch(self._producers, batch)
        if ended is not None and ended[0].is_aborted:
            completed, stable_offset = ended
            segment.transaction_index.append(
                AbortedTransaction(
                    completed.producer_id, completed.first_offset, completed.last_offset, stable_offset
                )
            )

    def _remove(self, segments: list[Segment]) -> None:
        # The last one goes first: a crash in between must not leave a gap that compaction might have made.
        for segment in reversed(segments):
            segment.delete()
            self._segments.remove(segment.base_offset)
            self._producers.remove_snapshot(segment.base_offset)
            self._report.segments_removed += 1
