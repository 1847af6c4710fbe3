"""Reads every byte of a log again and tells where it is not what was written.

Fetches check bytes on disk when they are first read (see `read_verifier`); bits that flip later are found
here. What runs in a worker process is `scrub_files`; nothing is changed by it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.log.log_errors import CorruptLog
from headrace.log.segment_scan import scan_checked, scan_headers
from headrace.ports import Disk, File

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog

StretchToScrub = tuple[str, int, int]
"""A log file, its segment's base offset, and the size up to which it was written."""


def stretches(log: "PartitionLog") -> list[StretchToScrub]:
    """What `scrub_files` has to read of a log, as values that travel to a worker."""
    return [(segment.log.path, segment.base_offset, segment.size) for segment in log.segments]


def scrub_files(make_disk: Callable[[], Disk], files: list[StretchToScrub]) -> list[CorruptLog]:
    """Every damaged place in these files, in order."""
    disk = make_disk()
    found: list[CorruptLog] = []
    for path, base_offset, size in files:
        file = disk.open(path)
        found += scrub_file(file, base_offset, size)
        file.close()
    return found


def scrub_log(log: "PartitionLog") -> list[CorruptLog]:
    """Every damaged place in a log, read here and now."""
    found: list[CorruptLog] = []
    for segment in log.segments:
        found += scrub_file(segment.log, segment.base_offset, segment.size)
    return found


def scrub_file(file: File, base_offset: int, size: int) -> list[CorruptLog]:
    """Every damaged batch of one file; where not even its size can be told, the rest counts as one."""
    found: list[CorruptLog] = []
    start = 0
    while start < size:
        try:
            for _ in scan_checked(file, base_offset, start, size):
                continue
            return found
        except CorruptLog as damage:
            found.append(damage)
            start = _after(file, damage.position, size)
    return found


def _after(file: File, position: int, size: int) -> int:
    """Where the batch after a damaged one begins; the end if its header is damaged too."""
    try:
        for header in scan_headers(file, position, size):
            return header.position + header.size
    except CorruptLog:
        return size
    return size
