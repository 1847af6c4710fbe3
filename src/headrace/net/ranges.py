"""Stretches of files on their way to a socket, pinned so that they stay what they were."""

import errno
import os
import socket
import sys
from contextlib import AbstractContextManager
from typing import Protocol, cast

from headrace.errors import HeadraceError
from headrace.protocol.fields import FileRange

HAS_SENDFILE = sys.platform == "linux"
NOT_SENDABLE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSOCK})
COPY_CHUNK_BYTES = 256 * 1024


class RangeCut(HeadraceError):
    """A file ended before the range that was being sent from it."""


class _Pinnable(Protocol):
    """A range that knows better than its file whether its bytes are still those that were read."""

    def pin(self) -> AbstractContextManager[int]: ...


class _Readable(Protocol):
    def read(self) -> bytes: ...


def read_range(source: FileRange) -> bytes:
    """The bytes of a range."""
    length = len(source)
    if hasattr(source, "read"):
        data = cast(_Readable, source).read()
    else:
        data = source.file.read_at(source.position, length)
    if len(data) != length:
        raise RangeCut(f"{source.file.path} has {len(data)} of {length} bytes from {source.position}")
    return data


class OutgoingRange:
    """What is left to send of a file range. It holds a descriptor from `pin` to `release`."""

    __slots__ = ("_by_copy", "_descriptor", "_pinned", "_position", "_source", "left")

    def __init__(self, source: FileRange) -> None:
        self._source = source
        self._pinned: AbstractContextManager[int] | None = None
        self._descriptor = -1
        self._position = source.position
        self._by_copy = not HAS_SENDFILE
        self.left = len(source)

    @property
    def is_pinned(self) -> bool:
        """Whether the range holds a descriptor."""
        return self._pinned is not None

    def pin(self) -> None:
        """Take a descriptor: from now on the bytes stay, whatever happens to the file."""
        source = self._source
        pinned = cast(_Pinnable, source).pin() if hasattr(source, "pin") else source.file.pin()
        self._descriptor = pinned.__enter__()
        self._pinned = pinned

    def release(self) -> None:
        """Give the descriptor back."""
        if self._pinned is not None:
            self._pinned.__exit__(None, None, None)
            self._pinned = None

    def send(self, sock: socket.socket, count: int) -> int:
        """Send up to `count` bytes; returns how many. `BlockingIOError` when the socket is full."""
        if self._by_copy:
            sent = self._send_copy(sock, count)
        else:
            try:
                sent = os.sendfile(sock.fileno(), self._descriptor, self._position, count)
            except OSError as error:
                if error.errno not in NOT_SENDABLE:
                    raise
                self._by_copy = True
                sent = self._send_copy(sock, count)
        if sent == 0:
            raise RangeCut(f"{self._source.file.path} ends at {self._position}, {self.left} bytes too early")
        self._position += sent
        self.left -= sent
        return sent

    def _send_copy(self, sock: socket.socket, count: int) -> int:
        data = os.pread(self._descriptor, min(count, COPY_CHUNK_BYTES), self._position)
        return sock.send(data) if data else 0
