"""Reads the bytes of a log again and tells where they are not what was written.

Fetches check bytes on disk when they are first read (see `read_verifier`); bits that flip later are found
here. What runs in a worker process is `scrub_stretch`; nothing is changed by it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from headrace.log.log_errors import CorruptLog
from headrace.log.segment_scan import scan_checked, scan_headers
from headrace.ports import Disk, File

if TYPE_CHECKING:
    from headrace.log.partition_log import PartitionLog


class Stretch(NamedTuple):
    """A part of a log file that begins with a batch; `size` is up to where the file was written."""

    path: str
    base_offset: int
    position: int
    size: int


class Scrubbed(NamedTuple):
    """How far a file was read, and every damaged place up to there."""

    position: int
    damages: list[CorruptLog]


def scrub_stretch(make_disk: Callable[[], Disk], stretch: Stretch, bytes_max: int) -> Scrubbed:
    """Read about `bytes_max` of a file, always some whole batches."""
    file = make_disk().open(stretch.path)
    try:
        return _scrub(file, stretch, stretch.position + bytes_max)
    finally:
        file.close()


def scrub_log(log: "PartitionLog") -> list[CorruptLog]:
    """Every damaged place in a log, read here and now."""
    found: list[CorruptLog] = []
    for segment in log.segments:
        stretch = Stretch(segment.log.path, segment.base_offset, 0, segment.size)
        found += _scrub(segment.log, stretch, segment.size).damages
    return found


def _scrub(file: File, stretch: Stretch, stop: int) -> Scrubbed:
    """Every damaged batch counts; where not even its size can be told, the rest of the file counts as one."""
    damages: list[CorruptLog] = []
    position, size = stretch.position, stretch.size
    while position < min(stop, size):
        try:
            for batch in scan_checked(file, stretch.base_offset, position, size):
                position = batch.position + batch.size
                if position >= stop:
                    break
        except CorruptLog as damage:
            damages.append(damage)
            position = _after(file, damage.position, size)
    return Scrubbed(position, damages)


def _after(file: File, position: int, size: int) -> int:
    """Where the batch after a damaged one begins; the end if its header is damaged too."""
    try:
        for header in scan_headers(file, position, size):
            return header.position + header.size
    except CorruptLog:
        return size
    return size
