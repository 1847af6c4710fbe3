"""What the offset index and the time index have in common: sorted entries of fixed size in a file.

While a segment is being appended to, its entries are in memory and reach the file when it is flushed, rolled
or closed: whatever a crash takes lies beyond the recovery point and is rebuilt from the log. The file of such
an index is grown to its full size ahead of time, as Kafka does, and trimmed when the segment is rolled or
closed. All other indexes stay on disk and are searched there, so that an open partition costs next to no
memory.
"""

import struct
from struct import Struct
from typing import ClassVar, Final

from headrace.log.index_errors import CorruptIndex
from headrace.ports import Disk, File

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
SEARCH_BLOCK_ENTRIES: Final = 512


class SparseIndex:
    """Entries of a key and a value, both growing. Subclasses say what the two mean."""

    __slots__ = ("_disk", "_entries", "_file", "_in_file", "base_offset", "count", "max_entries", "path")

    ENTRY: ClassVar[Struct]

    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        self._disk = disk
        self._file: File | None = None
        # Entries in memory, packed as in the file; None while the index is only on disk.
        self._entries: bytearray | None = None
        self._in_file = 0
        self.path = path
        self.base_offset = base_offset
        self.count = -1
        self.max_entries = max_bytes // self.ENTRY.size

    def __len__(self) -> int:
        return self._opened_count()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, entries={self.count if self.count >= 0 else 'unread'})"

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another entry."""
        return self._opened_count() >= self.max_entries

    @property
    def in_memory(self) -> bool:
        """Whether the entries are in memory, as those of a segment in use are."""
        return self._entries is not None

    def create(self) -> None:
        """Begin an empty index in a file of full size."""
        self.reset()
        self.preallocate()

    def preallocate(self) -> None:
        """Get ready for appends: entries into memory, the file to its full size."""
        self._load()
        size = max(self.max_entries, self.count) * self.ENTRY.size
        file = self._opened(create=True)
        if file.size != size:
            file.truncate(size)

    def resize(self, max_bytes: int) -> None:
        """Allow for another size from now on; a file that was grown ahead of time follows."""
        self.max_entries = max_bytes // self.ENTRY.size
        if self._entries is not None:
            self.preallocate()

    def persist(self) -> None:
        """Bring entries that are only in memory to the file. It is not synced by that."""
        entries = self._entries
        if entries is None or self._in_file == self.count:
            return
        start = self._in_file * self.ENTRY.size
        self._opened(create=True).write_at(start, memoryview(entries)[start:])
        self._in_file = self.count

    def sync(self) -> None:
        """Make the file durable. Off the loop it is `persist` first, then this."""
        if self._file is not None:
            self._file.sync()

    def trim(self) -> None:
        """Bring everything to the file, cut it to the entries it has, and let go of the memory."""
        count = self._opened_count()
        self.persist()
        size = count * self.ENTRY.size
        file = self._opened(create=True)
        if file.size != size:
            file.truncate(size)
        self._entries = None

    def reset(self) -> None:
        """Forget every entry."""
        self._entries = bytearray()
        self.count = self._in_file = 0
        self._on_cut()

    def truncate_entries(self, count: int) -> None:
        """Keep the first `count` entries."""
        del self._load()[count * self.ENTRY.size :]
        self.count = count
        self._in_file = min(self._in_file, count)
        self._on_cut()

    def entry_at(self, slot: int) -> tuple[int, int]:
        """Key and value of one entry, as they are in the file."""
        if not 0 <= slot < self._opened_count():
            raise IndexError(f"{self.path} has {self.count} entries, not {slot + 1}")
        size = self.ENTRY.size
        if self._entries is not None:
            key, value = self.ENTRY.unpack_from(self._entries, slot * size)
        else:
            key, value = self._unpack(self._opened().read_at(slot * size, size))
        return key, value

    def rename(self, path: str) -> None:
        """Give the index's file another name."""
        self._opened(create=True).rename(path)
        self.path = path

    def moved_to(self, path: str) -> None:
        """Follow a rename of the directory."""
        self.close()
        self.path = path
        self._file = None

    def close(self) -> None:
        """Give back the descriptor; nothing is written."""
        if self._file is not None:
            self._file.close()

    def delete(self) -> None:
        """Remove the file, if there is one."""
        self.close()
        self._file = None
        if self._disk.exists(self.path):
            self._disk.remove(self.path)

    def check_size(self) -> None:
        """Refuse a file that does not consist of whole entries."""
        size = self._opened().size
        if size % self.ENTRY.size:
            raise CorruptIndex(self.path, f"its {size} bytes are not a multiple of {self.ENTRY.size}")

    def _on_cut(self) -> None:
        """Subclasses renew what they remember of the last entry."""

    def _load(self) -> bytearray:
        if self._entries is None:
            count = self._opened_count()
            self._entries = bytearray(self._opened(create=True).read_at(0, count * self.ENTRY.size))
            self._in_file = count
        return self._entries

    def _opened(self, create: bool = False) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path, create=create)
        return self._file

    def _opened_count(self) -> int:
        if self.count < 0:
            self.count = self._disk_entries()
            self._on_cut()
        return self.count

    def _disk_entries(self) -> int:
        try:
            return self._opened().size // self.ENTRY.size
        except FileNotFoundError:
            return 0

    def _unpack(self, data: bytes) -> tuple[int, int]:
        if len(data) != self.ENTRY.size:
            raise CorruptIndex(self.path, "it is shorter than it was")
        key, value = self.ENTRY.unpack(data)
        return key, value

    def _floor(self, target: int, field: int) -> int:
        """The last slot whose key (field 0) or value (field 1) is at most `target`; -1 if there is none."""
        low, high = 0, self._opened_count()
        if high and self.entry_at(high - 1)[field] <= target:
            return high - 1
        if self._entries is None:
            low, high = self._narrow(target, field, low, high)
            block: bytes | bytearray = b""
            if high:
                block = self._opened().read_at(low * self.ENTRY.size, (high - low) * self.ENTRY.size)
            first = low
        else:
            block, first = self._entries, 0
        unpack, size = self.ENTRY.unpack_from, self.ENTRY.size
        try:
            while low < high:
                middle = (low + high) >> 1
                if unpack(block, (middle - first) * size)[field] <= target:
                    low = middle + 1
                else:
                    high = middle
        except struct.error as error:
            raise CorruptIndex(self.path, "it is shorter than it was") from error
        return low - 1

    def _narrow(self, target: int, field: int, low: int, high: int) -> tuple[int, int]:
        """Halve the range with single reads until one block holds it."""
        while high - low > SEARCH_BLOCK_ENTRIES:
            middle = (low + high) >> 1
            if self.entry_at(middle)[field] <= target:
                low = middle + 1
            else:
                high = middle
        return low, high
