"""The offset index: where in the log a batch lies, for a batch every `index.interval.bytes` or so.

An entry is a batch's last offset relative to the segment's base and the position the batch starts at."""

from struct import Struct
from typing import ClassVar, Final, NamedTuple

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder, OffsetOverflow
from headrace.log.sparse_index import RELATIVE_OFFSET_MAX, SparseIndex
from headrace.ports import Disk

_ENTRY: Final = Struct(">ii")
_pack = _ENTRY.pack


class OffsetPosition(NamedTuple):
    """An offset and the position of a batch that does not end before it."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """A segment's `.index` file."""

    __slots__ = ("_last_offset",)

    ENTRY: ClassVar[Struct] = _ENTRY

    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        super().__init__(disk, path, base_offset, max_bytes)
        self._last_offset = base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset if there is none."""
        self._opened_count()
        return self._last_offset

    def append(self, offset: int, position: int) -> None:
        """Add an entry. Offsets grow; a full index takes no more, which only makes it sparser."""
        entries = self._entries
        if entries is None:
            entries = self._load()
        count = self.count
        if count >= self.max_entries:
            return
        if count and offset <= self._last_offset:
            raise IndexOutOfOrder(f"offset {offset} does not follow {self._last_offset} in {self.path}")
        relative = offset - self.base_offset
        if not 0 <= relative <= RELATIVE_OFFSET_MAX:
            raise OffsetOverflow(self.path, self.base_offset, offset)
        entries += _pack(relative, position)
        self.count = count + 1
        self._last_offset = offset

    def lookup(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`; the start of the segment if there is none."""
        slot = self._floor(offset - self.base_offset, 0)
        return self.entry(slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def entry(self, slot: int) -> OffsetPosition:
        """The entry at `slot`."""
        relative, position = self.entry_at(slot)
        return OffsetPosition(self.base_offset + relative, position)

    def upper_bound(self, position: int) -> OffsetPosition | None:
        """The first entry at or beyond a position in the log."""
        slot = self._floor(position - 1, 1) + 1
        return self.entry(slot) if slot < self.count else None

    def truncate_to(self, offset: int) -> None:
        """Remove every entry at or beyond `offset`."""
        self.truncate_entries(self._floor(offset - 1 - self.base_offset, 0) + 1)

    def sanity_check(self) -> None:
        """CorruptIndex if the file cannot be an offset index of this segment."""
        self.check_size()
        if len(self) and self.last_offset < self.base_offset:
            raise CorruptIndex(
                self.path,
                f"its last offset {self.last_offset} lies before the base offset {self.base_offset}",
            )

    def _on_cut(self) -> None:
        self._last_offset = self.entry(self.count - 1).offset if self.count else self.base_offset
