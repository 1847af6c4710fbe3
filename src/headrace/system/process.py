"""What the operating system says about this process."""

import os
import resource
import sys
import time
from typing import Final, NamedTuple

_STARTED_SECONDS: Final = time.time()


class ProcessState(NamedTuple):
    """Memory in bytes, processor time and the time of the start in seconds, descriptors; -1 if not known."""

    resident_bytes: int
    virtual_bytes: int
    cpu_seconds: float
    open_descriptors: int
    descriptors_max: int
    start_seconds: float


def process_state() -> ProcessState:
    """How things stand now. Where the system does not say what is resident, its highest value stands in."""
    resident, virtual = _memory()
    times = os.times()
    return ProcessState(
        resident,
        virtual,
        times.user + times.system,
        _open_descriptors(),
        _descriptor_limit(),
        _STARTED_SECONDS,
    )


def raise_descriptor_limit() -> None:
    """Allow this process as many descriptors as it may have without asking anybody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems name a hard limit that they don't grant; what there is has to do.
            return


def spare_descriptors(taken: int) -> int | None:
    """How many descriptors are left for other things than the `taken`; None if there is no limit."""
    soft = _descriptor_limit()
    return None if soft < 0 else max(0, soft - taken)


def _memory() -> tuple[int, int]:
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = file.read().split()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (peak if sys.platform == "darwin" else peak * 1024), -1
    size = os.sysconf("SC_PAGE_SIZE")
    return int(pages[1]) * size, int(pages[0]) * size


def _open_descriptors() -> int:
    try:
        # Listing the directory takes a descriptor of its own.
        return len(os.listdir("/dev/fd")) - 1
    except OSError:
        return -1


def _descriptor_limit() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else -1


def exit_at_once(status: int) -> None:
    """End the process without closing anything, as a crash would."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
