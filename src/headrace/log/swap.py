"""Puts cleaned segments in the place of those they were made from, so that a crash at no point loses data.

The files of a cleaned segment are called `.cleaned` while they are written, `.swap` once they are complete,
and then, after the old files have been renamed `.deleted`, by their plain names. Whoever finds `.swap` files
without `.cleaned` ones at or below them may finish the work; all else is undone. Between these steps the
directory has to be synced, for a file system may keep a later rename and lose an earlier one.
"""

from dataclasses import dataclass, field
from typing import Final

from headrace.log.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    offset_name,
    offset_of,
)
from headrace.log.segment_scan import scan_headers
from headrace.ports import Disk

# Snapshots of the metadata quorum have a clean-up of their own.
QUORUM_SNAPSHOT_DELETED: Final = ".checkpoint.deleted"


@dataclass(slots=True)
class SwapRecovery:
    """What was found and done on load: names of files, for the log and for tests."""

    removed: list[str] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)


def announce_cleaned(disk: Disk, directory: str, base_offset: int) -> None:
    """First step: from here on a crash finishes the swap. The cleaned files must have been synced."""
    _rename_all(disk, directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)


def install_cleaned(disk: Disk, directory: str, base_offset: int) -> None:
    """Last step, once the old files are out of the way."""
    _rename_all(disk, directory, base_offset, SWAP_SUFFIX, "")


def discard_cleaned(disk: Disk, directory: str) -> list[str]:
    """Remove what an aborted or failed round has left; returns the names."""
    leftovers = [name for name in disk.list_directory(directory) if name.endswith(CLEANED_SUFFIX)]
    _remove_all(disk, directory, leftovers)
    return leftovers


def complete_interrupted_swaps(disk: Disk, directory: str) -> SwapRecovery:
    """Finish or undo what a crash has interrupted; to be called before a partition's segments are loaded.

    It may itself be interrupted at any point and be repeated. Files marked `.deleted` go as well."""
    recovery = SwapRecovery()
    names = disk.list_directory(directory)
    recovery.removed += _temporary(names)
    _remove_all(disk, directory, recovery.removed)
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX) and name not in set(recovery.removed)]
    logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    replaced = _replaced_by(disk, directory, logs, names)
    _remove_all(disk, directory, replaced)
    recovery.removed += replaced
    # Logs come first: an index under its plain name beside a `.swap` log would be taken for an old one.
    recovery.completed = logs + [name for name in swaps if name not in logs]
    for name in recovery.completed:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    if recovery.removed or recovery.completed:
        disk.sync_directory(directory)
    return recovery


def _temporary(names: list[str]) -> list[str]:
    """Deleted files, incomplete swaps and cleaned files, in the order in which they may go: an incomplete
    swap without the cleaned files that tell so would be taken for a complete one."""
    deleted = [
        name for name in names if name.endswith(DELETED_SUFFIX) and not name.endswith(QUORUM_SNAPSHOT_DELETED)
    ]
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    first_cleaned = min((_offset(name) for name in cleaned), default=None)
    incomplete = [
        name
        for name in names
        if name.endswith(SWAP_SUFFIX) and first_cleaned is not None and _offset(name) >= first_cleaned
    ]
    return deleted + incomplete + cleaned


def _replaced_by(disk: Disk, directory: str, logs: list[str], names: list[str]) -> list[str]:
    """Files of the segments that the `.swap` logs stand for. A snapshot of the producers at the base of the
    first one stays true; those further on belong to segments that are no more."""
    if not logs:
        return []
    first = min(_offset(name) for name in logs)
    end = max(_next_offset(disk, directory, name) for name in logs)
    replaced = []
    for name in names:
        offset = offset_of(name)
        if offset is None or name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX, DELETED_SUFFIX)):
            continue
        if offset == first and name.endswith(SNAPSHOT_SUFFIX):
            continue
        if first <= offset < max(end, first + 1):
            replaced.append(name)
    return replaced


def _next_offset(disk: Disk, directory: str, name: str) -> int:
    """The offset after a log's last batch; its base offset if it is empty."""
    file = disk.open(f"{directory}/{name}")
    offset = _offset(name)
    for batch in scan_headers(file, 0, file.size):
        offset = batch.last_offset + 1
    file.close()
    return offset


def _offset(name: str) -> int:
    offset = offset_of(name)
    if offset is None:
        raise ValueError(f"{name} does not begin with an offset, as the files of a segment do")
    return offset


def _rename_all(disk: Disk, directory: str, base_offset: int, source: str, target: str) -> None:
    for suffix in SEGMENT_SUFFIXES:
        path = f"{directory}/{offset_name(base_offset)}{suffix}"
        if disk.exists(path + source):
            disk.rename(path + source, path + target)


def _remove_all(disk: Disk, directory: str, names: list[str]) -> None:
    for name in names:
        disk.remove(f"{directory}/{name}")
