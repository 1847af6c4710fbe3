"""A segment: a run of batches in one file, with the indexes that find them.

The segment that is appended to keeps its index entries in memory and its index files at full size;
`deactivate` and `close` trim them. All others stay closed until they are read. Reads hand out file ranges,
never bytes. Failures of the medium pass through as OSError; the segment is unchanged then. See
`segment_scan` for the walks over batches."""

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import Final

from headrace.log.index_errors import CorruptIndex, OffsetOverflow
from headrace.log.leader_epochs import LeaderEpochs
from headrace.log.log_errors import CorruptLog
from headrace.log.log_position import LogPosition
from headrace.log.offset_index import OffsetIndex
from headrace.log.segment_files import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_path,
)
from headrace.log.segment_results import BatchPlace, FoundTimestamp, ObserveBatch, Recovered, SegmentRead
from headrace.log.segment_scan import BatchHeader, scan_checked, scan_headers
from headrace.log.settings import LONG_MAX, LogSettings
from headrace.log.time_index import TimeIndex, TimestampOffset
from headrace.log.transaction_index import TransactionIndex
from headrace.ports import BytesLike, Disk, Entropy, File
from headrace.records.batch import Batch, batches
from headrace.records.reader import read_records
from headrace.types import NO_LEADER_EPOCH, NO_TIMESTAMP

INT32_MAX: Final = 2**31 - 1
RECOVERY_SLICE_BYTES: Final = 1024 * 1024
#: Batches appended last whose places are kept: readers at the end ask for them, and no medium is read then.
RECENT_MAX: Final = 64
_base_offset_of = Struct(">q").unpack_from

BatchMark = tuple[int, int, int]
"""What an append says about one batch: last offset, max timestamp, size in bytes."""


class SegmentFull(ValueError):
    """An append that would take the file beyond what positions can express; the log should have rolled."""


def roll_jitter_ms(settings: LogSettings, entropy: Entropy) -> int:
    """How much earlier than `segment.ms` a new segment is to be rolled, so that not all roll at once."""
    bound = min(settings.segment_jitter_ms, settings.segment_ms)
    return int(entropy.random() * bound) if bound > 0 else 0


class Segment:
    """One segment of a log. Not to be appended to by two."""

    __slots__ = (
        "_disk",
        "_first_timestamp",
        "_max_known",
        "_max_offset",
        "_max_timestamp",
        "_preallocated",
        "_recent",
        "_synced_size",
        "_unindexed_bytes",
        "_writable",
        "base_offset",
        "created_ms",
        "index_interval_bytes",
        "jitter_ms",
        "log",
        "offset_index",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        log: File,
        base_offset: int,
        settings: LogSettings,
        now_ms: int,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> None:
        max_bytes = settings.segment_index_bytes
        stem = f"{directory}/{base_offset:020d}"
        self._disk = disk
        self.log = log
        self.base_offset = base_offset
        self.offset_index = OffsetIndex(disk, stem + INDEX_SUFFIX + suffix, base_offset, max_bytes)
        self.time_index = TimeIndex(disk, stem + TIME_INDEX_SUFFIX + suffix, base_offset, max_bytes)
        self.transaction_index = TransactionIndex(disk, stem + TRANSACTION_INDEX_SUFFIX + suffix, base_offset)
        self.index_interval_bytes = settings.index_interval_bytes
        self.jitter_ms = jitter_ms
        self.created_ms = now_ms
        self.size = log.size
        self._synced_size = self.size
        self._preallocated = False
        self._writable = False
        self._unindexed_bytes = 0
        self._recent: dict[int, tuple[int, int]] = {}
        self._first_timestamp: int | None = None
        self._max_known = False
        self._max_timestamp = NO_TIMESTAMP
        self._max_offset = base_offset

    @classmethod
    def create(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        settings: LogSettings,
        now_ms: int,
        *,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> "Segment":
        """An empty segment ready for appends; leftovers of the same name are emptied."""
        log = disk.open(log_path(directory, base_offset, suffix), create=True)
        if log.size:
            log.truncate(0)
        segment = cls(disk, directory, log, base_offset, settings, now_ms, jitter_ms, suffix)
        segment._synced_size = -1
        segment.offset_index.create()
        segment.time_index.create()
        segment.transaction_index.delete()
        segment._writable = segment._max_known = True
        if settings.preallocate:
            log.truncate(settings.segment_bytes)
            segment._preallocated = True
        return segment

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        base_offset: int,
        settings: LogSettings,
        now_ms: int,
        *,
        jitter_ms: int = 0,
        suffix: str = "",
    ) -> "Segment":
        """A segment that exists. Nothing but the size of its log is looked at."""
        log = disk.open(log_path(directory, base_offset, suffix))
        return cls(disk, directory, log, base_offset, settings, now_ms, jitter_ms, suffix)

    def __repr__(self) -> str:
        return f"Segment({self.log.path!r}, size={self.size})"

    # Appending

    def append(
        self, largest_offset: int, records: BytesLike, marks: Sequence[BatchMark] | None = None
    ) -> None:
        """Write batches with one call and index them.

        `marks` has one entry per batch of `records`, in order; without it the headers are decoded here. The
        records must be validated, with offsets beyond those in the segment, up to `largest_offset`."""
        if not 0 <= largest_offset - self.base_offset <= INT32_MAX:
            raise OffsetOverflow(self.log.path, self.base_offset, largest_offset)
        position = self.size
        end = position + len(records)
        if end > INT32_MAX:
            raise SegmentFull(f"{self.log.path} would grow to {end} bytes")
        if marks is None:
            marks = marks_of(records)
        if not self._writable:
            self._make_writable()
        if self._preallocated:
            self.log.write_at(position, records)
        else:
            self.log.append(records)
        self.size = end
        if position == 0:
            self._first_timestamp = marks[0][1]
        if len(marks) == 1:
            if len(self._recent) >= RECENT_MAX:
                self._recent.clear()
            self._recent[_base_offset_of(records)[0]] = (position, end - position)
        unindexed_bytes = self._unindexed_bytes
        for last_offset, max_timestamp, size in marks:
            if max_timestamp > self._max_timestamp:
                self._max_timestamp = max_timestamp
                self._max_offset = last_offset
            if unindexed_bytes > self.index_interval_bytes:
                self.offset_index.append(last_offset, position)
                self.time_index.maybe_append(self._max_timestamp, self._max_offset)
                unindexed_bytes = 0
            position += size
            unindexed_bytes += size
        self._unindexed_bytes = unindexed_bytes

    def should_roll(
        self, append_size: int, max_timestamp: int, max_offset: int, now_ms: int, settings: LogSettings
    ) -> bool:
        """Whether an append of that size, with those largest values, belongs in a new segment."""
        size = self.size
        if size > settings.segment_bytes - append_size:
            return True
        if size and self.waited_ms(now_ms, max_timestamp) > settings.segment_ms - self.jitter_ms:
            return True
        if not 0 <= max_offset - self.base_offset <= INT32_MAX:
            return True
        return self.offset_index.is_full or self.time_index.is_full

    def waited_ms(self, now_ms: int, timestamp: int) -> int:
        """How long the segment has been the one to append to: in the records' time if they have one."""
        first = self._first_timestamp
        if first is None:
            first = self._load_first_timestamp()
        return timestamp - first if first is not None and first >= 0 else now_ms - self.created_ms

    @property
    def first_batch_timestamp(self) -> int:
        """The max timestamp of the first batch; the largest number if there is none."""
        first = self._load_first_timestamp()
        return first if first is not None and first >= 0 else LONG_MAX

    def activate(self, max_index_bytes: int | None = None) -> None:
        """Become the segment that is appended to, with index files of full size from the next append on."""
        if max_index_bytes is not None:
            self.offset_index.resize(max_index_bytes)
            self.time_index.resize(max_index_bytes)

    def deactivate(self) -> None:
        """Stop being appended to: note the largest timestamp, trim all files."""
        self._recent.clear()
        self._append_last_timestamp()
        self._trim()

    # Reading

    def translate(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after `offset`; None if all end before."""
        if (recent := self._recent.get(offset)) is not None:
            return BatchPlace(offset, recent[0], recent[1])
        try:
            return self._translate(offset)
        except CorruptIndex:
            self._mend_indexes()
            return self._translate(offset)

    def read(
        self,
        start_offset: int,
        max_bytes: int,
        max_position: int | None = None,
        min_one_message: bool = False,
    ) -> SegmentRead | None:
        """At most `max_bytes` from the batch that holds `start_offset`; None if all batches end before it.

        Nothing at or beyond `max_position` is handed out. With `min_one_message` the first batch is, even if
        it is larger than `max_bytes`."""
        if max_bytes < 0:
            raise ValueError(f"cannot read {max_bytes} bytes of {self.log.path}")
        place = self.translate(start_offset)
        if place is None:
            return None
        limit = max(max_bytes, place.size) if min_one_message else max_bytes
        end = self.size if max_position is None else min(max_position, self.size)
        return SegmentRead(
            self.log,
            place.position,
            max(0, min(end - place.position, limit)),
            LogPosition(place.base_offset, self.base_offset, place.position),
            place.size,
            limit < place.size,
        )

    def next_offset(self) -> int:
        """The offset after the last one in the segment, from the last index entry on."""
        try:
            return self._next_offset()
        except CorruptIndex:
            self._mend_indexes()
            return self._next_offset()

    def upper_bound_offset(self, position: int, length: int) -> int | None:
        """An offset that is not among those read from a range; None if the index has no entry beyond it."""
        entry = self.offset_index.upper_bound(position + length)
        return None if entry is None else entry.offset

    def find_timestamp(self, timestamp: int, start_offset: int) -> FoundTimestamp | None:
        """The first record at or after `start_offset` whose timestamp is at least `timestamp`."""
        try:
            return self._find_timestamp(timestamp, start_offset)
        except CorruptIndex:
            self._mend_indexes()
            return self._find_timestamp(timestamp, start_offset)

    @property
    def max_timestamp(self) -> TimestampOffset:
        """The largest timestamp and the last offset of the first batch that has it."""
        if not self._max_known:
            self._max_timestamp, self._max_offset = self.time_index.last_entry
            self._max_known = True
        return TimestampOffset(self._max_timestamp, self._max_offset)

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of the records, or when the log was last written if they have none."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """When the log was last written."""
        return self._disk.modified_ms(self.log.path)

    # Recovering

    def recover(
        self, observe: ObserveBatch | None = None, leader_epochs: LeaderEpochs | None = None
    ) -> Recovered:
        """Check every batch, cut off what follows the last sound one, write the indexes anew.

        `observe` is told about each batch of an idempotent or transactional producer, in order; it fills the
        transaction index, which is empty before. The batch it gets is valid during the call only."""
        steps = self.recovery(observe, leader_epochs)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                recovered: Recovered = stop.value
                return recovered

    def recovery(
        self, observe: ObserveBatch | None = None, leader_epochs: LeaderEpochs | None = None
    ) -> Generator[int, None, Recovered]:
        """What `recover` does in slices of a megabyte, with the position reached after each."""
        rebuild = self._begin_rebuild()
        self.transaction_index.reset()
        epoch = NO_LEADER_EPOCH if leader_epochs is None else leader_epochs.latest_epoch
        valid_bytes, next_offset, slice_end = 0, self.base_offset, RECOVERY_SLICE_BYTES
        fault: CorruptLog | None = None
        try:
            for batch in scan_checked(self.log, self.base_offset, 0, self.log.size):
                position, size, base_offset, last_offset, timestamp, batch_epoch, producer_id, chunk, at = (
                    batch
                )
                rebuild(position, last_offset, timestamp)
                if batch_epoch > epoch and leader_epochs is not None:
                    epoch = batch_epoch
                    leader_epochs.assign(epoch, base_offset)
                if producer_id >= 0 and observe is not None:
                    observe(Batch(chunk, at))
                valid_bytes = position + size
                next_offset = last_offset + 1
                if valid_bytes >= slice_end:
                    slice_end = valid_bytes + RECOVERY_SLICE_BYTES
                    yield valid_bytes
        except CorruptLog as error:
            fault = error
        truncated = self.log.size - valid_bytes
        self._end_recovery(valid_bytes)
        return Recovered(next_offset, truncated, fault)

    def _end_recovery(self, valid_bytes: int) -> None:
        if self.log.size != valid_bytes:
            self.log.truncate(valid_bytes)
        self.size = valid_bytes
        self._synced_size = -1
        self._first_timestamp = None
        self.deactivate()

    # Changing

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove every batch that ends at or after `offset`, get ready for appends; returns bytes removed."""
        place = self.translate(offset)
        self._recent.clear()
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        removed = 0
        if place is not None:
            removed = self.size - place.position
            self.log.truncate(place.position)
            self._preallocated = False
            self.size = place.position
        self._synced_size = -1
        self._make_writable()
        if self.size == 0:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._unindexed_bytes = 0
        self._max_timestamp, self._max_offset = self._scan_max_timestamp()
        return removed

    def rebuild_indexes(self) -> None:
        """Write both indexes anew from the batches' headers, up to the first that cannot be right."""
        writable = self._writable
        rebuild = self._begin_rebuild()
        try:
            for header in scan_headers(self.log, 0, self.size):
                rebuild(header.position, header.last_offset, header.max_timestamp)
        except CorruptLog as damage:
            # The index covers what lies before; whoever reads that far is told about the damage.
            del damage
        self._synced_size = -1
        if writable:
            self._make_writable()
        else:
            self.deactivate()

    def _begin_rebuild(self) -> Callable[[int, int, int], None]:
        """Empty both indexes; what is returned takes each batch's position, last offset and max timestamp."""
        offset_index, time_index, interval = self.offset_index, self.time_index, self.index_interval_bytes
        self._recent.clear()
        offset_index.reset()
        time_index.reset()
        self._max_timestamp, self._max_offset, self._max_known = NO_TIMESTAMP, self.base_offset, True
        last_entry = 0

        def rebuild(position: int, last_offset: int, max_timestamp: int) -> None:
            nonlocal last_entry
            if max_timestamp > self._max_timestamp:
                self._max_timestamp = max_timestamp
                self._max_offset = last_offset
            if position - last_entry > interval:
                offset_index.append(last_offset, position)
                time_index.maybe_append(self._max_timestamp, self._max_offset)
                last_entry = position

        return rebuild

    def sanity_check(self) -> None:
        """CorruptIndex if an index is missing or cannot be right; `rebuild_indexes` mends that."""
        for index in (self.offset_index, self.time_index):
            if not self._disk.exists(index.path):
                raise CorruptIndex(index.path, "it does not exist")
            index.sanity_check()
        self.transaction_index.sanity_check()

    def prepare_sync(self) -> Callable[[], None]:
        """Bring the indexes to their files and hand out the call that makes everything durable, to run
        off the loop."""
        self.offset_index.persist()
        self.time_index.persist()
        self._synced_size = self.size
        return self._sync_files

    def sync(self) -> None:
        """Make everything durable, here and now."""
        self.prepare_sync()()

    def change_suffix(self, old: str, new: str) -> None:
        """Rename all files, as in from `.cleaned` to `.swap`."""
        self.log.rename(self.log.path.removesuffix(old) + new)
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.rename(index.path.removesuffix(old) + new)

    def has_suffix(self, suffix: str) -> bool:
        """Whether the files are in that state."""
        return self.log.path.endswith(suffix)

    def moved_to(self, directory: str) -> None:
        """Follow a rename of the directory."""
        self.log.close()
        self.log = self._disk.open(_in_directory(directory, self.log.path))
        for index in (self.offset_index, self.time_index, self.transaction_index):
            index.moved_to(_in_directory(directory, index.path))

    @property
    def paths(self) -> list[str]:
        """All files the segment has or may have."""
        indexes = (self.offset_index, self.time_index, self.transaction_index)
        return [self.log.path, *(index.path for index in indexes)]

    def close(self) -> None:
        """Trim, make durable what is not, and give back the descriptors."""
        if self._writable:
            self.deactivate()
        if self._synced_size != self.size:
            self.sync()
        self.close_files()

    def close_files(self) -> None:
        """Give back the descriptors and write nothing: for a medium that has failed, or before `delete`."""
        self.log.close()
        self.offset_index.close()
        self.time_index.close()
        self.transaction_index.close()

    def delete(self) -> None:
        """Remove all files; those that are gone already are fine."""
        self.close_files()
        for path in self.paths:
            if self._disk.exists(path):
                self._disk.remove(path)

    # Inside

    def _mend_indexes(self) -> None:
        """Write indexes anew that do not fit the log; CorruptLog if it is the log that is damaged."""
        for _ in scan_headers(self.log, 0, self.size):
            continue
        self.rebuild_indexes()

    def _make_writable(self) -> None:
        self._max_timestamp, self._max_offset = self.max_timestamp
        self.offset_index.preallocate()
        self.time_index.preallocate()
        self._writable = True

    def _append_last_timestamp(self) -> None:
        self.time_index.maybe_append(*self.max_timestamp, closing=True)

    def _trim(self) -> None:
        self.offset_index.trim()
        self.time_index.trim()
        if self._preallocated:
            self.log.trim(self.size)
            self._preallocated = False
        self._writable = False

    def _sync_files(self) -> None:
        for file in (self.log, self.offset_index, self.time_index, self.transaction_index):
            try:
                file.sync()
            except FileNotFoundError:
                # Retention may have deleted the segment while its sync waited for a thread.
                if not self.has_suffix(DELETED_SUFFIX):
                    raise

    def _load_first_timestamp(self) -> int | None:
        if self._first_timestamp is None and self.size:
            first = next(scan_headers(self.log, 0, self.size), None)
            self._first_timestamp = None if first is None else first.max_timestamp
        return self._first_timestamp

    def _headers_from(self, offset: int) -> Iterator[BatchHeader]:
        """Headers from the last indexed batch at or before `offset` on; CorruptIndex if none starts there."""
        entry = self.offset_index.lookup(offset)
        headers = scan_headers(self.log, entry.position, self.size)
        if entry.position == 0:
            return headers
        try:
            first = next(headers, None)
        except CorruptLog:
            first = None
        if first is None or not self.base_offset <= first.base_offset <= entry.offset:
            raise CorruptIndex(
                self.offset_index.path, f"offset {entry.offset} is not at position {entry.position}"
            )
        return chain((first,), headers)

    def _translate(self, offset: int) -> BatchPlace | None:
        for position, size, base_offset, last_offset, _, _ in self._headers_from(offset):
            if last_offset >= offset:
                return BatchPlace(base_offset, position, size)
        return None

    def _next_offset(self) -> int:
        following = self.base_offset
        for header in self._headers_from(self.offset_index.last_offset):
            following = header.last_offset + 1
        return following

    def _find_timestamp(self, timestamp: int, start_offset: int) -> FoundTimestamp | None:
        earliest = self.time_index.lookup(timestamp).offset
        for header in self._headers_from(max(earliest, start_offset)):
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                batch = self._read_batch(header.position, header.size)
                for record in read_records(batch):
                    if record.timestamp >= timestamp and record.offset >= start_offset:
                        return FoundTimestamp(record.timestamp, record.offset, header.leader_epoch)
        return None

    def _read_batch(self, position: int, size: int) -> Batch:
        batch = Batch(memoryview(self.log.read_at(position, size)))
        if not batch.crc_is_valid():
            raise CorruptLog(self.log.path, position, "the checksum is wrong")
        return batch

    def _scan_max_timestamp(self) -> TimestampOffset:
        maximum = self.time_index.last_entry
        for header in self._headers_from(maximum.offset):
            if header.max_timestamp > maximum.timestamp:
                maximum = TimestampOffset(header.max_timestamp, header.last_offset)
        return maximum


def marks_of(records: BytesLike) -> list[BatchMark]:
    """The marks that `Segment.append` wants, from the batches' headers."""
    return [(batch.last_offset, batch.max_timestamp, batch.size) for batch in batches(records)]


def _in_directory(directory: str, path: str) -> str:
    return f"{directory}/{path.rpartition('/')[2]}"
