"""The real file system behind the Disk port, with a bounded number of open descriptors.

Files are opened on demand and closed again when others need their descriptor, so tens of thousands of them
can be in use under a small `ulimit -n`. Everything belongs to the thread of the event loop, except
`File.sync`, `File.read_into` and the methods of the disk that take a path: those may run through `off_loop`.
"""

import asyncio
import errno
import os
import resource
import shutil
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeVar

from headrace.ports import BytesLike

T = TypeVar("T")

READ_WRITE = os.O_RDWR | os.O_CLOEXEC
NEW_FILE_MODE = 0o644
DESCRIPTORS_MIN = 16
DESCRIPTORS_MAX = 65_536
SMALL_FILE_BYTES = 8192
COPY_CHUNK_BYTES = 64 * 1024 * 1024
THREADS = 4
REPLACEMENTS_AT_ONCE = 64
ROOM_SECONDS = 2.0

# A crash half-way through a copy leaves this name behind; whoever opens a log directory clears `.deleted`.
COPY_SUFFIX = ".copy.deleted"

_pwrite = os.pwrite


def default_descriptor_limit() -> int:
    """Half of what the process may open: sockets need the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return DESCRIPTORS_MAX
    return max(DESCRIPTORS_MIN, min(soft // 2, DESCRIPTORS_MAX))


class RealFile:
    """A file of a RealDisk. Its descriptor comes on first use and may go whenever another file needs one."""

    __slots__ = ("_disk", "_fd", "_pins", "_recent", "_size", "_slot", "path")

    def __init__(self, disk: "RealDisk", path: str, size: int) -> None:
        self.path = path
        self._disk = disk
        self._size = size
        self._fd = -1
        self._slot = -1
        self._pins: set[_Pin] | None = None
        self._recent = False

    def __repr__(self) -> str:
        return f"RealFile({self.path!r}, size={self._size})"

    @property
    def size(self) -> int:
        """Bytes in the file, as far as written through this object."""
        return self._size

    def append(self, data: BytesLike) -> None:
        """Write all of `data` at the end, or nothing."""
        fd = self._fd
        if fd < 0:
            fd = self._disk._admit(self)
        else:
            self._recent = True
        size = self._size
        written = _pwrite(fd, data, size)
        if written != len(data):
            self._append_rest(fd, data, written)
        self._size = size + len(data)

    def _append_rest(self, fd: int, data: BytesLike, written: int) -> None:
        try:
            _write_fully(fd, memoryview(data)[written:], self._size + written)
        except OSError:
            os.ftruncate(fd, self._size)
            raise

    def write_at(self, position: int, data: BytesLike) -> None:
        """Write all of `data` at `position`, growing the file with zeros if need be."""
        if not data:
            return
        fd = self._descriptor()
        try:
            _write_fully(fd, memoryview(data), position)
        except OSError:
            if position + len(data) > self._size:
                os.ftruncate(fd, self._size)
            raise
        self._size = max(self._size, position + len(data))

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        fd = self._descriptor()
        data = os.pread(fd, length, position)
        while len(data) < length:
            more = os.pread(fd, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fill `buffer` from `position`; returns the bytes read. Safe off the loop."""
        fd = self._private_descriptor()
        try:
            with memoryview(buffer) as view:
                filled = os.preadv(fd, [view], position)
                while filled < len(view):
                    with view[filled:] as rest:
                        count = os.preadv(fd, [rest], position + filled)
                    if not count:
                        break
                    filled += count
                return filled
        finally:
            os.close(fd)

    def truncate(self, size: int) -> None:
        """Cut or (with zeros, sparsely) grow the file to `size`; pinned readers keep the bytes they saw."""
        if self._pins and size < self._size:
            self._continue_in_copy(size)
        else:
            os.ftruncate(self._descriptor(), size)
        self._size = size

    def trim(self, size: int) -> None:
        """Cut off room beyond `size` that nobody reads; pinned readers go on with the same file."""
        os.ftruncate(self._descriptor(), size)
        self._size = size

    def sync(self) -> None:
        """Block until the file's bytes and size are durable. Safe off the loop."""
        fd = self._private_descriptor()
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, path: str) -> None:
        """Give the file another name; an existing one is replaced."""
        with self._disk._lock:
            os.rename(self.path, path)
            self.path = path

    def pin(self) -> AbstractContextManager[int]:
        """A descriptor of its own, valid until left, whatever happens to the file meanwhile."""
        return _Pin(self)

    def close(self) -> None:
        """Give back the descriptor; the next use reopens it."""
        if self._fd >= 0:
            self._disk._dismiss(self)

    def _descriptor(self) -> int:
        if self._fd < 0:
            return self._disk._admit(self)
        self._recent = True
        return self._fd

    def _private_descriptor(self) -> int:
        return self._disk._with_room(self._duplicate)

    def _duplicate(self) -> int:
        # Another thread may lose the shared descriptor to an eviction between two instructions, and its
        # number may by then belong to another file. The lock is held for the duplication only.
        with self._disk._lock:
            return os.dup(self._fd) if self._fd >= 0 else _open(self.path)

    def _continue_in_copy(self, size: int) -> None:
        """Leave the inode to those who are sending from it and go on with a copy of its first bytes."""
        copy_path = self.path + COPY_SUFFIX
        source = self._private_descriptor()
        try:
            copy = os.open(copy_path, READ_WRITE | os.O_CREAT | os.O_TRUNC, NEW_FILE_MODE)
            try:
                _copy(source, copy, size)
                os.fsync(copy)
            finally:
                os.close(copy)
            self.close()
            os.rename(copy_path, self.path)
        finally:
            os.close(source)
        self._pins = None
        self._disk.sync_directory(os.path.dirname(self.path))


class _Pin:
    """A duplicated descriptor for the length of a with block."""

    __slots__ = ("_fd", "_file", "_others")

    def __init__(self, file: RealFile) -> None:
        self._file = file
        self._fd = -1

    def __enter__(self) -> int:
        file = self._file
        self._fd = file._disk._with_room(lambda: os.dup(file._descriptor()))
        # The set belongs to the inode: after a truncation the file goes on in a copy with a set of its own.
        if self._file._pins is None:
            self._file._pins = set()
        self._others = self._file._pins
        self._others.add(self)
        return self._fd

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._others.discard(self)
        os.close(self._fd)


class RealDisk:
    """The machine's file system. At most `descriptor_limit` files are open at a time."""

    def __init__(self, descriptor_limit: int | None = None) -> None:
        self._limit = max(1, default_descriptor_limit() if descriptor_limit is None else descriptor_limit)
        self._open_files: list[RealFile] = []
        self._hand = 0
        self._lock = threading.Lock()
        self._replacing = tuple(threading.Lock() for _ in range(REPLACEMENTS_AT_ONCE))
        self._thread = threading.get_ident()
        self._threads: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def descriptor_limit(self) -> int:
        """How many files may be open at a time."""
        return self._limit

    @property
    def open_descriptors(self) -> int:
        """How many files are open right now."""
        return len(self._open_files)

    def open(self, path: str, *, create: bool = False) -> RealFile:
        """The file at `path`. No descriptor is opened yet unless the file has to be created."""
        try:
            return RealFile(self, path, os.stat(path).st_size)
        except FileNotFoundError:
            if not create:
                raise
        flags = READ_WRITE | os.O_CREAT | os.O_EXCL
        os.close(self._with_room(lambda: os.open(path, flags, NEW_FILE_MODE)))
        return RealFile(self, path, 0)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory at `path`."""
        return os.path.exists(path)

    def list_directory(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        return sorted(self._with_room(lambda: os.listdir(path)))

    def is_directory(self, path: str) -> bool:
        """Whether `path` is a directory."""
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; fine if it is there."""
        os.makedirs(path, exist_ok=True)

    def size(self, path: str) -> int:
        """Bytes in the file at `path`."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in wall-clock milliseconds."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def read(self, path: str) -> bytes:
        """The whole of a small file."""
        fd = self._with_room(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            data = os.read(fd, SMALL_FILE_BYTES)
            if len(data) < SMALL_FILE_BYTES:
                return data
            pieces = [data]
            while data:
                data = os.read(fd, COPY_CHUNK_BYTES)
                pieces.append(data)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def replace(self, path: str, data: BytesLike) -> None:
        """Put `data` at `path`: the old content or the new one after a crash, never a mixture."""
        # Two threads at the same path would write the same temporary file.
        with self._replacing[hash(path) % REPLACEMENTS_AT_ONCE]:
            self._replace(path, data)

    def _replace(self, path: str, data: BytesLike) -> None:
        temporary = path + ".tmp"
        flags = READ_WRITE | os.O_CREAT | os.O_TRUNC
        fd = self._with_room(lambda: os.open(temporary, flags, NEW_FILE_MODE))
        try:
            _write_fully(fd, memoryview(data), 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory, replacing a file at `target`."""
        os.rename(source, target)

    def remove(self, path: str) -> None:
        """Unlink a file; FileNotFoundError if it is missing."""
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory durable."""
        fd = self._with_room(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        """Room left for an ordinary user on the file system that holds `path`."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        """Size of the file system that holds `path`."""
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    def off_loop(self, call: Callable[[], T]) -> Awaitable[T]:
        """Run a call that releases the GIL in one of a few threads."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="headrace-disk")
        self._loop = asyncio.get_running_loop()
        return self._loop.run_in_executor(self._threads, call)

    def close(self) -> None:
        """Close every descriptor and end the threads; files reopen if they are used again."""
        for file in list(self._open_files):
            file.close()
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def _admit(self, file: RealFile) -> int:
        """Open `file`, in place of one that has not been used for a while if there are too many."""
        fd = self._with_room(lambda: _open(file.path))
        with self._lock:
            files = self._open_files
            if len(files) < self._limit:
                slot = len(files)
                files.append(file)
            else:
                slot = self._victim()
                self._retire(files[slot])
                files[slot] = file
            file._fd = fd
            file._slot = slot
            file._recent = False
            return fd

    def _with_room(self, call: Callable[[], T]) -> T:
        """Make a call that needs a descriptor, closing files that can spare theirs if there is none left."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open_files:
                    raise
                # A file may be between looking up its descriptor and using it, unless this is its own thread.
                if threading.get_ident() != self._thread:
                    return self._with_room_on_loop(call, error)
                with self._lock:
                    self._forget(self._open_files[self._victim()])

    def _with_room_on_loop(self, call: Callable[[], T], error: OSError) -> T:
        """Let the loop's thread make a short call, with a descriptor that it alone can spare.

        Too many connections must not pass for a failure of the medium. The loop may be waiting for this
        thread, so patience ends."""
        answer: Future[T] = Future()

        def make_call() -> None:
            if answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(self._with_room(call))
                except OSError as failure:
                    answer.set_exception(failure)

        if self._loop is None or self._loop.is_closed():
            raise error
        self._loop.call_soon_threadsafe(make_call)
        try:
            return answer.result(ROOM_SECONDS)
        except TimeoutError:
            if answer.cancel():
                raise error from None
            return answer.result()

    def _victim(self) -> int:
        """The clock algorithm: pass over files used again since the hand came by, take the first other."""
        files = self._open_files
        while True:
            slot = self._hand if self._hand < len(files) else 0
            self._hand = slot + 1
            if not files[slot]._recent:
                return slot
            files[slot]._recent = False

    def _dismiss(self, file: RealFile) -> None:
        with self._lock:
            self._forget(file)

    def _forget(self, file: RealFile) -> None:
        last = self._open_files.pop()
        if last is not file:
            self._open_files[file._slot] = last
            last._slot = file._slot
        self._retire(file)

    def _retire(self, file: RealFile) -> None:
        fd = file._fd
        file._fd = file._slot = -1
        os.close(fd)


def _open(path: str) -> int:
    """Open a file for reading and writing, or only for reading where no more is allowed."""
    try:
        return os.open(path, READ_WRITE)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _write_fully(fd: int, data: memoryview, position: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(fd, data[written:] if written else data, position + written)


def _copy(source: int, target: int, size: int) -> None:
    position = 0
    while position < size:
        chunk = os.pread(source, min(size - position, COPY_CHUNK_BYTES), position)
        if not chunk:
            os.ftruncate(target, size)
            return
        _write_fully(target, memoryview(chunk), position)
        position += len(chunk)
