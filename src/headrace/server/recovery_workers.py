"""Where logs are put right after a crash: large ones in worker processes, small ones at once.

Starting a process takes longer than checking a few megabytes, and nobody is served yet."""

from collections.abc import Callable
from typing import Final, TypeVar

from headrace.log.recovery import RecoveryJob, recover_files
from headrace.ports import Disk, Workers

T = TypeVar("T")

INLINE_BYTES_MAX: Final = 4 * 1024 * 1024
INLINE_TOTAL_BYTES_MAX: Final = 32 * 1024 * 1024
_LOG_SUFFIX: Final = ".log"


class RecoveryWorkers:
    """The Workers port of log directories while they are opened."""

    __slots__ = ("_disk", "_inline_bytes", "_workers")

    def __init__(self, disk: Disk, workers: Workers) -> None:
        self._disk = disk
        self._workers = workers
        self._inline_bytes = 0

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a recovery here if it is small, anything else elsewhere."""
        job = arguments[-1] if arguments else None
        if isinstance(job, RecoveryJob):
            size = unchecked_bytes(self._disk, job)
            if size <= INLINE_BYTES_MAX and self._inline_bytes + size <= INLINE_TOTAL_BYTES_MAX:
                self._inline_bytes += size
                return recover_files(self._disk, job)  # type: ignore[return-value]
        return await self._workers.run(function, *arguments)


def unchecked_bytes(disk: Disk, job: RecoveryJob) -> int:
    """How much of a partition has to be read: all segments from that of the recovery point on."""
    bases = sorted(
        int(name.removesuffix(_LOG_SUFFIX))
        for name in disk.list_directory(job.directory)
        if name.endswith(_LOG_SUFFIX) and name.removesuffix(_LOG_SUFFIX).isdecimal()
    )
    flushed = [base for base in bases if base <= job.recovery_point]
    first = flushed[-1] if flushed else 0
    return sum(disk.size(f"{job.directory}/{base:020d}{_LOG_SUFFIX}") for base in bases if base >= first)
