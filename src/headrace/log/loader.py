"""Opens a partition's directory: leftovers cleared, segments and producers loaded, offsets worked out.

A directory that was not closed cleanly is put right first (see `recovery`, which can run in a worker
process); what is loaded then is sound from the recovery point on. Bytes below it are trusted as far as the
indexes go, and checked when they are first read."""

from dataclasses import dataclass
from functools import partial

from headrace.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_FILE
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_parts import LoadedParts, LogSurroundings
from headrace.log.partition_files import PartitionNames, list_partition
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_rebuild import rebuild_producers
from headrace.log.producer_state import ProducerState
from headrace.log.producer_tail import recall_batches
from headrace.log.read_verifier import ReadVerifier
from headrace.log.recovery import RecoveryJob, RecoveryReport, recover_files
from headrace.log.segment import Segment, roll_jitter_ms
from headrace.log.segment_files import (
    INDEX_SUFFIX,
    OFFSET_DIGITS,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
)
from headrace.log.segment_list import SegmentList
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.ports import Disk, File
from headrace.types import TopicPartition


@dataclass(slots=True, frozen=True)
class OpenRequest:
    """Which partition to open, and what the log directory's checkpoints say about it."""

    directory: str
    partition: TopicPartition
    settings: LogSettings
    producer_settings: ProducerStateSettings
    log_start_offset: int = 0
    recovery_point: int = 0
    stopped_cleanly: bool = False
    max_transaction_timeout_ms: int = 900_000

    def recovery_job(self, now_ms: int) -> RecoveryJob:
        return RecoveryJob(
            self.directory,
            self.partition,
            self.settings,
            self.producer_settings,
            self.log_start_offset,
            self.recovery_point,
            now_ms,
        )


def open_partition(
    surroundings: LogSurroundings,
    request: OpenRequest,
    now_ms: int,
    *,
    recovered: RecoveryReport | None = None,
) -> PartitionLog:
    """The log in a directory, which is made if it is not there. `recovered` says that recovery is done."""
    try:
        return _open(surroundings, request, now_ms, recovered)
    except OSError as error:
        raise surroundings.health.fail(f"opening {request.partition}", error) from error


def _open(
    surroundings: LogSurroundings, request: OpenRequest, now_ms: int, recovered: RecoveryReport | None
) -> PartitionLog:
    disk, directory = surroundings.disk, request.directory
    if recovered is None and not request.stopped_cleanly:
        disk.make_directory(directory)
        recovered = recover_files(disk, request.recovery_job(now_ms))
    names = list_partition(disk, directory)
    segments, verifier = _load_segments(surroundings, request, names, now_ms)
    log_end = segments.active.next_offset()
    log_start = request.log_start_offset
    if log_end < log_start:
        segments, log_end = _start_over(surroundings, request, segments, now_ms), log_start
        names.snapshots, names.has_epochs = [], False
    # A clean stop has synced everything, and so has recovery.
    recovery_point = log_end if recovered is None else min(recovered.log_end_offset, log_end)
    parts = LoadedParts(
        segments,
        verifier,
        partial(_load_epochs, disk, request, names.has_epochs),
        partial(_load_producers, disk, request, names.snapshots, segments, now_ms),
        max(log_start, segments.first.base_offset),
        recovery_point,
        log_end,
        names.has_metadata,
        is_new=not names.bases,
    )
    return PartitionLog(surroundings, directory, request.partition, request.settings, parts, now_ms)


def _load_epochs(disk: Disk, request: OpenRequest, has_file: bool, log_end: int) -> LeaderEpochs:
    if not has_file:
        return LeaderEpochs(disk, request.directory)
    epochs = LeaderEpochs.load(disk, request.directory)
    epochs.truncate_from_end(log_end)
    earliest = epochs.earliest
    if earliest is not None and earliest.start_offset < request.log_start_offset:
        epochs.truncate_from_start(request.log_start_offset)
    return epochs


def _load_segments(
    surroundings: LogSurroundings, request: OpenRequest, names: PartitionNames, now_ms: int
) -> tuple[SegmentList, ReadVerifier]:
    disk, directory, settings = surroundings.disk, request.directory, request.settings
    verifier = ReadVerifier()
    if not names.bases:
        first = _create(surroundings, request, request.log_start_offset, now_ms)
        return SegmentList([first]), verifier
    loaded = []
    for base in names.bases:
        segment = Segment.open(disk, directory, base, settings, now_ms)
        stem = f"{base:0{OFFSET_DIGITS}d}"
        if stem + INDEX_SUFFIX not in names.indexes or stem + TIME_INDEX_SUFFIX not in names.indexes:
            segment.rebuild_indexes()
        verifier.found(base, segment.size)
        loaded.append(segment)
    segments = SegmentList(loaded)
    segments.active.jitter_ms = roll_jitter_ms(settings, surroundings.entropy)
    segments.active.activate(settings.segment_index_bytes)
    return segments, verifier


def _create(surroundings: LogSurroundings, request: OpenRequest, base: int, now_ms: int) -> Segment:
    jitter_ms = roll_jitter_ms(request.settings, surroundings.entropy)
    return Segment.create(
        surroundings.disk, request.directory, base, request.settings, now_ms, jitter_ms=jitter_ms
    )


def _start_over(
    surroundings: LogSurroundings, request: OpenRequest, segments: SegmentList, now_ms: int
) -> SegmentList:
    """The log ends before it is said to start: its files are of no use any more."""
    disk, directory = surroundings.disk, request.directory
    for segment in segments:
        segment.delete()
    for name in disk.list_directory(directory):
        if name.endswith(SNAPSHOT_SUFFIX) or name == LEADER_EPOCHS_FILE:
            disk.remove(f"{directory}/{name}")
    return SegmentList([_create(surroundings, request, request.log_start_offset, now_ms)])


def _load_producers(
    disk: Disk,
    request: OpenRequest,
    snapshots: list[int],
    segments: SegmentList,
    now_ms: int,
    log_start: int,
    log_end: int,
) -> tuple[ProducerState, list[File]]:
    producers = ProducerState(
        disk,
        request.directory,
        str(request.partition),
        request.producer_settings,
        snapshots,
        request.max_transaction_timeout_ms,
    )
    producers.remove_stray_snapshots(segments.bases)
    written = rebuild_producers(
        producers, segments, log_start, log_end, now_ms, stopped_cleanly=request.stopped_cleanly
    )
    recall_batches(producers, segments)
    return producers, written
