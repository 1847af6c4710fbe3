"""Which leader epoch began at which offset: the `leader-epoch-checkpoint` file of a partition.

New epochs are durable before `assign` returns. Truncations only mark the cache dirty. A file that is stale at
its start does no harm: loading truncates again, and the owner calls `flush` when it suits. One that is stale
at its end must be flushed before the next append, which recovery would take for an older leader's."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.log.checkpoints import format_checkpoint, parse_checkpoint
from headrace.ports import Disk
from headrace.types import NO_LEADER_EPOCH

FILE_NAME: Final = "leader-epoch-checkpoint"
NO_OFFSET: Final = -1


class EpochEntry(NamedTuple):
    """An epoch and the first offset written in it."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The epoch found for a request and the offset it ends before; both -1 if nothing is known."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one partition, ascending in epoch and in start offset."""

    __slots__ = ("_disk", "_entries", "dirty", "latest_epoch", "path")

    def __init__(self, disk: Disk, directory: str, entries: Iterable[EpochEntry] = ()) -> None:
        self._disk = disk
        self._entries: list[EpochEntry] = []
        self.path = f"{directory}/{FILE_NAME}"
        self.latest_epoch = NO_LEADER_EPOCH
        self.dirty = False
        for entry in entries:
            self._assign(entry)

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "LeaderEpochs":
        """What the partition's file says; nothing if there is none."""
        path = f"{directory}/{FILE_NAME}"
        try:
            content = disk.read(path)
        except FileNotFoundError:
            return cls(disk, directory)
        return cls(disk, directory, parse_checkpoint(path, content, _parse_entry))

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"LeaderEpochs({self.path!r}, {[tuple(entry) for entry in self._entries]})"

    @property
    def entries(self) -> list[EpochEntry]:
        """All of them in order."""
        return list(self._entries)

    @property
    def latest(self) -> EpochEntry | None:
        """The current epoch."""
        return self._entries[-1] if self._entries else None

    @property
    def earliest(self) -> EpochEntry | None:
        """The oldest epoch that has records."""
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that an epoch begins at an offset; durable on return. False if that was known.

        Entries that contradict the new one are dropped."""
        if not self._assign(EpochEntry(epoch, start_offset)):
            return False
        self.write()
        return True

    def note(self, epoch: int, start_offset: int) -> None:
        """Note that an epoch begins at an offset; `flush` before its first record makes that durable."""
        if self._assign(EpochEntry(epoch, start_offset)):
            self.dirty = True

    def assign_all(self, entries: Iterable[EpochEntry]) -> None:
        """Note several at once; durable on return."""
        changes = [self._assign(entry) for entry in entries]
        if any(changes):
            self.write()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest epoch up to the one asked for, and where it ends: what followers truncate by."""
        if epoch == NO_LEADER_EPOCH:
            return EpochEnd(NO_LEADER_EPOCH, NO_OFFSET)
        if self._entries and epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(self._entries, epoch, key=_epoch)
        if higher == len(self._entries):
            return EpochEnd(NO_LEADER_EPOCH, NO_OFFSET)
        end_offset = self._entries[higher].start_offset
        return EpochEnd(self._entries[higher - 1].epoch if higher else epoch, end_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written."""
        index = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[index - 1].epoch if index else None

    def entry_for(self, epoch: int) -> EpochEntry | None:
        """The entry of exactly this epoch."""
        index = bisect_left(self._entries, epoch, key=_epoch)
        if index < len(self._entries) and self._entries[index].epoch == epoch:
            return self._entries[index]
        return None

    def previous_epoch(self, epoch: int) -> int | None:
        """The largest epoch below `epoch`."""
        index = bisect_left(self._entries, epoch, key=_epoch)
        return self._entries[index - 1].epoch if index else None

    def next_epoch(self, epoch: int) -> int | None:
        """The smallest epoch above `epoch`."""
        index = bisect_right(self._entries, epoch, key=_epoch)
        return self._entries[index].epoch if index < len(self._entries) else None

    def truncate_from_end(self, end_offset: int) -> bool:
        """Drop epochs that begin at or beyond `end_offset`. True if there were any; `flush` writes that."""
        if end_offset < 0:
            return False
        index = bisect_left(self._entries, end_offset, key=_start_offset)
        if index == len(self._entries):
            return False
        del self._entries[index:]
        self._on_change()
        return True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Drop epochs that end at or before `start_offset`, and let the one there begin at it."""
        index = bisect_right(self._entries, start_offset, key=_start_offset)
        if index == 0:
            return False
        self._entries[:index] = [EpochEntry(self._entries[index - 1].epoch, start_offset)]
        self._on_change()
        return True

    def clear(self) -> None:
        """Drop everything; `flush` writes that."""
        self._entries.clear()
        self._on_change()

    def flush(self) -> None:
        """Write the file if truncations have changed what it should say."""
        if self.dirty:
            self.write()

    def write(self) -> None:
        """Write the file; durable on return."""
        self._disk.replace(self.path, self.encode())
        self.dirty = False

    def encode(self) -> bytes:
        """What the file should say."""
        return format_checkpoint(f"{epoch} {start_offset}" for epoch, start_offset in self._entries)

    def moved_to(self, directory: str) -> None:
        """Follow a rename of the directory."""
        self.path = f"{directory}/{FILE_NAME}"

    def _assign(self, entry: EpochEntry) -> bool:
        epoch, start_offset = entry
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"{self.path}: {entry} is not a leader epoch")
        entries = self._entries
        if entries and epoch == entries[-1].epoch and start_offset >= entries[-1].start_offset:
            return False
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= start_offset):
            entries.pop()
        entries.append(entry)
        self.latest_epoch = epoch
        return True

    def _on_change(self) -> None:
        self.dirty = True
        self.latest_epoch = self._entries[-1].epoch if self._entries else NO_LEADER_EPOCH


def _epoch(entry: EpochEntry) -> int:
    return entry.epoch


def _start_offset(entry: EpochEntry) -> int:
    return entry.start_offset


def _parse_entry(line: str) -> EpochEntry:
    epoch, start_offset = line.split()
    return EpochEntry(int(epoch), int(start_offset))
