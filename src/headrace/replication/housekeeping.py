"""What has to be done for logs from time to time: retention, syncs, checkpoints, old producers, compaction.

Each task is a method that takes the time and yields to the loop between logs, so that no request waits for
many of them. Whoever owns the timers reads the schedule; intervals follow the configuration as it changes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from logging import getLogger
from typing import Final

from headrace.config.headrace_keys import headrace_settings
from headrace.config.node import NodeConfig
from headrace.log.checkpoints import CLEANER_OFFSET, read_offsets
from headrace.log.cleaner_manager import CleanerManager
from headrace.log.log_directory import LogDirectory
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_log import PartitionLog
from headrace.ports import Clock, Disk, Pace, Workers
from headrace.replication.log_directories import LogDirectories
from headrace.replication.log_settings import cleaner_settings, producer_state_settings
from headrace.replication.moves import UNLIMITED
from headrace.replication.replicas import Replicas
from headrace.replication.scrubbing import Scrubber, ScrubSettings

LOGGER: Final = getLogger(__name__)
DELETION_CHECK_MS: Final = 1_000
ROLLED_CHECK_MS: Final = 1_000
TOPIC_IDS_CHECK_MS: Final = 200
LOGS_PER_TURN: Final = 16


@dataclass(slots=True, frozen=True)
class PeriodicTask:
    """One line of the schedule. `interval_ms` is asked anew each time; the first run is after `delay_ms`."""

    name: str
    interval_ms: Callable[[], int]
    run: Callable[[int], Awaitable[object]]
    delay_ms: Callable[[], int]


class Housekeeping:
    """The tasks of one node. `config` gives its configuration as it is now."""

    __slots__ = ("_clock", "_config", "_replicas", "_scrub_settings", "cleaner", "scrubber")

    def __init__(
        self,
        replicas: Replicas,
        config: Callable[[], NodeConfig],
        clock: Clock,
        disk: Disk,
        workers: Workers,
        open_disk: Callable[[], Disk],
        open_pace: Callable[[], Pace],
    ) -> None:
        self._replicas = replicas
        self._config = config
        self._clock = clock
        self.cleaner: CleanerManager | None = None
        if config().flag("log.cleaner.enable"):
            self.cleaner = CleanerManager(
                disk,
                workers,
                replicas.logs,
                _readable(replicas.directories),
                cleaner_settings(config()),
                open_disk,
                open_pace,
            )
            replicas.cleaner = self.cleaner
        own = headrace_settings(config())
        self._scrub_settings = ScrubSettings(own.scrub_hours, own.scrub_bytes_per_second)
        self.scrubber: Scrubber | None = None
        if own.scrub_hours:
            self.scrubber = Scrubber(replicas.logs, workers, open_disk, self._scrub_settings)
        self.reconfigure()

    def schedule(self) -> list[PeriodicTask]:
        """Everything there is to do, and how often."""
        at_first = self._from_config("log.initial.task.delay.ms")
        rows: list[tuple[str, Callable[[], int], Callable[[int], Awaitable[object]]]] = [
            ("log retention", self._from_config("log.retention.check.interval.ms"), self.apply_retention),
            ("log flush", self._from_config("log.flush.scheduler.interval.ms"), self.flush),
            ("flush of rolled segments", lambda: ROLLED_CHECK_MS, self.flush_rolled),
            ("file deletion", lambda: DELETION_CHECK_MS, self.delete_files),
            (
                "recovery point checkpoint",
                self._from_config("log.flush.offset.checkpoint.interval.ms"),
                self.write_recovery_points,
            ),
            (
                "log start offset checkpoint",
                self._from_config("log.flush.start.offset.checkpoint.interval.ms"),
                self.write_log_starts,
            ),
            (
                "high watermark checkpoint",
                self._from_config("replica.high.watermark.checkpoint.interval.ms"),
                self.write_high_watermarks,
            ),
            (
                "producer expiration",
                self._from_config("producer.id.expiration.check.interval.ms"),
                self.expire_producers,
            ),
        ]
        tasks = [PeriodicTask(name, interval, run, at_first) for name, interval, run in rows]
        tasks.append(_soon_and_often("topic ids of new logs", TOPIC_IDS_CHECK_MS, self.write_topic_ids))
        if self.cleaner is not None:
            backoff = self._from_config("log.cleaner.backoff.ms")
            tasks.append(PeriodicTask("compaction", backoff, self.compact, backoff))
        if self.scrubber is not None:
            round_ms = self._scrub_settings.round_ms
            tasks.append(PeriodicTask("log scrub", lambda: round_ms, self.scrub, lambda: round_ms))
        return tasks

    def _from_config(self, key: str) -> Callable[[], int]:
        return lambda: self._config().integer(key)

    def reconfigure(self) -> None:
        """Take over changed bounds of compaction, of moves between directories, and of what is remembered
        about producers."""
        producers, changed = self._replicas.producer_settings, producer_state_settings(self._config())
        producers.producer_id_expiration_ms = changed.producer_id_expiration_ms
        producers.transaction_verification_enabled = changed.transaction_verification_enabled
        # This key can only be set at run time, so it has no value of its own in a node's configuration.
        rate = self._config().texts.get("replica.alter.log.dirs.io.max.bytes.per.second")
        self._replicas.moves.bytes_per_second = UNLIMITED if rate is None else int(rate)
        if self.cleaner is not None:
            self.cleaner.settings = cleaner_settings(self._config())

    # The tasks

    async def apply_retention(self, now_ms: int) -> int:
        """Delete old segments, but not of compacted logs, which the cleaner sees to; returns how many."""
        removed = 0
        async for log in self._logs():
            if self.cleaner is not None and log.settings.cleanup_compact:
                continue
            start = log.log_start_offset
            try:
                removed += log.delete_old_segments(now_ms)
            except LogDirectoryOffline as error:
                LOGGER.debug("passed over %s: %s", log.partition, error)
                continue
            if log.log_start_offset != start:
                partition = self._replicas.get(*log.partition)
                if partition is not None:
                    partition.notify()
        return removed

    async def flush(self, now_ms: int) -> None:
        """Sync the logs whose `flush.ms` has passed."""
        await self._in_each(lambda directory: directory.flush_due(now_ms))

    async def flush_rolled(self, now_ms: int) -> None:
        """Sync segments that are full."""
        await self._in_each(lambda directory: directory.flush_rolled(now_ms))

    async def write_topic_ids(self, now_ms: int) -> None:
        """Write which topics new logs belong to."""
        await self._in_each(lambda directory: directory.write_topic_ids())

    async def delete_files(self, now_ms: int) -> None:
        """Unlink what was deleted long enough ago."""
        await self._in_each(lambda directory: directory.delete_due(now_ms))

    async def write_recovery_points(self, now_ms: int) -> None:
        """Checkpoint from where on a crash would need recovery."""
        await self._in_each(lambda directory: directory.write_recovery_points())

    async def write_log_starts(self, now_ms: int) -> None:
        """Checkpoint where logs begin."""
        await self._in_each(lambda directory: directory.write_log_starts())

    async def write_high_watermarks(self, now_ms: int) -> None:
        """Checkpoint what is replicated."""
        await self._in_each(lambda directory: directory.write_high_watermarks())

    async def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been silent for long."""
        async for log in self._logs():
            log.expire_producers(now_ms)

    async def compact(self, now_ms: int) -> None:
        """Compact as long as there is something worth it; as many logs at once as there are threads."""
        cleaner = self.cleaner
        if cleaner is None:
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(cleaner.settings.threads):
                group.create_task(self._compact_all(cleaner, now_ms))

    async def scrub(self, now_ms: int) -> None:
        """Read a share of what is on disk again, to find bits that have flipped."""
        if self.scrubber is not None:
            await self.scrubber.run_round()

    async def _compact_all(self, cleaner: CleanerManager, now_ms: int) -> None:
        while await cleaner.clean_once(now_ms):
            # A round may have taken long.
            now_ms = self._clock.now_ms()

    # Going through logs and directories

    async def _logs(self) -> AsyncIterator[PartitionLog]:
        """Every log that is online, a few per turn of the loop."""
        seen = 0
        for directory in self._replicas.directories:
            for log in list(directory):
                if directory.health.failure is not None:
                    break
                if log.partition not in directory.logs and log.partition not in directory.future_logs:
                    continue
                yield log
                seen += 1
                if seen % LOGS_PER_TURN == 0:
                    await asyncio.sleep(0)

    async def _in_each(self, run: Callable[[LogDirectory], Awaitable[object]]) -> None:
        """Do something in every directory; one that fails is taken out of use, and the others go on."""
        for directory in self._replicas.directories:
            try:
                await run(directory)
            except LogDirectoryOffline as error:
                LOGGER.debug("passed over %s: %s", directory.path, error)


def _soon_and_often(name: str, interval_ms: int, run: Callable[[int], Awaitable[object]]) -> PeriodicTask:
    return PeriodicTask(name, lambda: interval_ms, run, lambda: interval_ms)


def _readable(directories: LogDirectories) -> list[str]:
    """The paths of directories whose checkpoint of compaction can be read; the others go offline."""
    for directory in directories:
        try:
            read_offsets(directory.disk, f"{directory.path}/{CLEANER_OFFSET}")
        except OSError as error:
            directory.health.fail("reading the cleaner's checkpoint", error)
    return list(directories.online)
