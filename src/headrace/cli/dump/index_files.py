"""Dumps `.index` and `.timeindex` files, checking each entry against the log of the same segment."""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from headrace.cli.dump.batch_records import last_offset_of, max_timestamp_of
from headrace.cli.dump.dumped_file import DumpedFile
from headrace.cli.dump.findings import Findings
from headrace.cli.dump.line import DumpError, Fields, Lines
from headrace.cli.dump.options import DumpOptions
from headrace.cli.dump.segment_file import FoundBatch, SegmentFile
from headrace.ports import File

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_CHUNK_ENTRIES = 8192


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """An offset and where its batch starts."""

    offset: int
    position: int

    def text(self) -> str:
        return f"offset: {self.offset} position: {self.position}"

    def fields(self) -> Fields:
        return {"kind": "offsetIndexEntry", "offset": self.offset, "position": self.position}


@dataclass(frozen=True, slots=True)
class TimeEntry:
    """The largest timestamp up to an offset."""

    timestamp: int
    offset: int

    def text(self) -> str:
        return f"timestamp: {self.timestamp} offset: {self.offset}"

    def fields(self) -> Fields:
        return {"kind": "timeIndexEntry", "timestamp": self.timestamp, "offset": self.offset}


@dataclass(frozen=True, slots=True)
class IndexVerdict:
    """What is said of an index as a whole."""

    path: str
    verdict: str
    kind: str

    def text(self) -> str:
        return f"{self.path} {self.verdict}."

    def fields(self) -> Fields:
        return {"kind": self.kind}


def dump_offset_index(dumped: DumpedFile, options: DumpOptions, findings: Findings) -> Lines:
    """Entries of an offset index; each must point at the batch that ends with its offset."""
    base = dumped.base_offset()
    log = dumped.log_beside()
    file = dumped.open()
    if file.size < _OFFSET_ENTRY.size:
        yield IndexVerdict(dumped.path, "is empty", "emptyIndex")
        return
    if options.index_sanity_only:
        _check_offset_index(dumped, file, base)
        yield IndexVerdict(dumped.path, "passed sanity check", "saneIndex")
        return
    for entry in _offset_entries(file, base):
        last_offset = _indexed_last_offset(dumped, log, entry, options.message_size_max)
        if last_offset != entry.offset:
            findings.offset_mismatch(dumped.absolute, entry.offset, last_offset)
        if not options.verify_index_only:
            yield entry


def dump_time_index(dumped: DumpedFile, options: DumpOptions, findings: Findings) -> Lines:
    """Entries of a time index; each must name a batch's last offset and its largest timestamp."""
    base = dumped.base_offset()
    log = dumped.log_beside()
    offsets = _OffsetLookup(dumped.offset_index_beside(), base)
    file = dumped.open()
    if options.index_sanity_only:
        _check_time_index(dumped, file, base)
        yield IndexVerdict(dumped.path, "passed sanity check", "saneIndex")
        return
    previous = -1
    for entry in _time_entries(file, base):
        _compare_with_log(dumped, log, offsets.position_for(entry.offset), entry, previous, findings)
        if not options.verify_index_only:
            yield entry
        previous = entry.timestamp


def _compare_with_log(
    dumped: DumpedFile, log: SegmentFile, position: int, entry: TimeEntry, previous: int, findings: Findings
) -> None:
    found = _first_batch_reaching(log, position, entry.offset)
    last_offset = -1 if found is None else last_offset_of(log, found)
    if found is None or last_offset != entry.offset:
        findings.time_mismatch("offsetNotFound", dumped.absolute, entry.offset, last_offset)
        return
    in_log = max_timestamp_of(log, found)
    if in_log != entry.timestamp:
        findings.time_mismatch("timestampMismatch", dumped.absolute, entry.timestamp, in_log)
    if previous >= entry.timestamp:
        findings.time_mismatch("timestampOutOfOrder", dumped.absolute, entry.timestamp, previous)


def _first_batch_reaching(log: SegmentFile, position: int, offset: int) -> FoundBatch | None:
    for found in log.batches(position, log.size):
        if last_offset_of(log, found) >= offset:
            return found
    return None


def _indexed_last_offset(dumped: DumpedFile, log: SegmentFile, entry: OffsetEntry, size_max: int) -> int:
    if not 0 <= entry.position <= log.size:
        raise DumpError(
            f"{dumped.path}: offset {entry.offset} is said to be at {entry.position}, outside of the log's "
            f"{log.size} bytes"
        )
    found = log.batch_at(entry.position, min(log.size, entry.position + size_max))
    if found is None:
        raise DumpError(
            f"{dumped.path}: no whole batch of at most {size_max} bytes at {entry.position}, where offset "
            f"{entry.offset} is said to be; --max-message-size allows larger ones"
        )
    return last_offset_of(log, found)


def _offset_entries(file: File, base: int) -> Iterator[OffsetEntry]:
    """Entries until the zeros that a killed broker leaves in a file that was allocated in advance."""
    for number, (relative, position) in enumerate(_rows(file, _OFFSET_ENTRY)):
        if relative == 0 and number > 0:
            return
        yield OffsetEntry(base + relative, position)


def _time_entries(file: File, base: int) -> Iterator[TimeEntry]:
    for number, (timestamp, relative) in enumerate(_rows(file, _TIME_ENTRY)):
        if relative == 0 and number > 0:
            return
        yield TimeEntry(timestamp, base + relative)


def _rows(file: File, layout: Struct) -> Iterator[tuple[int, ...]]:
    chunk = _CHUNK_ENTRIES * layout.size
    whole = file.size - file.size % layout.size
    for position in range(0, whole, chunk):
        yield from layout.iter_unpack(file.read_at(position, min(chunk, whole - position)))


class _OffsetLookup:
    """Finds where to start looking for an offset, as a broker would: by the offset index."""

    __slots__ = ("_base", "_entries", "_file")

    def __init__(self, file: File, base: int) -> None:
        self._file = file
        self._base = base
        self._entries = sum(1 for _ in _offset_entries(file, base))

    def position_for(self, offset: int) -> int:
        """The position of the last entry that is not above the offset."""
        low, high, position = 0, self._entries, 0
        while low < high:
            middle = (low + high) // 2
            row = self._file.read_at(middle * _OFFSET_ENTRY.size, _OFFSET_ENTRY.size)
            relative, at = _OFFSET_ENTRY.unpack(row)
            if self._base + relative <= offset:
                position, low = at, middle + 1
            else:
                high = middle
        return position


def _check_offset_index(dumped: DumpedFile, file: File, base: int) -> None:
    relative, _ = _last_row(file, _OFFSET_ENTRY)
    if relative < 0:
        raise DumpError(
            f"{dumped.path}: the last offset {base + relative} is below the segment's offset {base}"
        )
    _check_whole_entries(dumped, file, _OFFSET_ENTRY)


def _check_time_index(dumped: DumpedFile, file: File, base: int) -> None:
    if file.size >= _TIME_ENTRY.size:
        first, _ = _TIME_ENTRY.unpack(file.read_at(0, _TIME_ENTRY.size))
        last, relative = _last_row(file, _TIME_ENTRY)
        if last < first:
            raise DumpError(f"{dumped.path}: the last timestamp {last} is below the first timestamp {first}")
        if relative < 0:
            raise DumpError(
                f"{dumped.path}: the last offset {base + relative} is below the segment's offset {base}"
            )
    _check_whole_entries(dumped, file, _TIME_ENTRY)


def _last_row(file: File, layout: Struct) -> tuple[int, ...]:
    return layout.unpack(file.read_at((file.size // layout.size - 1) * layout.size, layout.size))


def _check_whole_entries(dumped: DumpedFile, file: File, layout: Struct) -> None:
    if file.size % layout.size:
        raise DumpError(
            f"{dumped.path}: {file.size} bytes are not a multiple of {layout.size}, an entry's size"
        )
