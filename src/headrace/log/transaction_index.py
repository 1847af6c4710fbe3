"""The transaction index: the aborted transactions that ended in a segment, for readers to leave out.

The file exists only once there was one. An entry has a version, producer id, first and last offset, and the
last stable offset when the transaction had ended; entries are in the order of their last offsets."""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder
from headrace.ports import Disk, File

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")
READ_ENTRIES: Final = 1024


class AbortedTransaction(NamedTuple):
    """One aborted transaction; `last_offset` is that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedSearch(NamedTuple):
    """What one segment contributes; if it is not complete, the next segments may contribute as well."""

    transactions: list[AbortedTransaction]
    is_complete: bool


class TransactionIndex:
    """A segment's `.txnindex` file."""

    __slots__ = ("_disk", "_file", "_last_offset", "_looked", "base_offset", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self._file: File | None = None
        self._looked = False
        self._last_offset: int | None = None
        self.path = path
        self.base_offset = base_offset

    def __repr__(self) -> str:
        return f"TransactionIndex({self.path!r})"

    def __iter__(self) -> Iterator[AbortedTransaction]:
        """Every entry in order."""
        file = self._existing()
        if file is None:
            return
        size = file.size // ENTRY.size * ENTRY.size
        for position in range(0, size, READ_ENTRIES * ENTRY.size):
            block = file.read_at(position, min(size - position, READ_ENTRIES * ENTRY.size))
            for version, *fields in ENTRY.iter_unpack(block):
                if version > VERSION:
                    raise CorruptIndex(self.path, f"it has an entry of version {version}, not {VERSION}")
                yield AbortedTransaction(*fields)

    @property
    def is_empty(self) -> bool:
        """Whether there is no entry, or no file."""
        file = self._existing()
        return file is None or file.size < ENTRY.size

    def append(self, transaction: AbortedTransaction) -> None:
        """Add an entry; last offsets grow."""
        last = self._last_offset
        if last is not None and last >= transaction.last_offset:
            raise IndexOutOfOrder(f"offset {transaction.last_offset} does not follow {last} in {self.path}")
        file = self._existing()
        if file is None:
            file = self._file = self._disk.open(self.path, create=True)
        file.append(ENTRY.pack(VERSION, *transaction))
        self._last_offset = transaction.last_offset

    def search(self, fetch_offset: int, upper_bound: int) -> AbortedSearch:
        """The transactions that overlap [fetch_offset, upper_bound)."""
        found = []
        for transaction in self:
            if transaction.last_offset >= fetch_offset and transaction.first_offset < upper_bound:
                found.append(transaction)
            if transaction.last_stable_offset >= upper_bound:
                return AbortedSearch(found, True)
        return AbortedSearch(found, False)

    def truncate_to(self, offset: int) -> None:
        """Remove every entry whose transaction ended at or beyond `offset`."""
        kept: int | None = None
        for slot, transaction in enumerate(self):
            if transaction.last_offset >= offset:
                assert self._file is not None
                self._file.truncate(slot * ENTRY.size)
                self._last_offset = kept
                return
            kept = transaction.last_offset

    def reset(self) -> None:
        """Remove every entry; an existing file stays, empty."""
        file = self._existing()
        if file is not None:
            file.truncate(0)
        self._last_offset = None

    def sanity_check(self) -> None:
        """CorruptIndex if the file cannot be a transaction index of this segment."""
        for transaction in self:
            if transaction.last_offset < self.base_offset:
                raise CorruptIndex(
                    self.path, f"{transaction} ends before the segment's base offset {self.base_offset}"
                )

    def sync(self) -> None:
        """Make the file durable, if there is one."""
        if self._file is not None:
            self._file.sync()

    def rename(self, path: str) -> None:
        """Give the file another name, if there is one."""
        file = self._existing()
        if file is not None:
            file.rename(path)
        self.path = path

    def moved_to(self, path: str) -> None:
        """Follow a rename of the directory."""
        self.close()
        self.path = path
        self._file = None
        self._looked = False

    def close(self) -> None:
        """Give back the descriptor."""
        if self._file is not None:
            self._file.close()

    def delete(self) -> None:
        """Remove the file, if there is one."""
        if self._existing() is not None:
            self.close()
            self._file = None
            self._disk.remove(self.path)

    def _existing(self) -> File | None:
        if self._file is None and not self._looked:
            self._looked = True
            if self._disk.exists(self.path):
                self._file = self._disk.open(self.path)
        return self._file
