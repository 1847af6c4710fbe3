"""The files of a partition's directory by kind, after what crashes leave behind has been cleared."""

from typing import Final

from headrace.log.leader_epochs import FILE_NAME as LEADER_EPOCHS_FILE
from headrace.log.partition_metadata import FILE_NAME as METADATA_FILE
from headrace.log.segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_DIGITS,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
)
from headrace.log.swap import complete_interrupted_swaps
from headrace.ports import Disk

LEFTOVER_SUFFIXES: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)


class PartitionNames:
    """The files in a partition's directory, sorted out by kind."""

    __slots__ = ("bases", "has_epochs", "has_leftovers", "has_metadata", "indexes", "orphans", "snapshots")

    def __init__(self, names: list[str]) -> None:
        self.bases: list[int] = []
        self.snapshots: list[int] = []
        self.indexes: set[str] = set()
        self.has_leftovers = self.has_epochs = self.has_metadata = False
        for name in names:
            digits, suffix = name[:OFFSET_DIGITS], name[OFFSET_DIGITS:]
            if not digits.isdigit():
                self.has_epochs = self.has_epochs or name == LEADER_EPOCHS_FILE
                self.has_metadata = self.has_metadata or name == METADATA_FILE
            elif suffix == LOG_SUFFIX:
                self.bases.append(int(digits))
            elif suffix in INDEX_SUFFIXES:
                self.indexes.add(name)
            elif suffix == SNAPSHOT_SUFFIX:
                self.snapshots.append(int(digits))
            elif suffix.endswith(LEFTOVER_SUFFIXES):
                self.has_leftovers = True
        bases = set(self.bases)
        self.orphans = [name for name in self.indexes if int(name[:OFFSET_DIGITS]) not in bases]


def list_partition(disk: Disk, directory: str) -> PartitionNames:
    """The directory's files once interrupted swaps are finished and orphans gone; it is made if missing."""
    try:
        names = PartitionNames(disk.list_directory(directory))
    except FileNotFoundError:
        disk.make_directory(directory)
        return PartitionNames([])
    if names.has_leftovers:
        complete_interrupted_swaps(disk, directory)
        names = PartitionNames(disk.list_directory(directory))
    for orphan in names.orphans:
        disk.remove(f"{directory}/{orphan}")
    return names
