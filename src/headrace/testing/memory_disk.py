"""A disk in memory that forgets what was not synced, tears writes, flips bits and fails on demand.

Use it wherever a `Disk` is wanted:

    disk = MemoryDisk()
    disk.make_directory("/logs")
    file = disk.open("/logs/a", create=True)
    file.append(b"kept")
    file.sync()
    file.append(b"lost")
    disk.crash()                       # the power fails; handles are dead from here on
    assert disk.read("/logs/a") == b"kept"

What a crash leaves behind follows ext4 with `data=ordered`:

- Names (creations, renames, removals) form one journal. Syncing any file or directory commits it; a crash
  keeps the committed part and, unless everything unsynced is lost, some further part of it, in order.
- A file's bytes and size are durable up to its last `sync`. What was written since survives according to the
  `Loss` given: not at all, entirely, as a prefix cut at any byte or sector, or with holes of zeros.
- A name may survive without its bytes: a file that was renamed but never synced can come back empty.

A killed process, unlike a power failure, loses nothing that was written: `crash(Loss.NOTHING)`.
"""

import errno
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeVar

from headrace.ports import BytesLike, Clock, Entropy
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_tree import Directory, Inode, NameChange, Tree

T = TypeVar("T")

OperationKind = Literal[
    "create",
    "append",
    "write",
    "read",
    "truncate",
    "sync",
    "rename",
    "remove",
    "mkdir",
    "sync_directory",
    "list",
]


class Operation(NamedTuple):
    """One request to the disk, as a failure's `when` sees it."""

    kind: OperationKind
    path: str
    position: int = 0
    length: int = 0


class Loss(Enum):
    """What a crash does to what was written but not synced."""

    EVERYTHING = "everything"
    NOTHING = "nothing"
    TAIL = "tail"
    HOLES = "holes"


class Crashed(Exception):
    """The disk went down under a running program; handles from before `crash` stay dead."""


@dataclass(slots=True)
class _Failure:
    error: int
    times: int
    when: Callable[[Operation], bool] | None


class MemoryDisk:
    """A file system that lives in memory and breaks on request; see the module for what a crash keeps."""

    def __init__(
        self, *, clock: Clock | None = None, entropy: Entropy | None = None, capacity_bytes: int | None = None
    ) -> None:
        self.clock: Clock = clock or ManualClock()
        self.entropy: Entropy = entropy or SeededEntropy()
        self.capacity_bytes = capacity_bytes
        self.operations: Counter[OperationKind] = Counter()
        self._names = Tree()
        self._durable_names = Tree()
        self._uncommitted: list[NameChange] = []
        self._failures: list[_Failure] = []
        self._crash_countdown: int | None = None
        self._generation = 0
        self._down = False

    # The Disk port

    def open(self, path: str, *, create: bool = False) -> "MemoryFile":
        """The file at `path`; FileNotFoundError if it is missing and `create` is false."""
        self._require_up()
        node = self._names.find(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if node is None:
            if not create:
                raise _missing(path)
            self._begin("create", path)
            node = Inode(self.clock.now_ms())
            self._change(NameChange("link", path, node=node))
        return MemoryFile(self, path, node)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory at `path`."""
        self._require_up()
        return self._names.find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Whether `path` is a directory."""
        self._require_up()
        return isinstance(self._names.find(path), Directory)

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        self._begin("list", path)
        return sorted(self._names.directory(path).entries)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; fine if it is there."""
        self._begin("mkdir", path)
        for missing in self._names.missing_directories(path):
            self._change(NameChange("mkdir", missing))

    def size(self, path: str) -> int:
        """Bytes in the file at `path`."""
        self._require_up()
        return self._names.file(path).cached.size

    def modified_ms(self, path: str) -> int:
        """When the file was last written, by the disk's clock."""
        self._require_up()
        return self._names.file(path).modified_ms

    def read(self, path: str) -> bytes:
        """The whole of a file."""
        self._begin("read", path)
        content = self._names.file(path).cached
        return content.read(0, content.size)

    def replace(self, path: str, data: BytesLike) -> None:
        """Put `data` at `path` by way of a synced temporary file and a rename."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.append(data)
        file.sync()
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, replacing a file at `target`."""
        self._begin("rename", source)
        if self._names.find(source) is None:
            raise _missing(source)
        self._names.directory(os.path.dirname(target))
        self._change(NameChange("rename", source, target=target))

    def remove(self, path: str) -> None:
        """Unlink a file; FileNotFoundError if it is missing."""
        self._begin("remove", path)
        self._names.file(path)
        self._change(NameChange("unlink", path))

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it, one name after the other."""
        self._begin("remove", path)
        for name in self._names.deepest_first(path):
            self._change(NameChange("unlink", name))

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals durable."""
        self._begin("sync_directory", path)
        self._names.directory(path)
        self._commit_names()

    def free_bytes(self, path: str) -> int:
        """Room left under `capacity_bytes`, or plenty if there is no limit."""
        self._require_up()
        if self.capacity_bytes is None:
            return 2**62
        return max(0, self.capacity_bytes - self._names.used_bytes())

    def total_bytes(self, path: str) -> int:
        """`capacity_bytes`, or plenty if there is no limit."""
        self._require_up()
        return 2**62 if self.capacity_bytes is None else self.capacity_bytes

    async def _inline(self, call: Callable[[], T]) -> T:
        return call()

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        """Run the call when awaited, on the loop: a simulation has one thread of time."""
        return self._inline(call)

    def close(self) -> None:
        """Nothing to give back; here so that it can stand in for a real disk."""

    # Breaking it

    def crash(self, loss: Loss = Loss.EVERYTHING, *, sector: int = 1, entropy: Entropy | None = None) -> None:
        """Cut the power and come back up with what survived. Handles opened before are dead.

        `sector` is the granularity at which unsynced bytes survive with `Loss.TAIL` and `Loss.HOLES`: 1 tears
        at any byte, 512 or 4096 as hardware does. The same seed of `entropy` gives the same remains.
        """
        source = entropy or self.entropy
        kept = self._surviving_changes(loss, source)
        for change in self._uncommitted[:kept]:
            self._durable_names.apply(change)
        for inode in self._durable_names.inodes():
            inode.crash(loss.value, sector, source)
        self._names = self._durable_names.copy()
        self._uncommitted.clear()
        self._failures.clear()
        self._crash_countdown = None
        self._generation += 1
        self._down = False

    def crash_after(self, operations: int) -> None:
        """Go down in the operation after the next `operations` ones: it raises `Crashed`, as does everything
        until `crash` brings the disk back up. Of a write under way `crash` may keep all, part or nothing; any
        other operation under way has not happened."""
        self._crash_countdown = operations

    def fail(
        self, error: int = errno.EIO, *, times: int = 1, when: Callable[[Operation], bool] | None = None
    ) -> None:
        """Let the next `times` operations (those for which `when` holds) raise OSError with this errno."""
        self._failures.append(_Failure(error, times, when))

    def heal(self) -> None:
        """Forget the failures that were ordered and have not happened yet."""
        self._failures.clear()
        self._crash_countdown = None

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Invert one bit of a file, in what is written and in what is durable."""
        self._names.file(path).flip_bit(position, bit)

    def tear(self, path: str, size: int) -> None:
        """Cut a file to `size` behind the back of those who use it, durably."""
        self._names.file(path).tear(size)

    def durable(self, path: str) -> bytes | None:
        """What a crash that loses everything unsynced would leave at `path`; None if not even the name."""
        node = self._durable_names.find(path)
        return node.durable.read(0, node.durable.size) if isinstance(node, Inode) else None

    # Inside

    def _surviving_changes(self, loss: Loss, entropy: Entropy) -> int:
        if loss is Loss.EVERYTHING:
            return 0
        if loss is Loss.NOTHING:
            return len(self._uncommitted)
        return int(entropy.random() * (len(self._uncommitted) + 1))

    def _require_up(self) -> None:
        if self._down:
            raise Crashed("the disk is down; call crash() to bring it back up with what survived")

    def _begin(self, kind: OperationKind, path: str, position: int = 0, length: int = 0) -> bool:
        """Count the operation and let it fail if that was ordered. True: it is to go down half-way."""
        self._require_up()
        self.operations[kind] += 1
        if self._failures:
            self._maybe_fail(Operation(kind, path, position, length))
        if self._crash_countdown is not None:
            if self._crash_countdown == 0:
                self._down = True
                if kind not in ("append", "write"):
                    raise Crashed(f"the disk went down before {kind} of {path}")
                return True
            self._crash_countdown -= 1
        return False

    def _maybe_fail(self, operation: Operation) -> None:
        for failure in self._failures:
            if failure.when is None or failure.when(operation):
                failure.times -= 1
                if failure.times <= 0:
                    self._failures.remove(failure)
                raise OSError(failure.error, os.strerror(failure.error), operation.path)

    def _change(self, change: NameChange) -> None:
        self._names.apply(change)
        self._uncommitted.append(change)

    def _commit_names(self) -> None:
        for change in self._uncommitted:
            self._durable_names.apply(change)
        self._uncommitted.clear()

    def _require_room(self, path: str, growth: int) -> None:
        if self.capacity_bytes is not None and growth > self.free_bytes(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


class MemoryFile:
    """A file of a MemoryDisk."""

    __slots__ = ("_disk", "_generation", "_inode", "path")

    def __init__(self, disk: MemoryDisk, path: str, inode: Inode) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._generation = disk._generation

    def __repr__(self) -> str:
        return f"MemoryFile({self.path!r}, size={self._inode.cached.size})"

    @property
    def size(self) -> int:
        """Bytes in the file."""
        self._require_alive()
        return self._inode.cached.size

    def append(self, data: BytesLike) -> None:
        """Write all of `data` at the end, or nothing."""
        self._write("append", self._inode.cached.size, data)

    def write_at(self, position: int, data: BytesLike) -> None:
        """Write all of `data` at `position`, growing the file with zeros if need be."""
        self._write("write", position, data)

    def _write(self, kind: Literal["append", "write"], position: int, data: BytesLike) -> None:
        self._require_alive()
        length = len(data)
        goes_down = self._disk._begin(kind, self.path, position, length)
        self._disk._require_room(self.path, position + length - self._inode.cached.written_size)
        if length:
            self._inode.write(position, bytes(data), self._disk.clock.now_ms())
        if goes_down:
            raise Crashed(f"the disk went down in a write to {self.path}")

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        self._require_alive()
        self._disk._begin("read", self.path, position, length)
        return self._inode.cached.read(position, length)

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, fewer only at the end of the file."""
        found = self.read_at(position, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def truncate(self, size: int) -> None:
        """Cut or (with zeros) grow the file to `size`."""
        self._require_alive()
        self._disk._begin("truncate", self.path, size)
        self._inode.truncate(size, self._disk.clock.now_ms())

    def trim(self, size: int) -> None:
        """Cut off room beyond `size` that nobody reads."""
        self.truncate(size)

    def sync(self) -> None:
        """Make the file's bytes and size durable, and every name given so far."""
        self._require_alive()
        self._disk._begin("sync", self.path)
        self._inode.sync()
        self._disk._commit_names()

    def rename(self, path: str) -> None:
        """Give the file another name; an existing one is replaced."""
        self._require_alive()
        self._disk.rename(self.path, path)
        self.path = path

    @contextmanager
    def pin(self) -> Iterator[int]:
        """A real descriptor with the file's bytes of this moment, so that it can be sent from."""
        self._require_alive()
        fd = os.memfd_create(os.path.basename(self.path))
        try:
            content = self._inode.cached
            os.pwrite(fd, content.read(0, content.size), 0)
            yield fd
        finally:
            os.close(fd)

    def close(self) -> None:
        """Nothing to give back."""

    def _require_alive(self) -> None:
        if self._generation != self._disk._generation:
            raise Crashed(f"{self.path} was opened before the crash; open it again")
