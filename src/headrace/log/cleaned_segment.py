"""The files of a segment that compaction writes, under their `.cleaned` names."""

from collections.abc import Iterable
from typing import Final

from headrace.log.segment import BatchMark, Segment
from headrace.log.segment_files import CLEANED_SUFFIX
from headrace.log.settings import LogSettings
from headrace.log.transaction_index import AbortedTransaction
from headrace.ports import BytesLike, Disk
from headrace.records.batch import Batch

WRITE_BYTES: Final = 1024 * 1024


class CleanedSegment:
    """A segment that takes batch after batch and writes them in large pieces."""

    __slots__ = ("_last_offset", "_marks", "_segment", "_unwritten", "size")

    def __init__(self, disk: Disk, directory: str, base_offset: int, settings: LogSettings) -> None:
        self._segment = Segment.create(
            disk, directory, base_offset, settings, now_ms=0, suffix=CLEANED_SUFFIX
        )
        self._unwritten = bytearray()
        self._marks: list[BatchMark] = []
        self._last_offset = base_offset
        self.size = 0

    def append(self, data: BytesLike) -> None:
        """Add one batch."""
        batch = Batch(memoryview(data))
        self._last_offset = batch.last_offset
        self._marks.append((batch.last_offset, batch.max_timestamp, batch.size))
        self._unwritten += data
        self.size += batch.size
        if len(self._unwritten) >= WRITE_BYTES:
            self._write()

    def add_aborted(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Add transactions that ended in this segment, in the order of their markers."""
        for transaction in transactions:
            self._segment.transaction_index.append(transaction)

    def finish(self) -> None:
        """Complete the files, make them durable and close them."""
        self._write()
        self._segment.close()

    def _write(self) -> None:
        if self._marks:
            self._segment.append(self._last_offset, self._unwritten, self._marks)
            self._unwritten = bytearray()
            self._marks = []
