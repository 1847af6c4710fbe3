"""Walks the batches of a log file through the disk port, a window at a time, as Kafka's tool walks them.

Unlike the broker's own readers it goes on past a wrong checksum and past formats the broker refuses, since
a dump is what one reaches for when a file is in doubt.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from headrace.cli.dump.line import DumpError
from headrace.ports import File
from headrace.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, Batch

_WINDOW_BYTES = 1024 * 1024
_HEAD = Struct(">qiib")
# The smallest record of the oldest format; anything shorter was never a batch.
_LENGTH_MIN = 14


class FoundBatch(NamedTuple):
    """Where a batch is and how it starts; its bytes are read on demand."""

    position: int
    offset: int
    size: int
    magic: int

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def is_legacy(self) -> bool:
        return self.magic < MAGIC


class SegmentFile:
    """A log file seen through a window that moves forward."""

    __slots__ = ("_file", "_window", "_window_start", "name", "size")

    def __init__(self, file: File, name: str) -> None:
        self._file = file
        self._window = b""
        self._window_start = 0
        self.name = name
        self.size = file.size

    def batches(self, start: int, end: int) -> Iterator[FoundBatch]:
        """Every whole batch between two positions; DumpError where a size can't be right."""
        found = self.batch_at(start, end)
        while found is not None:
            yield found
            found = self.batch_at(found.end, end)

    def batch_at(self, position: int, end: int) -> FoundBatch | None:
        """The batch that starts at `position`, or None if it isn't all there before `end`."""
        if position >= end - _HEAD.size:
            return None
        offset, length, _, magic = _HEAD.unpack(self.view(position, _HEAD.size))
        if length < _LENGTH_MIN:
            raise DumpError(
                f"{self.name}: position {position}: Found record size {length} smaller than minimum "
                f"record overhead ({_LENGTH_MIN})"
            )
        if position > end - LOG_OVERHEAD - length:
            return None
        return FoundBatch(position, offset, length + LOG_OVERHEAD, magic)

    def header(self, found: FoundBatch) -> Batch:
        """The header of a batch of format v2, without reading its records."""
        return Batch(self.view(found.position, HEADER_SIZE))

    def whole(self, found: FoundBatch) -> Batch:
        """A batch of format v2 with its records; one too small for its header can have none."""
        return Batch(self.view(found.position, max(found.size, HEADER_SIZE)))

    def view(self, position: int, length: int) -> memoryview:
        """Bytes of the file, read through the window."""
        offset = position - self._window_start
        if offset < 0 or offset + length > len(self._window):
            self._window = self._file.read_at(position, max(length, _WINDOW_BYTES))
            self._window_start = position
            offset = 0
            if len(self._window) < length:
                raise DumpError(f"{self.name}: position {position}: the file ends inside a batch header")
        return memoryview(self._window)[offset : offset + length]
