"""The `.lock` file that keeps two processes, be they Headrace or Kafka, off one directory.

The lock is the kind that Java takes, so each refuses the other. It ends with the process, however that ends;
the file itself stays, as Kafka's does."""

import errno
import fcntl
import os
from types import TracebackType
from typing import Final

from headrace.errors import HeadraceError

FILE_NAME: Final = ".lock"


class DirectoryInUse(HeadraceError):
    """Another process has the directory."""


class DirectoryLock:
    """A lock on one directory, held from `with` on or from `acquire` to `release`.

    No other part of the process may open the file: the system drops the lock when any descriptor closes.
    """

    __slots__ = ("_descriptor", "directory")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._descriptor: int | None = None

    def __enter__(self) -> "DirectoryLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Take the lock or raise DirectoryInUse; OSError if the directory can't be written."""
        descriptor = os.open(f"{self.directory}/{FILE_NAME}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise DirectoryInUse(
                f"{self.directory} is in use by another process, which holds its {FILE_NAME} file; "
                "stop that one first, or give this one a directory of its own"
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
