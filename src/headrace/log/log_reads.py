"""Reading a log: file ranges by offset, offsets by time, aborted transactions.

Reads hand out ranges of files, never bytes. What a range names stays valid once it is pinned: deletion,
truncation and compaction leave a pinned inode alone."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.log.log_errors import OffsetOutOfRange, StaleRange
from headrace.log.log_position import LogPosition
from headrace.log.segment import Segment
from headrace.log.segment_scan import scan_headers
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import File
from headrace.records.batch import Batch
from headrace.records.reader import read_records
from headrace.types import NO_LEADER_EPOCH, NO_TIMESTAMP

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6


class Isolation(Enum):
    """How far a reader may see."""

    LOG_END = "log end"
    """Followers."""
    HIGH_WATERMARK = "high watermark"
    """Consumers that read uncommitted data."""
    COMMITTED = "last stable offset"
    """Consumers that read committed data."""


class FoundOffset(NamedTuple):
    """An offset found by time, with the time and leader epoch of its record as far as they are known."""

    timestamp: int
    offset: int
    leader_epoch: int | None


@dataclass(slots=True)
class FileRange:
    """A stretch of a log file that begins with a whole batch; its last batch may be cut.

    Nothing in it changes; freezing it would cost every fetch some time."""

    file: File
    position: int
    length: int
    _log: "PartitionLog"
    _truncations: int

    def __len__(self) -> int:
        return self.length

    def pin(self) -> AbstractContextManager[int]:
        """A descriptor from which the range can be sent until left, whatever happens to the log.

        `StaleRange` if its bytes were truncated, moved or unlinked since it was read."""
        return _PinnedRange(self)

    def require_fresh(self) -> None:
        """`StaleRange` if the log was truncated since the range was read."""
        if self._log.truncations != self._truncations:
            raise StaleRange(f"{self._log.partition} was truncated since {self} was read")

    def read(self) -> bytes:
        """The bytes themselves, for those who can't send from a file."""
        self.require_fresh()
        try:
            return self.file.read_at(self.position, self.length)
        except FileNotFoundError as error:
            raise StaleRange(f"{self.file.path} was deleted since it was read") from error

    def __str__(self) -> str:
        return f"{self.file.path}[{self.position}:{self.position + self.length}]"


class _PinnedRange:
    """The descriptor of a range for the length of a with block. A generator would take thrice as long."""

    __slots__ = ("_pinned", "_range")

    def __init__(self, source: FileRange) -> None:
        self._range = source

    def __enter__(self) -> int:
        source = self._range
        source.require_fresh()
        self._pinned = source.file.pin()
        try:
            return self._pinned.__enter__()
        except FileNotFoundError as error:
            raise StaleRange(f"{source.file.path} was deleted since it was read") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pinned.__exit__(kind, error, trace)


class LogRead(NamedTuple):
    """The outcome of a read. `start` is the offset asked for and the place of the batch that holds it.

    `aborted` is None unless committed data was asked for."""

    start: LogPosition
    records: FileRange | None = None
    first_batch_incomplete: bool = False
    aborted: list[AbortedTransaction] | None = None


def read(
    log: "PartitionLog", offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool
) -> LogRead:
    """At most `max_bytes` from the batch that holds `offset`, and none beyond the bound of `isolation`."""
    log.health.check()
    if offset < log.log_start_offset or offset > log.log_end_offset:
        raise OffsetOutOfRange(
            f"offset {offset} of {log.partition} was asked for, which has {log.log_start_offset} to "
            f"{log.log_end_offset}"
        )
    try:
        bound = bound_of(log, isolation)
        aborted: list[AbortedTransaction] | None = [] if isolation is Isolation.COMMITTED else None
        if offset == bound.offset:
            return LogRead(bound, aborted=aborted)
        if offset > bound.offset:
            return LogRead(locate(log, offset), aborted=aborted)
        return _read_below(log, offset, max_bytes, bound, min_one_message, aborted)
    except OSError as error:
        raise log.health.fail(f"reading {log.partition}", error) from error


def bound_of(log: "PartitionLog", isolation: Isolation) -> LogPosition:
    """Where a reader has to stop."""
    if isolation is Isolation.LOG_END:
        return log.end
    if isolation is Isolation.HIGH_WATERMARK:
        return log.high_watermark_position()
    return log.last_stable_position()


def _read_below(
    log: "PartitionLog",
    offset: int,
    max_bytes: int,
    bound: LogPosition,
    min_one_message: bool,
    aborted: list[AbortedTransaction] | None,
) -> LogRead:
    segment = log.segments.floor(offset)
    while segment is not None:
        base = segment.base_offset
        if base < bound.segment_base:
            end = segment.size
        elif base == bound.segment_base and not bound.is_offset_only:
            end = bound.position
        else:
            # Where the bound lies is not known; handing out nothing is the only safe answer.
            end = 0
        found = segment.read(offset, max_bytes, end, min_one_message)
        if found is not None:
            position = found.position
            length = log.verifier.servable(base, found.file, position, found.length) if found.length else 0
            start = LogPosition(offset, base, position)
            is_cut = not min_one_message and 0 < max_bytes < found.first_batch_size
            if length == 0:
                return LogRead(start, None, is_cut, aborted)
            if aborted is not None:
                aborted = _aborted_in(log, segment, offset, position, length)
            records = FileRange(found.file, position, length, log, log.truncations)
            return LogRead(start, records, is_cut, aborted)
        segment = log.segments.after(base)
    # All batches from `offset` on were compacted away.
    return LogRead(log.end, aborted=aborted)


def locate(log: "PartitionLog", offset: int) -> LogPosition:
    """An offset with the place of the batch that holds it; by offset alone if the log does not have it."""
    if offset == log.log_end_offset:
        return log.end
    segment = log.segments.floor(offset) if offset < log.log_end_offset else None
    while segment is not None:
        place = segment.translate(offset)
        if place is not None:
            return LogPosition(offset, segment.base_offset, place.position)
        following = log.segments.after(segment.base_offset)
        if following is None:
            return LogPosition(offset, segment.base_offset, segment.size)
        segment = following
    return LogPosition(offset)


# Aborted transactions


def aborted_transactions(log: "PartitionLog", offset: int, upper_bound: int) -> list[AbortedTransaction]:
    """Aborted transactions that overlap [offset, upper_bound), as compaction and readers need them."""
    segment = log.segments.floor(offset)
    return [] if segment is None else _collect_aborted(log, segment, offset, upper_bound)


def _aborted_in(
    log: "PartitionLog", segment: Segment, offset: int, position: int, length: int
) -> list[AbortedTransaction]:
    upper_bound = segment.upper_bound_offset(position, length)
    if upper_bound is None:
        following = log.segments.after(segment.base_offset)
        upper_bound = log.log_end_offset if following is None else following.base_offset
    return _collect_aborted(log, segment, offset, upper_bound)


def _collect_aborted(
    log: "PartitionLog", segment: Segment, offset: int, upper_bound: int
) -> list[AbortedTransaction]:
    """A transaction is noted in the segment of its marker, so later segments have to be asked too."""
    collected: list[AbortedTransaction] = []
    current: Segment | None = segment
    while current is not None:
        found = current.transaction_index.search(offset, upper_bound)
        collected += found.transactions
        if found.is_complete:
            break
        current = log.segments.after(current.base_offset)
    return collected


# Offsets by time


def offset_for_timestamp(
    log: "PartitionLog", timestamp: int, isolation: Isolation = Isolation.LOG_END
) -> FoundOffset | None:
    """The answer to ListOffsets: the first offset at or after a time, or what a negative code asks for.

    What lies beyond the bound of `isolation` is not found."""
    log.health.check()
    try:
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            return _earliest(log)
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            # Nothing is kept in remote storage.
            return FoundOffset(NO_TIMESTAMP, -1, NO_LEADER_EPOCH)
        bound = bound_of(log, isolation).offset
        if timestamp == LATEST_TIMESTAMP:
            latest = log.epochs.latest
            return FoundOffset(NO_TIMESTAMP, bound, None if latest is None else latest.epoch)
        found = _largest(log) if timestamp == MAX_TIMESTAMP else _first_at(log, timestamp)
    except OSError as error:
        raise log.health.fail(f"searching {log.partition} by time", error) from error
    return found if found is not None and found.offset < bound else None


def _earliest(log: "PartitionLog") -> FoundOffset:
    first = log.epochs.earliest
    known = first is not None and first.start_offset <= log.log_start_offset
    return FoundOffset(NO_TIMESTAMP, log.log_start_offset, first.epoch if known and first else None)


def _first_at(log: "PartitionLog", timestamp: int) -> FoundOffset | None:
    for segment in log.segments:
        if segment.largest_timestamp >= timestamp:
            found = segment.find_timestamp(timestamp, log.log_start_offset)
            # A segment before the log's start may still be there; its records are not to be found.
            if found is not None:
                return FoundOffset(found.timestamp, found.offset, _epoch_or_none(found.leader_epoch))
    return None


def _largest(log: "PartitionLog") -> FoundOffset | None:
    """The first record with the largest timestamp of all."""
    segment = max(log.segments, key=lambda each: each.max_timestamp.timestamp)
    timestamp, batch_end = segment.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    place = segment.translate(batch_end)
    if place is None:
        return None
    for header in scan_headers(segment.log, place.position, segment.size):
        if header.max_timestamp == timestamp:
            batch = Batch(memoryview(segment.log.read_at(header.position, header.size)))
            return _largest_in(batch)
    return None


def _largest_in(batch: Batch) -> FoundOffset | None:
    timestamp, epoch = batch.max_timestamp, _epoch_or_none(batch.leader_epoch)
    for record in read_records(batch):
        if record.timestamp == timestamp:
            return FoundOffset(timestamp, record.offset, epoch)
    return None


def _epoch_or_none(epoch: int) -> int | None:
    return epoch if epoch >= 0 else None
