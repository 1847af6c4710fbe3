"""Making a log durable: fsync off the loop, shared by everybody who waits for it.

Whoever asks while a sync is under way is served by the next one, since the running one may have passed
their bytes already. The recovery point moves only after a sync has succeeded; a failed one takes the log
directory offline and is never tried again."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from headrace.log.health import DirectoryHealth
from headrace.ports import Disk


class Flushable(Protocol):
    """What a log tells its flusher."""

    @property
    def log_end_offset(self) -> int: ...

    @property
    def recovery_point(self) -> int: ...

    @property
    def directory(self) -> str: ...

    @property
    def is_closed(self) -> bool:
        """Whether nobody wants its bytes to be durable any more."""

    def unsynced(self, end_offset: int) -> Callable[[], None]:
        """A call that syncs every file with bytes between the recovery point and `end_offset`."""

    def mark_flushed(self, offset: int) -> None:
        """Move the recovery point up to `offset`."""


class Flusher:
    """Group commit for one log."""

    __slots__ = ("_ceiling", "_disk", "_health", "_log", "_running", "_wanted", "last_flush_ms")

    def __init__(self, log: Flushable, disk: Disk, health: DirectoryHealth, now_ms: int) -> None:
        self._log = log
        self._disk = disk
        self._health = health
        self._running: asyncio.Task[None] | None = None
        self._ceiling: int | None = None
        self._wanted = 0
        self.last_flush_ms = now_ms

    async def flush_to(self, offset: int, now_ms: int) -> None:
        """Return once everything below `offset` is durable (or has been truncated away meanwhile)."""
        self._health.check()
        log = self._log
        while not log.is_closed and log.recovery_point < min(offset, log.log_end_offset):
            # A waiter that is cancelled must not take the others' sync with it.
            await asyncio.shield(self.begin(offset, now_ms))
            self._health.check()

    def begin(self, offset: int, now_ms: int) -> asyncio.Task[None]:
        """See to it that everything below `offset` becomes durable soon; the sync that comes next."""
        self._wanted = max(self._wanted, offset)
        if self._running is None:
            self.last_flush_ms = now_ms
            self._running = asyncio.ensure_future(self._sync())
        return self._running

    def on_truncated(self, offset: int) -> None:
        """Bytes from `offset` on are not those that a running sync is making durable."""
        if self._running is not None and (self._ceiling is None or offset < self._ceiling):
            self._ceiling = offset

    async def _sync(self) -> None:
        target, self._wanted = min(self._wanted, self._log.log_end_offset), 0
        directory = self._log.directory
        now = asyncio.get_running_loop().time
        begun = now()
        try:
            await self._disk.off_loop(self._log.unsynced(target))
            self._health.syncs += 1
            self._health.sync_ms += (now() - begun) * 1000
        except OSError as error:
            # The waiters find the failure in the directory's health; nobody may be left to be told here.
            if not self._has_moved(directory, error):
                self._health.fail("syncing", error)
        else:
            self._log.mark_flushed(target if self._ceiling is None else min(target, self._ceiling))
        finally:
            self._ceiling = None
            self._running = None
        if self._is_more_wanted:
            # Whoever has asked meanwhile may not wait for it.
            self.begin(self._wanted, self.last_flush_ms)

    @property
    def _is_more_wanted(self) -> bool:
        log = self._log
        is_usable = self._health.failure is None and not log.is_closed
        return is_usable and log.recovery_point < min(self._wanted, log.log_end_offset)

    def _has_moved(self, directory: str, error: OSError) -> bool:
        """Whether files are missing only because the partition was renamed or deleted during a sync; those
        who still wait have it synced under its new name."""
        is_elsewhere = self._log.is_closed or self._log.directory != directory
        return is_elsewhere and isinstance(error, FileNotFoundError)
