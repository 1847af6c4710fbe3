"""Names of a segment's files: the base offset in twenty digits, a suffix for the kind, one for the state."""

from typing import Final

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
INDEX_SUFFIXES: Final = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

OFFSET_DIGITS: Final = 20


def offset_name(offset: int) -> str:
    """An offset as file names spell it."""
    return f"{offset:020d}"


def offset_of(name: str) -> int | None:
    """The offset that a file's name begins with; None if it begins with something else."""
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def log_path(directory: str, base_offset: int, suffix: str = "") -> str:
    """Where a segment's batches are."""
    return f"{directory}/{base_offset:020d}{LOG_SUFFIX}{suffix}"


def index_path(directory: str, base_offset: int, suffix: str = "") -> str:
    """Where a segment's offset index is."""
    return f"{directory}/{base_offset:020d}{INDEX_SUFFIX}{suffix}"


def time_index_path(directory: str, base_offset: int, suffix: str = "") -> str:
    """Where a segment's time index is."""
    return f"{directory}/{base_offset:020d}{TIME_INDEX_SUFFIX}{suffix}"


def transaction_index_path(directory: str, base_offset: int, suffix: str = "") -> str:
    """Where a segment's index of aborted transactions is, if there were any."""
    return f"{directory}/{base_offset:020d}{TRANSACTION_INDEX_SUFFIX}{suffix}"


def snapshot_path(directory: str, offset: int) -> str:
    """Where the producer state up to `offset` is."""
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"
