"""The state of one log directory's medium, shared by every log in it.

The first failure takes the directory offline for good: what the operating system failed to write or sync
can't be told apart from what it did, so nothing is retried and passed off as success."""

from collections.abc import Callable

from headrace.log.log_errors import LogDirectoryOffline


class DirectoryHealth:
    """Whether a log directory still takes writes, and why not."""

    __slots__ = ("_on_failure", "failure", "path", "sync_ms", "syncs")

    def __init__(self, path: str, on_failure: Callable[[LogDirectoryOffline], None] | None = None) -> None:
        self.path = path
        self.failure: LogDirectoryOffline | None = None
        #: How many logs were synced, and how long that took, for metrics.
        self.syncs = 0
        self.sync_ms = 0.0
        self._on_failure = on_failure

    def check(self) -> None:
        """Refuse to go on if the directory is offline."""
        if self.failure is not None:
            raise LogDirectoryOffline(f"log directory {self.path} is offline: {self.failure.message}")

    def fail(self, doing: str, error: OSError) -> LogDirectoryOffline:
        """Take the directory offline; returns the error to raise."""
        failure = LogDirectoryOffline(f"{doing} in log directory {self.path} failed: {error}")
        if self.failure is None:
            self.failure = failure
            if self._on_failure is not None:
                self._on_failure(failure)
        return failure
