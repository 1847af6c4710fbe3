"""The names and bytes of a MemoryDisk: a tree of directories, and inodes that know what is durable."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from headrace.ports import BytesLike, Entropy


class Content:
    """Bytes of a file. Zeros at its end that a truncation grew are not kept: index files are mostly that."""

    __slots__ = ("_bytes", "size")

    def __init__(self, data: BytesLike = b"", size: int | None = None) -> None:
        self._bytes = bytearray(data)
        self.size = len(self._bytes) if size is None else size

    def copy(self) -> "Content":
        """The same bytes once more."""
        return Content(self._bytes, self.size)

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`."""
        length = min(length, max(0, self.size - position))
        return bytes(self._bytes[position : position + length]).ljust(length, b"\0")

    def write(self, position: int, data: bytes) -> None:
        """Put bytes at `position`, with zeros before them if need be."""
        if position > len(self._bytes):
            self._bytes.extend(bytes(position - len(self._bytes)))
        self._bytes[position : position + len(data)] = data
        self.size = max(self.size, position + len(data))

    def truncate(self, size: int) -> None:
        """Cut, or grow with zeros."""
        del self._bytes[size:]
        self.size = size

    def flip_bit(self, position: int, bit: int) -> None:
        """Invert a bit."""
        if not 0 <= position < self.size:
            raise IndexError(f"position {position} lies outside the file's {self.size} bytes")
        self.write(position, bytes([self.read(position, 1)[0] ^ 1 << bit]))

    @property
    def written_size(self) -> int:
        """Where the zeros that nobody wrote begin."""
        return len(self._bytes)


class Inode:
    """A file's bytes as written, its bytes as synced, and the changes between the two in order."""

    __slots__ = ("_pending", "cached", "durable", "modified_ms")

    def __init__(self, now_ms: int) -> None:
        self.cached = Content()
        self.durable = Content()
        self.modified_ms = now_ms
        self._pending: list[tuple[int, bytes | None]] = []

    def write(self, position: int, data: bytes, now_ms: int) -> None:
        """Put bytes into the cache."""
        self._pending.append((position, data))
        self.cached.write(position, data)
        self.modified_ms = now_ms

    def truncate(self, size: int, now_ms: int) -> None:
        """Cut or grow, in the cache."""
        self._pending.append((size, None))
        self.cached.truncate(size)
        self.modified_ms = now_ms

    def sync(self) -> None:
        """Bring everything to the medium."""
        for change in self._pending:
            self._apply_durably(*change)
        self._pending.clear()

    def crash(self, loss: str, sector: int, entropy: Entropy) -> None:
        """Become what the medium holds after a power failure."""
        if loss == "nothing":
            self.sync()
        elif loss == "tail":
            self._keep_prefix(sector, entropy)
        elif loss == "holes":
            self._keep_sectors(sector, entropy)
        self._pending.clear()
        self.cached = self.durable.copy()

    def flip_bit(self, position: int, bit: int) -> None:
        """Invert a bit wherever it is kept."""
        self.cached.flip_bit(position, bit)
        if position < self.durable.size:
            self.durable.flip_bit(position, bit)
        self._pending = [_flipped(change, position, bit) for change in self._pending]

    def tear(self, size: int) -> None:
        """Cut the file, cache and medium alike."""
        self.cached.truncate(size)
        self.durable = self.cached.copy()
        self._pending.clear()

    def _apply_durably(self, position: int, data: bytes | None) -> None:
        if data is None:
            self.durable.truncate(position)
        else:
            self.durable.write(position, data)

    def _keep_prefix(self, sector: int, entropy: Entropy) -> None:
        """Some of the changes reached the medium in order, the last of them in part."""
        total = sum(len(data) if data else 1 for _, data in self._pending)
        budget = int(entropy.random() * (total + 1))
        for position, data in self._pending:
            cost = len(data) if data else 1
            if budget < cost:
                if data:
                    kept = (position + budget) // sector * sector - position
                    if kept > 0:
                        self.durable.write(position, data[:kept])
                return
            self._apply_durably(position, data)
            budget -= cost

    def _keep_sectors(self, sector: int, entropy: Entropy) -> None:
        """The size became durable, but of the written sectors only some did: the others are old, or zeros."""
        step = max(sector, 512)
        self.durable.truncate(self.cached.size)
        for start in range(0, self.cached.written_size, step):
            if entropy.random() < 0.5:
                self.durable.write(start, self.cached.read(start, step))


def _flipped(change: tuple[int, bytes | None], position: int, bit: int) -> tuple[int, bytes | None]:
    start, data = change
    if data is None or not start <= position < start + len(data):
        return change
    copy = Content(data)
    copy.flip_bit(position - start, bit)
    return start, copy.read(0, copy.size)


@dataclass(slots=True)
class Directory:
    """Names and what they stand for."""

    entries: "dict[str, Node]" = field(default_factory=dict)


Node: TypeAlias = Directory | Inode


class NameChange(NamedTuple):
    """One entry of the journal of names."""

    kind: Literal["link", "unlink", "rename", "mkdir"]
    path: str
    target: str = ""
    node: Inode | None = None


class Tree:
    """Directories by path, from the root down."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root = Directory()

    def find(self, path: str) -> Node | None:
        """What is at `path`, or None."""
        node: Node | None = self.root
        for name in _parts(path):
            if not isinstance(node, Directory):
                return None
            node = node.entries.get(name)
        return node

    def directory(self, path: str) -> Directory:
        """The directory at `path`, or the error a file system gives."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if not isinstance(node, Directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def file(self, path: str) -> Inode:
        """The file at `path`, or the error a file system gives."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if not isinstance(node, Inode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def missing_directories(self, path: str) -> list[str]:
        """The directories to make so that `path` exists, outermost first."""
        missing = []
        prefix = ""
        for name in _parts(path):
            prefix += "/" + name
            if self.find(prefix) is None:
                missing.append(prefix)
            else:
                self.directory(prefix)
        return missing

    def deepest_first(self, path: str) -> list[str]:
        """Everything at and below the directory `path`, children before parents."""
        names: list[str] = []
        for name, node in sorted(self.directory(path).entries.items()):
            child = f"{path}/{name}"
            names.extend(self.deepest_first(child) if isinstance(node, Directory) else [child])
        names.append(path)
        return names

    def apply(self, change: NameChange) -> None:
        """Make one change of names."""
        parent, name = os.path.split(change.path)
        entries = self.directory(parent).entries
        if change.kind == "mkdir":
            entries.setdefault(name, Directory())
        elif change.kind == "link":
            assert change.node is not None
            entries[name] = change.node
        elif change.kind == "unlink":
            entries.pop(name)
        else:
            target_parent, target_name = os.path.split(change.target)
            target_entries = self.directory(target_parent).entries
            target_entries[target_name] = entries.pop(name)

    def inodes(self) -> Iterator[Inode]:
        """Every file, each once."""
        waiting: list[Node] = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Directory):
                waiting.extend(node.entries[name] for name in sorted(node.entries, reverse=True))
            else:
                yield node

    def used_bytes(self) -> int:
        """The room that all files take; zeros that were never written take none."""
        return sum(inode.cached.written_size for inode in self.inodes())

    def copy(self) -> "Tree":
        """Directories of its own over the same files."""
        tree = Tree()
        tree.root = _copied(self.root)
        return tree


def _copied(directory: Directory) -> Directory:
    return Directory(
        {
            name: _copied(node) if isinstance(node, Directory) else node
            for name, node in directory.entries.items()
        }
    )


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
