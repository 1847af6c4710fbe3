"""The small text files that a log directory keeps: a version, a count and one entry per line; and the file
that says a broker stopped cleanly."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from headrace.errors import HeadraceError
from headrace.ports import Disk
from headrace.types import TopicPartition

T = TypeVar("T")

VERSION: Final = 0
RECOVERY_POINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET: Final = "log-start-offset-checkpoint"
REPLICATION_OFFSET: Final = "replication-offset-checkpoint"
CLEANER_OFFSET: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"


class CorruptCheckpoint(HeadraceError):
    """A checkpoint file that does not say what it should."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is corrupt: {reason}")
        self.path = path
        self.reason = reason


def format_checkpoint(lines: Iterable[str]) -> bytes:
    """The content of a checkpoint file with these entries."""
    entries = list(lines)
    return "\n".join([str(VERSION), str(len(entries)), *entries, ""]).encode()


def parse_checkpoint(path: str, content: bytes, parse: Callable[[str], T]) -> list[T]:
    """The entries in a checkpoint file; `parse` raises ValueError for a line it does not understand."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, f"it is not text ({error})") from error
    if not lines:
        return []
    version = _number(path, lines[0])
    if version != VERSION:
        raise CorruptCheckpoint(path, f"its version is {version}, not {VERSION}")
    if len(lines) == 1:
        return []
    count = _number(path, lines[1])
    entries = [_entry(path, line, parse) for line in lines[2:]]
    if len(entries) != count:
        raise CorruptCheckpoint(path, f"it announces {count} entries and has {len(entries)}")
    return entries


def _number(path: str, line: str) -> int:
    try:
        return int(line)
    except ValueError as error:
        raise CorruptCheckpoint(path, f"{line!r} is not a number") from error


def _entry(path: str, line: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(line)
    except ValueError as error:
        raise CorruptCheckpoint(path, f"the line {line!r} is malformed") from error


def _parse_offset(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split()
    return TopicPartition(topic, int(partition)), int(offset)


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """The offset of each partition in an offset checkpoint; none if the file is missing or empty."""
    try:
        content = disk.read(path)
    except FileNotFoundError:
        return {}
    return dict(parse_checkpoint(path, content, _parse_offset))


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint; durable on return."""
    disk.replace(
        path,
        format_checkpoint(f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()),
    )


def write_clean_shutdown(disk: Disk, directory: str, broker_epoch: int) -> None:
    """Say that everything in this log directory is closed and durable."""
    content = json.dumps({"version": VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    disk.replace(f"{directory}/{CLEAN_SHUTDOWN}", content.encode())


def has_clean_shutdown(disk: Disk, directory: str) -> bool:
    """Whether the broker that used this log directory last stopped cleanly. The file alone says so."""
    return disk.exists(f"{directory}/{CLEAN_SHUTDOWN}")


def read_clean_shutdown(disk: Disk, directory: str) -> int | None:
    """The broker epoch at the last clean stop; None if there was none or it is not known."""
    try:
        content = json.loads(disk.read(f"{directory}/{CLEAN_SHUTDOWN}"))
    except (FileNotFoundError, ValueError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) else None


def remove_clean_shutdown(disk: Disk, directory: str) -> None:
    """From here on a crash needs recovery; durable on return, since a stale file would hide it."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    if disk.exists(path):
        disk.remove(path)
        disk.sync_directory(directory)
