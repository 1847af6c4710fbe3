"""A log directory: many partitions on one medium, their checkpoints, and a clean or unclean start.

The directory goes offline as a whole when its medium fails; others on the same node go on. Its `.lock` file
and `meta.properties` are the node's business, and so is the metadata quorum's own log, which is left alone.
Periodic work is a method each, called by whoever owns the time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.log import checkpoints
from headrace.log.directory_names import (
    DirectoryKind,
    NotAPartitionDirectory,
    directory_name,
    parse_directory_name,
    retired_name,
)
from headrace.log.health import DirectoryHealth
from headrace.log.loader import OpenRequest, open_partition
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.log_parts import LogSurroundings
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import RecoveryReport, recover_partition
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.log.topic_id_files import TopicIdFiles
from headrace.ports import Disk, Entropy, Workers
from headrace.types import TopicId, TopicPartition

METADATA_TOPIC: Final = "__cluster_metadata"
REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"
OPENED_PER_TURN: Final = 32
CLOSED_AT_ONCE: Final = 16
UNIQUE_ID_BYTES: Final = 16


@dataclass(slots=True, frozen=True)
class DirectorySettings:
    """What a log directory has to be told; the callable gives a topic's configuration."""

    settings_of: Callable[[str], LogSettings]
    producer_settings: ProducerStateSettings = field(default_factory=ProducerStateSettings)
    recoveries_at_once: int = 2
    max_transaction_timeout_ms: int = 900_000


@dataclass(slots=True, frozen=True)
class DirectoryPorts:
    """The world as a log directory sees it. `disk_factory` is picklable: workers make their own disk."""

    disk: Disk
    entropy: Entropy
    workers: Workers
    disk_factory: Callable[[], Disk]


class LogDirectory:
    """All partitions below one path. Make one with `LogDirectory.open`."""

    __slots__ = (
        "_checkpointing",
        "_flush_wanted",
        "_points_outdated",
        "_points_written",
        "_ports",
        "_removals",
        "_settings",
        "_starts_outdated",
        "_starts_written",
        "_surroundings",
        "_topic_ids",
        "disk",
        "future_logs",
        "health",
        "logs",
        "path",
        "recoveries",
        "stopped_cleanly",
        "strays",
    )

    def __init__(
        self,
        ports: DirectoryPorts,
        path: str,
        settings: DirectorySettings,
        on_failure: Callable[[LogDirectoryOffline], None] | None = None,
    ) -> None:
        self.path = path
        self.disk = ports.disk
        self.health = DirectoryHealth(path, on_failure)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        self.strays: list[str] = []
        self.recoveries: list[RecoveryReport] = []
        self.stopped_cleanly = False
        self._ports = ports
        self._settings = settings
        self._flush_wanted: dict[PartitionLog, None] = {}
        self._removals: list[tuple[int, str]] = []
        self._checkpointing = asyncio.Lock()
        self._points_written: dict[TopicPartition, int] = {}
        self._points_outdated = False
        self._starts_written: dict[TopicPartition, int] = {}
        self._starts_outdated: set[TopicPartition] = set()
        self._topic_ids = TopicIdFiles(ports.disk, self.health, self._is_in_use)
        self._surroundings = LogSurroundings(ports.disk, ports.entropy, self.health, self._on_flush_wanted)

    @classmethod
    async def open(
        cls,
        ports: DirectoryPorts,
        path: str,
        settings: DirectorySettings,
        now_ms: int,
        on_failure: Callable[[LogDirectoryOffline], None] | None = None,
    ) -> "LogDirectory":
        """Open every partition in a directory, which is made if it is not there; recover them if need be."""
        directory = cls(ports, path, settings, on_failure)
        try:
            ports.disk.make_directory(path)
            requests = directory._requests(now_ms)
            # Once loading has begun, a crash has to lead to recovery.
            checkpoints.remove_clean_shutdown(ports.disk, path)
            await directory._open_all(requests, now_ms)
            directory._apply_high_watermarks()
        except OSError as error:
            raise directory.health.fail("opening partitions", error) from error
        return directory

    def __iter__(self) -> Iterator[PartitionLog]:
        """Every log, the future ones included."""
        yield from self.logs.values()
        yield from self.future_logs.values()

    # Opening

    def _requests(self, now_ms: int) -> list[tuple[OpenRequest, DirectoryKind]]:
        disk, path = self.disk, self.path
        self.stopped_cleanly = checkpoints.has_clean_shutdown(disk, path)
        recovery_points = checkpoints.read_offsets(disk, f"{path}/{checkpoints.RECOVERY_POINT}")
        log_starts = checkpoints.read_offsets(disk, f"{path}/{checkpoints.LOG_START_OFFSET}")
        self._points_written, self._starts_written = recovery_points, log_starts
        settings: dict[str, LogSettings] = {}
        requests: list[tuple[OpenRequest, DirectoryKind]] = []
        for name in disk.list_directory(path):
            try:
                partition, kind = parse_directory_name(name)
            except NotAPartitionDirectory:
                if name == REMOTE_INDEX_CACHE or not disk.is_directory(f"{path}/{name}"):
                    continue
                raise
            topic = partition.topic
            if topic == METADATA_TOPIC:
                continue
            if topic not in settings:
                settings[topic] = self._settings.settings_of(topic)
            if kind is DirectoryKind.DELETED:
                self._removals.append((now_ms + settings[topic].file_delete_delay_ms, f"{path}/{name}"))
            elif kind is DirectoryKind.STRAY:
                self.strays.append(name)
            else:
                starts, points = (log_starts, recovery_points) if kind is DirectoryKind.CURRENT else ({}, {})
                request = self._request(
                    name,
                    partition,
                    settings[topic],
                    log_start_offset=starts.get(partition, 0),
                    recovery_point=points.get(partition, 0),
                )
                requests.append((request, kind))
        return requests

    def _request(
        self,
        name: str,
        partition: TopicPartition,
        settings: LogSettings,
        log_start_offset: int = 0,
        recovery_point: int = 0,
    ) -> OpenRequest:
        return OpenRequest(
            f"{self.path}/{name}",
            partition,
            settings,
            self._settings.producer_settings,
            log_start_offset,
            recovery_point,
            self.stopped_cleanly,
            self._settings.max_transaction_timeout_ms,
        )

    async def _open_all(self, requests: list[tuple[OpenRequest, DirectoryKind]], now_ms: int) -> None:
        if self.stopped_cleanly:
            for number, (request, kind) in enumerate(requests):
                self._add(request, kind, now_ms, None)
                if number % OPENED_PER_TURN == OPENED_PER_TURN - 1:
                    await asyncio.sleep(0)
            return
        slots = asyncio.Semaphore(self._settings.recoveries_at_once)

        async def recover(request: OpenRequest, kind: DirectoryKind) -> None:
            async with slots:
                report = await self._recover(request, now_ms)
            self._add(request, kind, now_ms, report)

        try:
            async with asyncio.TaskGroup() as group:
                for request, kind in requests:
                    group.create_task(recover(request, kind))
        except ExceptionGroup as failures:
            # The first has ended the others; it says what is wrong with the medium.
            raise failures.exceptions[0] from failures

    def _recover(self, request: OpenRequest, now_ms: int) -> Awaitable[RecoveryReport]:
        job = request.recovery_job(now_ms)
        return self._ports.workers.run(recover_partition, self._ports.disk_factory, job)

    def _add(
        self, request: OpenRequest, kind: DirectoryKind, now_ms: int, report: RecoveryReport | None
    ) -> None:
        log = open_partition(self._surroundings, request, now_ms, recovered=report)
        if report is not None:
            self.recoveries.append(report)
        (self.future_logs if kind is DirectoryKind.FUTURE else self.logs)[request.partition] = log

    def _apply_high_watermarks(self) -> None:
        path = f"{self.path}/{checkpoints.REPLICATION_OFFSET}"
        for partition, offset in checkpoints.read_offsets(self.disk, path).items():
            log = self.logs.get(partition)
            if log is not None:
                log.update_high_watermark(offset)

    # Partitions coming and going

    def create(
        self,
        partition: TopicPartition,
        now_ms: int,
        *,
        topic_id: TopicId | None = None,
        is_future: bool = False,
    ) -> PartitionLog:
        """The log of a partition, made if it is not there."""
        self.health.check()
        logs = self.future_logs if is_future else self.logs
        log = logs.get(partition)
        if log is None:
            if partition in self._starts_outdated:
                self._take_back_starts()
            name = self._retired(partition, DirectoryKind.FUTURE) if is_future else directory_name(partition)
            request = self._request(name, partition, self._settings.settings_of(partition.topic))
            log = open_partition(self._surroundings, request, now_ms)
            logs[partition] = log
        if topic_id is not None:
            log.assign_topic_id(topic_id)
            self._topic_ids.expect(log)
        return log

    def promote_future(self, partition: TopicPartition, now_ms: int) -> PartitionLog:
        """Let the future log of a partition take the place of its present one."""
        if partition not in self.future_logs:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{partition} has no future log in {self.path}")
        if partition in self.logs:
            self.retire(partition, now_ms)
        log = self.future_logs.pop(partition)
        if partition in self._starts_outdated:
            self._take_back_starts()
        log.rename_directory(directory_name(partition))
        self.logs[partition] = log
        return log

    def retire(
        self,
        partition: TopicPartition,
        now_ms: int,
        kind: DirectoryKind = DirectoryKind.DELETED,
        *,
        is_future: bool = False,
    ) -> None:
        """Take a partition out of use: renamed at once, removed from the disk after the delay (or, astray,
        kept for somebody to look at)."""
        log = (self.future_logs if is_future else self.logs).pop(partition)
        self._flush_wanted.pop(log, None)
        # A deletion that a crash undoes is found out at the next start.
        log.rename_directory(self._retired(partition, kind), durably=kind is not DirectoryKind.DELETED)
        log.abandon()
        if not is_future:
            self._disown_checkpoints(partition)
        if kind is DirectoryKind.STRAY:
            self.strays.append(log.directory.rpartition("/")[2])
        else:
            self._removals.append((now_ms + log.settings.file_delete_delay_ms, log.directory))

    def _disown_checkpoints(self, partition: TopicPartition) -> None:
        """What was written about a log must not be taken for its successor's of the same name.

        A log start beyond its end would cost that one all its records, so it is taken back before there is
        one. A recovery point only lets recovery pass over segments, and is put right by `flush_rolled`."""
        self._points_outdated = self._points_outdated or partition in self._points_written
        if self._starts_written.pop(partition, None) is not None:
            self._starts_outdated.add(partition)

    def _take_back_starts(self) -> None:
        try:
            path = f"{self.path}/{checkpoints.LOG_START_OFFSET}"
            checkpoints.write_offsets(self.disk, path, self._starts_written)
        except OSError as error:
            raise self.health.fail(f"writing {checkpoints.LOG_START_OFFSET}", error) from error
        if not self._checkpointing.locked():
            # What is on its way to the file otherwise may be older, and has to be corrected once more.
            self._starts_outdated.clear()

    def _retired(self, partition: TopicPartition, kind: DirectoryKind) -> str:
        return retired_name(partition, kind, self._ports.entropy.random_bytes(UNIQUE_ID_BYTES))

    # Periodic work

    async def flush_due(self, now_ms: int) -> int:
        """Flush segments that were rolled and logs whose `flush.ms` has passed; returns how many logs."""
        self._flush_wanted.clear()
        flushed = 0
        for log in list(self):
            flushed += await log.flush_if_due(now_ms)
        return flushed

    async def flush_rolled(self, now_ms: int) -> int:
        """Flush only what rolls have left behind; cheap enough to be called after every turn of the loop."""
        if self._points_outdated:
            await self.write_recovery_points()
        if self._starts_outdated:
            await self.write_log_starts()
        waiting = list(self._flush_wanted)
        self._flush_wanted.clear()
        for log in waiting:
            await log.flush_if_due(now_ms)
        return len(waiting)

    def _on_flush_wanted(self, log: PartitionLog) -> None:
        self._flush_wanted[log] = None
        if log.recovery_point < self._points_written.get(log.partition, 0):
            self._points_outdated = True

    async def write_topic_ids(self) -> int:
        """Write the topic ids of new partitions to their files; returns how many."""
        return await self._topic_ids.write()

    def _is_in_use(self, log: PartitionLog) -> bool:
        """Whether a log is still one of the directory's, and neither closed nor deleted."""
        partition = log.partition
        is_held = self.logs.get(partition) is log or self.future_logs.get(partition) is log
        return is_held and not log.is_closed

    async def delete_due(self, now_ms: int) -> int:
        """Unlink old segments and retired partitions whose delay has passed; returns how many of both."""
        removed = 0
        for log in list(self):
            if len(log.deletions):
                removed += await log.delete_due_files(now_ms)
        due = [path for due_ms, path in self._removals if due_ms <= now_ms]
        self._removals = [entry for entry in self._removals if entry[0] > now_ms]
        for path in due:
            await self._remove_tree(path)
        return removed + len(due)

    async def _remove_tree(self, path: str) -> None:
        try:
            await self.disk.off_loop(lambda: self.disk.remove_tree(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.health.fail(f"removing {path}", error) from error

    def apply_retention(self, now_ms: int) -> int:
        """Delete old segments of every log that is not being compacted; returns how many."""
        return sum(log.delete_old_segments(now_ms) for log in self)

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been idle for too long."""
        for log in self:
            log.expire_producers(now_ms)

    # Checkpoints and the end

    async def write_recovery_points(self) -> None:
        """Say from where on each log would have to be checked after a crash."""
        points = {partition: log.recovery_point for partition, log in self.logs.items()}
        self._points_written, self._points_outdated = points, False
        await self._write_offsets(checkpoints.RECOVERY_POINT, points)

    async def write_log_starts(self) -> None:
        """Say where logs start whose first segment begins before that."""
        starts = {
            partition: log.log_start_offset
            for partition, log in self.logs.items()
            if log.log_start_offset > log.segments.first.base_offset
        }
        self._starts_written, outdated = starts, frozenset(self._starts_outdated)
        await self._write_offsets(checkpoints.LOG_START_OFFSET, dict(starts))
        self._starts_outdated -= outdated
        if self._starts_outdated:
            # A log was retired while its start was on the way.
            await self.write_log_starts()

    async def write_high_watermarks(self) -> None:
        """Say up to where each log was known to be replicated."""
        watermarks = {partition: log.high_watermark for partition, log in self.logs.items()}
        await self._write_offsets(checkpoints.REPLICATION_OFFSET, watermarks)

    async def _write_offsets(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        self.health.check()
        # A write that is begun ends, and before the next one: threads don't stop when waiters do.
        await asyncio.shield(self._write_in_turn(name, offsets))

    async def _write_in_turn(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        path = f"{self.path}/{name}"
        async with self._checkpointing:
            try:
                await self.disk.off_loop(lambda: checkpoints.write_offsets(self.disk, path, offsets))
            except OSError as error:
                raise self.health.fail(f"writing {name}", error) from error

    async def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Stop cleanly: every log closed and durable, checkpoints written, and the file that says so."""
        slots = asyncio.Semaphore(CLOSED_AT_ONCE)

        async def close(log: PartitionLog) -> None:
            async with slots:
                await log.close(now_ms)

        # Syncs that are asked for together share the work of the file system.
        outcomes = await asyncio.gather(*map(close, list(self)), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        await self.write_recovery_points()
        await self.write_log_starts()
        await self.write_high_watermarks()
        try:
            checkpoints.write_clean_shutdown(self.disk, self.path, broker_epoch)
        except OSError as error:
            raise self.health.fail("writing the clean shutdown file", error) from error
