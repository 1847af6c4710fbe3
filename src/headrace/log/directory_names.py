"""Names of partition directories: the plain one, and those of partitions being deleted, moved or astray."""

from enum import StrEnum
from re import Pattern, compile
from typing import Final, NamedTuple

from headrace.errors import HeadraceError
from headrace.types import TopicPartition

NAME_LENGTH_MAX: Final = 255
_SUFFIXED: Final[Pattern[str]] = compile(r"(\S+)-(\S+)\.(\S+)")


class DirectoryKind(StrEnum):
    """What a partition directory's suffix says about it."""

    CURRENT = ""
    DELETED = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


_SUFFIXES: Final = (DirectoryKind.DELETED.value, DirectoryKind.FUTURE.value, DirectoryKind.STRAY.value)


class PartitionDirectory(NamedTuple):
    """A parsed directory name."""

    partition: TopicPartition
    kind: DirectoryKind


class NotAPartitionDirectory(HeadraceError):
    """A directory in a log directory that does not hold a partition."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"'{name}' is not named topic-partition, or topic-partition.id with -delete, -future or -stray "
            "at its end; a log directory may hold nothing else"
        )


def directory_name(partition: TopicPartition) -> str:
    """The name of a partition's directory in normal use."""
    return f"{partition.topic}-{partition.partition}"


def retired_name(partition: TopicPartition, kind: DirectoryKind, unique: bytes) -> str:
    """The name for a partition that is being deleted, moved or found astray; `unique` is 16 random bytes."""
    suffix = f"-{partition.partition}.{unique.hex()}{kind.value}"
    if kind is DirectoryKind.FUTURE:
        return partition.topic + suffix
    # Topic names may fill a path component; a deleted one gives up its end rather than the operation.
    return partition.topic[: NAME_LENGTH_MAX - len(suffix)] + suffix


def parse_directory_name(name: str) -> PartitionDirectory:
    """Which partition a directory holds; `NotAPartitionDirectory` if none."""
    kind = _kind_of(name)
    plain = name
    if kind is not DirectoryKind.CURRENT:
        if _SUFFIXED.fullmatch(name.removesuffix(kind.value)) is None:
            raise NotAPartitionDirectory(name)
        plain = name[: name.rindex(".")]
    topic, separator, number = plain.rpartition("-")
    if not separator or not topic or not (number.isascii() and number.isdigit()):
        raise NotAPartitionDirectory(name)
    return PartitionDirectory(TopicPartition(topic, int(number)), kind)


def _kind_of(name: str) -> DirectoryKind:
    if not name.endswith(_SUFFIXES):
        return DirectoryKind.CURRENT
    for kind in (DirectoryKind.DELETED, DirectoryKind.FUTURE, DirectoryKind.STRAY):
        if name.endswith(kind.value):
            return kind
    return DirectoryKind.CURRENT
