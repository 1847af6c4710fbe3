"""A log written by hand for the tests of compaction, and a model that says what has to be left of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.log.cleaner import clean
from headrace.log.cleaner_plan import CleanPlan, CleanResult, LastRecord, SegmentToClean
from headrace.log.segment import Segment
from headrace.log.segment_files import DELETED_SUFFIX, LOG_SUFFIX, SEGMENT_SUFFIXES, offset_name, offset_of
from headrace.log.settings import LogSettings
from headrace.log.swap import announce_cleaned, install_cleaned
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import Disk
from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.records.reader import read_records
from headrace.testing.clock import ManualClock

DIRECTORY = "/logs/topic-0"
NOW_MS = 1_700_000_000_000
RETENTION_MS = 1_000
SETTINGS = LogSettings(
    cleanup_delete=False,
    cleanup_compact=True,
    delete_retention_ms=RETENTION_MS,
    index_interval_bytes=64,
    segment_index_bytes=12_000,
)
KeyValue = tuple[bytes | None, bytes | None]


class TestPace(ManualClock):
    """Time that passes only in sleep."""

    __test__ = False

    def sleep_ms(self, milliseconds: int) -> None:
        self.advance(milliseconds)


class Survivor(NamedTuple):
    """What has to be the same after compaction."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


@dataclass(slots=True)
class WrittenRecord:
    """A record with what the model has to know of it."""

    survivor: Survivor
    batch_offset: int
    producer_id: int
    transaction: int | None


@dataclass(slots=True)
class ScriptedLog:
    """Writes batches and rolls segments as told; the last segment is the active one."""

    disk: Disk
    settings: LogSettings = SETTINGS
    directory: str = DIRECTORY
    next_offset: int = 0
    records: list[WrittenRecord] = field(default_factory=list)
    headers: dict[int, Batch] = field(default_factory=dict)
    horizons: dict[int, int] = field(default_factory=dict)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    transactions: dict[int, bool] = field(default_factory=dict)
    open_transactions: dict[int, tuple[int, int]] = field(default_factory=dict)
    last_records: dict[int, LastRecord] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk.make_directory(self.directory)
        self._open_segment()

    # Writing

    def append(
        self,
        records: Iterable[KeyValue],
        *,
        producer_id: int = -1,
        transactional: bool = False,
        compression: Compression = Compression.NONE,
        timestamp: int = NOW_MS,
        append_time: int | None = None,
    ) -> int:
        """Append one batch; returns its base offset."""
        listed = [NewRecord(timestamp + i, key, value) for i, (key, value) in enumerate(records)]
        base = self.next_offset
        has_producer = producer_id >= 0
        data = build_batch(
            listed,
            base_offset=base,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=0 if has_producer else -1,
            base_sequence=self.sequences.get(producer_id, 0) if has_producer else -1,
            transactional=transactional,
            leader_epoch=7,
            log_append_time=append_time,
        )
        if transactional and producer_id not in self.open_transactions:
            self.open_transactions[producer_id] = (base, len(self.transactions))
            self.transactions[len(self.transactions)] = True
        transaction = self.open_transactions[producer_id][1] if transactional else None
        self._write(data)
        for record in read_records(Batch(memoryview(data))):
            survivor = Survivor(record.offset, record.timestamp, record.key, record.value)
            self.records.append(WrittenRecord(survivor, base, producer_id, transaction))
        if has_producer:
            self.sequences[producer_id] = self.sequences.get(producer_id, 0) + len(listed)
            self.last_records[producer_id] = LastRecord(self.next_offset - 1, 0)
        return base

    def end(self, producer_id: int, kind: ControlType) -> None:
        """Commit or abort the producer's transaction."""
        base = self.next_offset
        self._write(
            build_end_transaction_marker(
                kind,
                producer_id=producer_id,
                producer_epoch=0,
                coordinator_epoch=0,
                timestamp=NOW_MS,
                base_offset=base,
                leader_epoch=7,
            )
        )
        first, number = self.open_transactions.pop(producer_id)
        if kind is ControlType.ABORT:
            self.transactions[number] = False
            entry = AbortedTransaction(producer_id, first, base, self.stable_offset)
            self.aborted.append(entry)
            self.segments[-1].transaction_index.append(entry)

    def skip(self, offsets: int) -> None:
        """Leave a gap, as a compacted leader's log has them."""
        self.next_offset += offsets

    def roll(self) -> None:
        """Close the active segment, unless it is empty, and begin another."""
        if self.next_offset > self.segments[-1].base_offset:
            self.segments[-1].close()
            self._open_segment()

    @property
    def stable_offset(self) -> int:
        return min((first for first, _ in self.open_transactions.values()), default=self.next_offset)

    def _open_segment(self) -> None:
        self.segments.append(
            Segment.create(self.disk, self.directory, self.next_offset, self.settings, NOW_MS)
        )

    def _write(self, data: bytes) -> None:
        for batch in batches(data):
            self.segments[-1].append(batch.last_offset, data)
            self.headers[batch.base_offset] = batch
            self.next_offset = batch.next_offset

    # Cleaning

    def plan(
        self,
        first_dirty: int = 0,
        now_ms: int = NOW_MS,
        dedupe_bytes: int = 1_000_000,
        bytes_per_second: float = float("inf"),
    ) -> CleanPlan:
        """What the owner of this log would ask for."""
        bases = [segment.base_offset for segment in self.segments]
        end = max(base for base in bases if base <= self.stable_offset)
        closed = [segment for segment in self.segments if segment.base_offset < end]
        for segment in self.segments:
            segment.transaction_index.close()
        return CleanPlan(
            name="topic-0",
            directory=self.directory,
            segments=tuple(describe(segment) for segment in closed),
            first_dirty_offset=first_dirty,
            end_offset=end,
            now_ms=now_ms,
            settings=self.settings,
            dedupe_bytes=dedupe_bytes,
            dedupe_load_factor=0.9,
            bytes_per_second=bytes_per_second,
            last_records=dict(self.last_records),
            aborted_later=tuple(entry for entry in self.aborted if entry.last_offset >= end),
        )

    def clean(self, plan: CleanPlan, pace: TestPace | None = None) -> CleanResult:
        """Do the worker's part."""
        return clean(lambda: self.disk, lambda: pace or TestPace(), plan)

    def compact(
        self, first_dirty: int = 0, now_ms: int = NOW_MS, dedupe_bytes: int = 1_000_000
    ) -> CleanResult:
        """A whole round: clean, swap, and forget the old files."""
        result = self.clean(self.plan(first_dirty, now_ms, dedupe_bytes))
        swap_in(self.disk, self.directory, result)
        gone = {base for group in result.groups for base in group.replaces}
        kept = [segment for segment in self.segments if segment.base_offset not in gone]
        opened = [
            Segment.open(self.disk, self.directory, group.base_offset, self.settings, now_ms)
            for group in result.groups
        ]
        self.segments = sorted([*kept, *opened], key=lambda segment: segment.base_offset)
        return result

    # The model

    def expect_cleaned(self, first_dirty: int, end: int, now_ms: int) -> None:
        """Forget the records that a round over [0, end) has to remove."""
        latest: dict[bytes, int] = {}
        for record in self.records:
            offset, key = record.survivor.offset, record.survivor.key
            if first_dirty <= offset < end and key is not None and self._is_committed(record):
                latest[key] = offset
        self.records = [
            record
            for record in self.records
            if record.survivor.offset >= end or self._survives(record, latest, now_ms)
        ]
        for record in self.records:
            if record.survivor.offset < end and record.survivor.value is None:
                self.horizons.setdefault(record.batch_offset, now_ms + self.settings.delete_retention_ms)

    def _survives(self, record: WrittenRecord, latest: dict[bytes, int], now_ms: int) -> bool:
        key = record.survivor.key
        if key is None or not self._is_committed(record) or latest.get(key, -1) > record.survivor.offset:
            return False
        horizon = self.horizons.get(record.batch_offset)
        return record.survivor.value is not None or horizon is None or now_ms < horizon

    def _is_committed(self, record: WrittenRecord) -> bool:
        return record.transaction is None or self.transactions[record.transaction]

    @property
    def survivors(self) -> list[Survivor]:
        return [record.survivor for record in self.records]


def describe(segment: Segment) -> SegmentToClean:
    """A closed segment as plans have it."""
    return SegmentToClean(
        segment.base_offset,
        segment.size,
        len(segment.offset_index) * 8,
        len(segment.time_index) * 12,
    )


def swap_in(
    disk: Disk, directory: str, result: CleanResult, retire: Callable[[str], None] | None = None
) -> None:
    """What the owner does with a result, file by file."""
    for group in result.groups:
        announce_cleaned(disk, directory, group.base_offset)
        disk.sync_directory(directory)
        for base in group.replaces:
            for suffix in SEGMENT_SUFFIXES:
                path = f"{directory}/{offset_name(base)}{suffix}"
                if disk.exists(path):
                    disk.rename(path, path + DELETED_SUFFIX)
        disk.sync_directory(directory)
        install_cleaned(disk, directory, group.base_offset)
        disk.sync_directory(directory)
    for name in disk.list_directory(directory):
        if name.endswith(DELETED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def batches_on_disk(disk: Disk, directory: str = DIRECTORY) -> list[Batch]:
    """Every batch of every segment, in order."""
    names = [name for name in disk.list_directory(directory) if name.endswith(LOG_SUFFIX)]
    found: list[Batch] = []
    for name in sorted(names, key=lambda each: offset_of(each) or 0):
        found += batches(disk.read(f"{directory}/{name}"))
    return found


def survivors_on_disk(disk: Disk, directory: str = DIRECTORY) -> list[Survivor]:
    """Every record of data, in order."""
    return [
        Survivor(record.offset, record.timestamp, record.key, record.value)
        for batch in batches_on_disk(disk, directory)
        if not batch.is_control
        for record in read_records(batch)
    ]
