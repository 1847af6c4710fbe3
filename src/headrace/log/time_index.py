"""The time index: the largest timestamp so far and the last offset of the batch that brought it.

An entry says that no batch up to that offset has a larger timestamp. It is written together with an entry of
the offset index, and once more when the segment is rolled or closed."""

from struct import Struct
from typing import ClassVar, Final, NamedTuple

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder, OffsetOverflow
from headrace.log.sparse_index import RELATIVE_OFFSET_MAX, SparseIndex
from headrace.ports import Disk
from headrace.types import NO_TIMESTAMP

_ENTRY: Final = Struct(">qi")
_pack = _ENTRY.pack


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch that has it."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """A segment's `.timeindex` file."""

    __slots__ = ("_last_offset", "_last_timestamp")

    ENTRY: ClassVar[Struct] = _ENTRY

    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        super().__init__(disk, path, base_offset, max_bytes)
        self._last_timestamp = NO_TIMESTAMP
        self._last_offset = base_offset

    @property
    def is_full(self) -> bool:
        """Whether only the slot for the entry at the roll is left."""
        return self._opened_count() >= self.max_entries - 1

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; no timestamp at the base offset if there is none."""
        self._opened_count()
        return TimestampOffset(self._last_timestamp, self._last_offset)

    def maybe_append(self, timestamp: int, offset: int, *, closing: bool = False) -> None:
        """Add an entry if its timestamp is larger than all before. `closing` may use the last slot."""
        count = self.count
        if count < 0:
            count = self._opened_count()
        if timestamp <= self._last_timestamp:
            return
        if count and offset < self._last_offset:
            raise IndexOutOfOrder(f"offset {offset} does not follow {self._last_offset} in {self.path}")
        if count >= (self.max_entries if closing else self.max_entries - 1):
            return
        relative = offset - self.base_offset
        if not 0 <= relative <= RELATIVE_OFFSET_MAX:
            raise OffsetOverflow(self.path, self.base_offset, offset)
        entries = self._load()
        entries += _pack(timestamp, relative)
        self.count = count + 1
        self._last_timestamp = timestamp
        self._last_offset = offset

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The last entry at or before `timestamp`; no timestamp at the base offset if there is none."""
        slot = self._floor(timestamp, 0)
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def entry(self, slot: int) -> TimestampOffset:
        """The entry at `slot`."""
        timestamp, relative = self.entry_at(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def truncate_to(self, offset: int) -> None:
        """Remove every entry at or beyond `offset`."""
        self.truncate_entries(self._floor(offset - 1 - self.base_offset, 1) + 1)

    def sanity_check(self) -> None:
        """CorruptIndex if the file cannot be a time index of this segment."""
        self.check_size()
        if not len(self):
            return
        first, last = self.entry(0), self.last_entry
        if last.timestamp < first.timestamp:
            raise CorruptIndex(
                self.path, f"its last timestamp {last.timestamp} lies before its first, {first.timestamp}"
            )
        if last.offset < self.base_offset:
            raise CorruptIndex(
                self.path, f"its last offset {last.offset} lies before the base offset {self.base_offset}"
            )

    def _on_cut(self) -> None:
        if self.count:
            self._last_timestamp, self._last_offset = self.entry(self.count - 1)
        else:
            self._last_timestamp, self._last_offset = NO_TIMESTAMP, self.base_offset
