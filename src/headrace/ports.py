"""The four doors to the world: clock, disk, network, entropy. Protocols only.

Every effect goes through one of these, so that a whole cluster can run in one deterministic simulation.
`headrace.system` has the real ones, `headrace.testing` the simulated ones. The network's port joins them
with the rooms that use it.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
BytesLike: TypeAlias = bytes | bytearray | memoryview


class Clock(Protocol):
    """Where time comes from; domain code takes `now_ms` as a parameter rather than a clock where it can."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, as records and files carry them."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back, for time-outs and ages."""


class Pace(Protocol):
    """Time for jobs that run off the event loop, and so may sleep."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back."""

    def sleep_ms(self, milliseconds: int) -> None:
        """Do nothing for a while, and hold up whoever runs the job."""


class Entropy(Protocol):
    """Where randomness comes from."""

    def random_bytes(self, count: int) -> bytes:
        """Bytes fit for ids and secrets."""

    def random(self) -> float:
        """A float in [0, 1), for jitter."""


class File(Protocol):
    """One file, named by its path. Its descriptor comes and goes: the disk bounds how many are open.

    Reads and writes go to the operating system's cache; only `sync` makes them durable. A failure of the
    medium raises `OSError`.
    """

    @property
    def path(self) -> str:
        """Where the file is now (it follows `rename`)."""

    @property
    def size(self) -> int:
        """Bytes in the file."""

    def append(self, data: BytesLike) -> None:
        """Write all of `data` at the end. If only part fits, the file is cut back and OSError raised."""

    def write_at(self, position: int, data: BytesLike) -> None:
        """Write all of `data` at `position`, growing the file with zeros if need be."""

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read, fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut or (with zeros, sparsely) grow the file to `size`."""

    def trim(self, size: int) -> None:
        """Cut off room beyond `size` that was never handed to a reader, so that pins need not be heeded."""

    def sync(self) -> None:
        """Block until the file's bytes and size are durable. Off the loop: `Disk.off_loop(file.sync)`."""

    def rename(self, path: str) -> None:
        """Give the file another name in the same directory; an existing one is replaced."""

    def pin(self) -> AbstractContextManager[int]:
        """A descriptor for zero-copy sends that stays valid until left, whatever happens to the name."""

    def close(self) -> None:
        """Give back the descriptor. The file may be used again, and reopens on demand."""


class Disk(Protocol):
    """A file system. Paths are absolute strings."""

    def open(self, path: str, *, create: bool = False) -> File:
        """The file at `path`; FileNotFoundError if it is missing and `create` is false."""

    def exists(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""

    def is_directory(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; fine if it is there."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in wall-clock milliseconds."""

    def read(self, path: str) -> bytes:
        """The whole of a small file."""

    def replace(self, path: str, data: BytesLike) -> None:
        """Put `data` at `path` so that a crash leaves the old or the new content, durable on return."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, replacing a file at `target`."""

    def remove(self, path: str) -> None:
        """Unlink a file; FileNotFoundError if it is missing."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory durable."""

    def free_bytes(self, path: str) -> int:
        """Room left on the file system that holds `path`."""

    def total_bytes(self, path: str) -> int:
        """Size of the file system that holds `path`."""

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        """Run a call that releases the GIL (sync, remove, a large read) without holding up the event loop."""


class Workers(Protocol):
    """Where Python that computes for long runs: other processes in production, inline in the simulation."""

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Run a picklable module-level function elsewhere and hand back its result or its exception."""
