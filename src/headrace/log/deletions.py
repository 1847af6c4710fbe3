"""Files that have been renamed `.deleted` and wait for their delay to pass before they are unlinked."""

from typing import NamedTuple

from headrace.log.health import DirectoryHealth
from headrace.ports import Disk


class PendingDeletion(NamedTuple):
    """Files to unlink at or after a time."""

    due_ms: int
    paths: list[str]


class Deletions:
    """The queue of one log. Unlinking large files takes long, so it happens off the loop."""

    __slots__ = ("_disk", "_health", "_pending")

    def __init__(self, disk: Disk, health: DirectoryHealth) -> None:
        self._disk = disk
        self._health = health
        self._pending: list[PendingDeletion] = []

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, paths: list[str], due_ms: int) -> None:
        if paths:
            self._pending.append(PendingDeletion(due_ms, paths))

    @property
    def next_due_ms(self) -> int | None:
        """When there is something to do again."""
        return min((pending.due_ms for pending in self._pending), default=None)

    def moved_to(self, source: str, target: str) -> None:
        """Follow a rename of the partition's directory."""
        self._pending = [
            PendingDeletion(due_ms, [target + path.removeprefix(source) for path in paths])
            for due_ms, paths in self._pending
        ]

    async def delete_due(self, now_ms: int) -> int:
        """Unlink what is due; returns the number of files unlinked."""
        due = [pending for pending in self._pending if pending.due_ms <= now_ms]
        if not due:
            return 0
        self._pending = [pending for pending in self._pending if pending.due_ms > now_ms]
        paths = [path for pending in due for path in pending.paths]
        try:
            return await self._disk.off_loop(lambda: unlink_all(self._disk, paths))
        except OSError as error:
            raise self._health.fail("deleting old segments", error) from error


def unlink_all(disk: Disk, paths: list[str]) -> int:
    """Unlink files that may be gone already; returns how many were there."""
    removed = 0
    for path in paths:
        try:
            disk.remove(path)
            removed += 1
        except FileNotFoundError:
            # The directory was deleted meanwhile, or an operator was quicker.
            continue
    return removed
