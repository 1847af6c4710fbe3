"""A node's log directories together: which are online, where a new partition goes, and what becomes of a
partition whose directory fails.

A directory that fails goes offline for good, alone; the others go on."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from logging import getLogger
from typing import Final
from uuid import UUID

from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.log.directory_names import DirectoryKind
from headrace.log.log_directory import DirectoryPorts, DirectorySettings, LogDirectory
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_log import PartitionLog
from headrace.metadata.ids import UNASSIGNED_DIRECTORY, is_reserved_directory
from headrace.types import TopicId, TopicPartition

LOGGER: Final = getLogger(__name__)
#: Partitions that may never come are remembered up to this many, the latest wishes first.
PREFERENCES_MAX: Final = 10_000


class SamePartitionTwice(HeadraceError):
    """Two log directories hold the same partition; only an operator can tell which is the right one."""

    def __init__(self, partition: TopicPartition, first: str, second: str) -> None:
        super().__init__(
            f"{partition} is in {first} and in {second}. Move one of the two directories away, or set it "
            "aside by giving its name the ending -stray, and start again"
        )


@dataclass(slots=True)
class DirectoryPlan:
    """The directories of a node's configuration, with the ids that their `meta.properties` give them."""

    ids: Mapping[str, UUID]
    cordoned: Collection[str] = ()
    unusable: dict[str, str] = field(default_factory=dict)
    """Directories that could not be used from the start, with the reason."""


class LogDirectories:
    """All log directories of a node."""

    __slots__ = ("_ids", "_on_failure", "_ports", "_settings", "cordoned", "offline", "online", "preferred")

    def __init__(
        self,
        plan: DirectoryPlan,
        ports: DirectoryPorts,
        settings: DirectorySettings,
        on_failure: Callable[[str], None],
    ) -> None:
        self.online: dict[str, LogDirectory] = {}
        self.offline: dict[str, str] = dict(plan.unusable)
        self.cordoned: Collection[str] = plan.cordoned
        self.preferred: dict[TopicPartition, str] = {}
        self._ids = dict(plan.ids)
        self._ports = ports
        self._settings = settings
        self._on_failure = on_failure

    async def open(self, now_ms: int) -> None:
        """Load every directory; those whose medium fails at it are left out."""
        for path in self._ids:
            if path in self.offline:
                LOGGER.error("log directory %s is not used: %s", path, self.offline[path])
                continue
            try:
                directory = await LogDirectory.open(
                    self._ports, path, self._settings, now_ms, self._failure_handler(path)
                )
            except LogDirectoryOffline as error:
                self.offline.setdefault(path, error.message)
                continue
            self.online[path] = directory
            self._report_opening(directory)

    def _failure_handler(self, path: str) -> Callable[[LogDirectoryOffline], None]:
        return lambda failure: self.fail(path, failure.message)

    def _report_opening(self, directory: LogDirectory) -> None:
        opened = sum(1 for _ in directory)
        for name in directory.strays:
            LOGGER.warning("%s in %s was set aside at an earlier start, and is kept", name, directory.path)
        if not opened:
            LOGGER.info("no partitions in %s", directory.path)
        elif directory.stopped_cleanly:
            LOGGER.info("opened %d partitions in %s after a clean stop", opened, directory.path)
        else:
            LOGGER.info(
                "opened %d partitions in %s after an unclean stop, of which %d were recovered",
                opened,
                directory.path,
                len(directory.recoveries),
            )

    def set_strays_aside(self, is_stray: Callable[[PartitionLog], bool], now_ms: int) -> None:
        """Rename the directories of partitions that are not this node's, for somebody to look at; in those
        that were never written to there is nothing to see, and they are deleted."""
        for directory in self:
            for is_future, logs in ((False, directory.logs), (True, directory.future_logs)):
                for partition, log in [(name, log) for name, log in logs.items() if is_stray(log)]:
                    if log.topic_id is None and log.was_never_written:
                        directory.retire(partition, now_ms, is_future=is_future)
                        continue
                    directory.retire(partition, now_ms, DirectoryKind.STRAY, is_future=is_future)
                    LOGGER.warning(
                        "%s in %s is not a partition of this node, and was renamed to %s",
                        partition,
                        directory.path,
                        directory.strays[-1],
                    )

    def require_one_home(self) -> None:
        """Refuse to start with a partition that is in two directories."""
        homes: dict[TopicPartition, str] = {}
        for path, directory in self.online.items():
            for partition in directory.logs:
                if partition in homes:
                    raise SamePartitionTwice(partition, homes[partition], path)
                homes[partition] = path

    # Failure

    def fail(self, path: str, reason: str) -> None:
        """Take a directory out of use. Nothing is written to it any more, not even to close it."""
        if path in self.offline:
            return
        self.offline[path] = reason
        self.online.pop(path, None)
        LOGGER.error("log directory %s goes offline: %s", path, reason)
        self._on_failure(path)

    @property
    def has_offline(self) -> bool:
        return bool(self.offline)

    def require_known(self, path: str) -> None:
        """LOG_DIR_NOT_FOUND if no such directory is configured."""
        if path not in self._ids:
            message = f"Log dir {path} is not found in the config."
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, message)

    @property
    def paths(self) -> list[str]:
        """All configured directories, in order."""
        return list(self._ids)

    def id_of(self, path: str) -> UUID:
        """The id of a configured directory, be it offline."""
        return self._ids[path]

    # Finding and making logs

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(tuple(self.online.values()))

    def directory_with(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that holds a partition's log."""
        for directory in self.online.values():
            if partition in directory.logs:
                return directory
        return None

    def future_directory_with(self, partition: TopicPartition) -> LogDirectory | None:
        """The directory that a partition is being moved to."""
        for directory in self.online.values():
            if partition in directory.future_logs:
                return directory
        return None

    def get_or_create(
        self, partition: TopicPartition, topic_id: TopicId, assigned: UUID, now_ms: int
    ) -> PartitionLog:
        """The log of a partition. It is not made anew while it may lie in a directory that is offline."""
        directory = self.directory_with(partition)
        if directory is None:
            if self.offline and assigned != UNASSIGNED_DIRECTORY and not self._is_online(assigned):
                raise LogDirectoryOffline(
                    f"{partition} may be in one of the log directories that are offline: "
                    f"{', '.join(self.offline)}"
                )
            directory = self._home_for(partition, assigned)
        log = directory.create(partition, now_ms, topic_id=topic_id)
        self.preferred.pop(partition, None)
        return log

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Remember where a partition shall be made if it comes."""
        self.preferred.pop(partition, None)
        if len(self.preferred) >= PREFERENCES_MAX:
            del self.preferred[next(iter(self.preferred))]
        self.preferred[partition] = path

    def _is_online(self, directory_id: UUID) -> bool:
        return any(self._ids[path] == directory_id for path in self.online)

    def _home_for(self, partition: TopicPartition, assigned: UUID) -> LogDirectory:
        wanted = self.preferred.get(partition)
        if wanted is None and not is_reserved_directory(assigned):
            wanted = next((path for path, each in self._ids.items() if each == assigned), None)
        if wanted is not None:
            if wanted not in self.online:
                raise LogDirectoryOffline(f"log directory {wanted} is offline: {self.offline.get(wanted)}")
            return self.online[wanted]
        return self._emptiest()

    def _emptiest(self) -> LogDirectory:
        """The directory with the fewest partitions, cordoned ones left out if that leaves any."""
        if not self.online:
            raise LogDirectoryOffline("all log directories are offline")
        candidates = [each for each in self.online.values() if each.path not in self.cordoned]
        if not candidates:
            return next(iter(self.online.values()))
        return min(candidates, key=lambda each: len(each.logs) + len(each.future_logs))


def directory_path(log: PartitionLog) -> str:
    """The log directory that a log is in."""
    return log.directory.rpartition("/")[0]
