"""Dumps `.log` segments and KRaft `.checkpoint` snapshots: batches, and their records if asked for."""

from dataclasses import dataclass

from headrace.cli.dump.batch_lines import BatchLine, LegacyBatchLine, LegacyRecordLine, RecordLine
from headrace.cli.dump.batch_records import records_of
from headrace.cli.dump.control_records import show_control
from headrace.cli.dump.dumped_file import DumpedFile
from headrace.cli.dump.findings import Findings
from headrace.cli.dump.legacy_batch import LegacyBatch
from headrace.cli.dump.line import DumpError, Fields, Line, Lines
from headrace.cli.dump.options import INT_MAX, DumpOptions
from headrace.cli.dump.record_contents import Decoder, decoder_for
from headrace.cli.dump.segment_file import FoundBatch, SegmentFile
from headrace.errors import KafkaError
from headrace.records.batch import HEADER_SIZE, Batch
from headrace.records.reader import Record

SNAPSHOT_SUFFIX = ".checkpoint"
BOOTSTRAP_NAME = "bootstrap.checkpoint"
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10


@dataclass(frozen=True, slots=True)
class LogHeading:
    """The offset in a segment's name."""

    start_offset: int

    def text(self) -> str:
        return f"Log starting offset: {self.start_offset}"

    def fields(self) -> Fields:
        return {"kind": "log", "startOffset": self.start_offset}


@dataclass(frozen=True, slots=True)
class SnapshotHeading:
    """The offset and epoch in a snapshot's name; a bootstrap snapshot has neither."""

    end_offset: int | None = None
    epoch: int | None = None

    def text(self) -> str:
        if self.end_offset is None:
            return "KRaft bootstrap snapshot"
        return f"Snapshot end offset: {self.end_offset}, epoch: {self.epoch}"

    def fields(self) -> Fields:
        return {"kind": "snapshot", "endOffset": self.end_offset, "epoch": self.epoch}


@dataclass(frozen=True, slots=True)
class TrailingBytes:
    """Bytes after the last whole batch."""

    count: int
    name: str

    def text(self) -> str:
        return f"Found {self.count} invalid bytes at the end of {self.name}"

    def fields(self) -> Fields:
        return {"kind": "trailingBytes", "count": self.count}


def dump_log(dumped: DumpedFile, options: DumpOptions, findings: Findings) -> Lines:
    """A segment or a snapshot from its first batch to the last whole one."""
    yield _heading(dumped)
    segment = dumped.segment()
    if options.bytes_max < 0:
        raise DumpError(f"the most bytes to read can't be negative: {options.bytes_max}")
    end = min(segment.size, options.bytes_max)
    walk = _LogWalk(dumped, segment, options, findings, decoder_for(options))
    position = 0
    for found in segment.batches(0, end):
        yield from walk.lines_of(found)
        position = found.end
    if end > position and options.bytes_max == INT_MAX:
        findings.broke(dumped.path, f"{end - position} bytes after the last whole batch, at {position}")
        yield TrailingBytes(end - position, dumped.name)


def _heading(dumped: DumpedFile) -> Line:
    if not dumped.name.endswith(SNAPSHOT_SUFFIX):
        return LogHeading(dumped.base_offset())
    if dumped.name == BOOTSTRAP_NAME:
        return SnapshotHeading()
    offset, epoch = dumped.name[:_OFFSET_DIGITS], dumped.name[_OFFSET_DIGITS + 1 :][:_EPOCH_DIGITS]
    try:
        return SnapshotHeading(int(offset), int(epoch))
    except ValueError:
        raise DumpError(
            f"{dumped.path}: a snapshot is named by offset and epoch, like "
            f"{0:0{_OFFSET_DIGITS}}-{0:0{_EPOCH_DIGITS}}{SNAPSHOT_SUFFIX}"
        ) from None


@dataclass(slots=True)
class _LogWalk:
    """What is remembered from batch to batch."""

    dumped: DumpedFile
    segment: SegmentFile
    options: DumpOptions
    findings: Findings
    decode: Decoder
    last_offset: int = -1

    def lines_of(self, found: FoundBatch) -> Lines:
        """A batch, and its records if they are to be walked."""
        try:
            if found.is_legacy:
                yield from self._legacy_lines(found)
            else:
                yield from self._batch_lines(found)
        except (DumpError, KafkaError) as error:
            where = f"{self.dumped.path}: batch at position {found.position}"
            raise DumpError(f"{where}: {error}") from error

    def _batch_lines(self, found: FoundBatch) -> Lines:
        batch = self.segment.whole(found)
        is_valid = found.size >= HEADER_SIZE and batch.crc_is_valid()
        self._note_checksum(found, is_valid)
        yield BatchLine(found.position, batch, batch.compression, is_valid)
        if self.options.iterates_records:
            for record in records_of(batch):
                self._note_gap(record.offset)
                yield from self._record_lines(batch, record)

    def _legacy_lines(self, found: FoundBatch) -> Lines:
        batch = LegacyBatch(self.segment.view(found.position, found.size))
        batch.check_header()
        is_valid = batch.is_valid
        self._note_checksum(found, is_valid)
        yield LegacyBatchLine(found.position, batch, is_valid)
        if self.options.iterates_records:
            for record in batch.records():
                self._note_gap(record.offset)
                plain = Record(record.offset, record.timestamp, record.key, record.value, [])
                shown = self.decode(plain) if self.options.show_records else None
                yield LegacyRecordLine(batch.timestamp_type, record, shown, self._with_metadata)

    def _record_lines(self, batch: Batch, record: Record) -> Lines:
        if batch.is_control:
            control = show_control(record) if self._with_metadata else None
            yield RecordLine(batch, record, control, None, self._with_metadata)
            return
        try:
            shown = self.decode(record) if self.options.show_records else None
        except DumpError:
            # What is known of the record is told before the dump ends with it.
            yield RecordLine(batch, record, None, None, self._with_metadata)
            raise
        yield RecordLine(batch, record, None, shown, self._with_metadata)

    @property
    def _with_metadata(self) -> bool:
        return not self.options.skip_record_metadata

    def _note_checksum(self, found: FoundBatch, is_valid: bool) -> None:
        if not is_valid:
            self.findings.broke(
                self.dumped.path, f"batch at position {found.position}, offset {found.offset}: wrong checksum"
            )

    def _note_gap(self, offset: int) -> None:
        if offset != self.last_offset + 1:
            self.findings.gap(self.dumped.absolute, self.last_offset, offset)
        self.last_offset = offset
