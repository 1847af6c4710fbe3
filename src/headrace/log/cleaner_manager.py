"""Decides which log is compacted next, has a worker do it, and puts the result in place.

Everything here runs on the event loop and only waits for workers and syncs. Whoever is about to truncate,
delete or move a log pauses its compaction first and resumes it afterwards."""

import asyncio
import errno
from collections.abc import Callable, Iterable, Mapping
from logging import getLogger
from typing import Final

from headrace.errors import HeadraceError, WorkersClosed
from headrace.log.cleaner import clean
from headrace.log.cleaner_checkpoints import CleanerCheckpoints
from headrace.log.cleaner_choice import LogToClean, examine, plan_of
from headrace.log.cleaner_plan import CleanPlan, CleanResult, CleanStats
from headrace.log.cleaner_states import Cleaning, CleaningStates, Phase
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import CleanerSettings
from headrace.log.swap import discard_cleaned
from headrace.ports import Disk, Pace, Workers
from headrace.types import TopicPartition

LOGGER: Final = getLogger(__name__)
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class CleanerManager:
    """Compaction of all logs of a broker. `logs` may change at any time; every round looks at it anew.

    `open_disk` and `open_pace` travel to the worker: classes in production, any callable with inline workers.
    The public attributes are for metrics."""

    def __init__(
        self,
        disk: Disk,
        workers: Workers,
        logs: Mapping[TopicPartition, PartitionLog],
        directories: Iterable[str],
        settings: CleanerSettings,
        open_disk: Callable[[], Disk],
        open_pace: Callable[[], Pace],
    ) -> None:
        self.settings = settings
        self.last_stats: CleanStats | None = None
        self.last_choice_ms: int | None = None
        self.max_dirty_ratio = 0.0
        self.max_compaction_delay_ms = 0
        self.uncleanable: dict[str, set[TopicPartition]] = {}
        self._disk = disk
        self._workers = workers
        self._logs = logs
        self._states = CleaningStates()
        self._checkpoints = CleanerCheckpoints(disk, directories, logs)
        self._open_disk = open_disk
        self._open_pace = open_pace

    # Rounds

    async def clean_once(self, now_ms: int) -> bool:
        """Compact the dirtiest log that is due, then apply retention to all compacted logs.

        Returns false if none was due or it could not be compacted: wait for `backoff_ms` before the next
        round. Several rounds may run at once, each on a log of its own."""
        candidates = self._examine(now_ms)
        due = [each for each in candidates if each.is_due]
        chosen = max(due, key=lambda each: each.dirty_ratio, default=None)
        state = self._states.begin(chosen.log.partition) if chosen is not None else None
        try:
            await self._correct_checkpoints(candidates)
            cleaned = chosen is not None and state is not None and await self._clean(chosen, state, now_ms)
        finally:
            if chosen is not None:
                self._states.end(chosen.log.partition)
        self._delete_old_segments(now_ms)
        self._forget_deleted()
        return cleaned

    def _examine(self, now_ms: int) -> list[LogToClean]:
        """Every log that could be compacted, with how dirty it is."""
        candidates = []
        for partition, log in list(self._logs.items()):
            if self._is_free(partition, log):
                try:
                    checkpoint = self._checkpoints.get(directory_of(log), partition)
                    candidates.append(examine(log, checkpoint, now_ms))
                except OSError as error:
                    log.health.fail(f"looking for what to compact of {partition}", error)
                except HeadraceError as error:
                    self._mark_uncleanable(log, error)
        self.last_choice_ms = now_ms
        self.max_dirty_ratio = max((each.dirty_ratio for each in candidates), default=0.0)
        self.max_compaction_delay_ms = max((each.delay_ms for each in candidates), default=0)
        return candidates

    async def _correct_checkpoints(self, candidates: list[LogToClean]) -> None:
        """Let checkpoints that contradict their log say where compaction really goes on."""
        for candidate in candidates:
            log, (offset, correction) = candidate.log, candidate.first_dirty
            if correction is None:
                continue
            if not log.settings.cleanup_delete:
                LOGGER.warning("%s is compacted from offset %d: %s", log.partition, offset, correction)
            try:
                await self._checkpoints.put(directory_of(log), log.partition, offset)
            except OSError as error:
                log.health.fail("writing the cleaner's checkpoint", error)

    async def _clean(self, candidate: LogToClean, state: Cleaning, now_ms: int) -> bool:
        """Compact a log that was taken into work; returns whether that went well."""
        log = candidate.log
        try:
            result = await self._run(plan_of(candidate, self.settings, now_ms), log, state, now_ms)
            if result is None:
                return False
            await self._checkpoints.put(directory_of(log), log.partition, result.next_dirty_offset)
        except (LogDirectoryOffline, WorkersClosed):
            # Whoever took the directory offline has said why; and workers are stopped with the broker.
            return False
        except OSError as error:
            self._on_medium_failure(log, error)
            return False
        except Exception as error:  # noqa: BLE001 - a log that can't be compacted must not stop the others
            self._mark_uncleanable(log, error)
            return False
        self.last_stats = result.stats
        self._report(candidate, result)
        return True

    async def _run(
        self, plan: CleanPlan, log: PartitionLog, state: Cleaning, now_ms: int
    ) -> CleanResult | None:
        """Have a worker clean, and swap the result in; None if it was told to stop, or the log has changed so
        that the result is about something else."""
        truncations = log.truncations

        def is_stale(bases: Iterable[int]) -> bool:
            return (
                self._logs.get(log.partition) is not log
                or log.directory != plan.directory
                or log.truncations != truncations
                or any(base not in log.segments for base in bases)
            )

        try:
            result = await self._in_worker(plan, state)
            for group in result.groups if result is not None else ():
                if state.is_aborting or is_stale(group.replaces):
                    return None
                log.replace_segments(group.base_offset, group.replaces, now_ms)
                # Each swap syncs a directory; others get their turn in between.
                await asyncio.sleep(0)
            return result
        except (OSError, HeadraceError):
            # Files should not be taken away from under a worker, but that alone is no failure of the medium.
            if is_stale(segment.base_offset for segment in plan.segments):
                return None
            raise
        finally:
            await self._discard(log.directory)

    async def _in_worker(self, plan: CleanPlan, state: Cleaning) -> CleanResult | None:
        if state.is_aborting:
            return None
        job = asyncio.ensure_future(self._workers.run(clean, self._open_disk, self._open_pace, plan))
        state.job = job
        try:
            await asyncio.wait({job})
        finally:
            state.job = None
            # Does nothing to a job that is done. One that is not is killed before its files are removed.
            job.cancel()
            await asyncio.wait({job})
        if job.cancelled():
            return None
        error = job.exception()
        if state.is_aborting:
            return None
        if error is not None:
            raise error
        return job.result()

    async def _discard(self, directory: str) -> None:
        """Remove what a round has left that did not get to its end."""
        try:
            await self._disk.off_loop(lambda: discard_cleaned(self._disk, directory))
        except FileNotFoundError:
            # The partition was deleted, and what the round had written with it.
            return

    # Retention

    def _delete_old_segments(self, now_ms: int) -> None:
        """Apply retention to compacted logs here, where it can't meet their compaction. Those without the
        delete policy may have segments that lie before their start."""
        for partition, log in list(self._logs.items()):
            if self._is_free(partition, log):
                try:
                    log.delete_old_segments(now_ms)
                except LogDirectoryOffline:
                    continue
                except (OSError, HeadraceError) as error:
                    self._mark_uncleanable(log, error)

    # Keeping out of the way

    async def pause(self, partition: TopicPartition) -> None:
        """Stop compaction of a partition, and begin none until `resume`; pauses add up."""
        await self._states.pause(partition)

    def resume(self, partition: TopicPartition) -> None:
        """Undo one pause."""
        self._states.resume(partition)

    async def abort(self, partition: TopicPartition) -> None:
        """Stop what is under way with a partition; it may be compacted again right after."""
        await self._states.pause(partition)
        self._states.resume(partition)

    def phase(self, partition: TopicPartition) -> Phase | None:
        """What is going on with a partition; None if nothing."""
        return self._states.phase(partition)

    # Changes to logs

    async def on_truncated(self, log: PartitionLog, offset: int) -> None:
        """What a truncated log gets from `offset` on has not been compacted."""
        await self._checkpoints.lower(directory_of(log), log.partition, offset)

    async def on_deleted(self, directory: str, partition: TopicPartition) -> None:
        """Forget a partition of a log directory."""
        await self._checkpoints.remove(directory, partition)
        self.uncleanable.get(directory, set()).discard(partition)

    async def on_moved(self, partition: TopicPartition, source: str, target: str) -> None:
        """Follow a partition to another log directory."""
        offset = self._checkpoints.get(source, partition)
        if offset is not None:
            await self._checkpoints.put(target, partition, offset)
            await self._checkpoints.remove(source, partition)
        if partition in self.uncleanable.get(source, ()):
            self.uncleanable[source].discard(partition)
            self.uncleanable.setdefault(target, set()).add(partition)

    def on_directory_failed(self, directory: str) -> None:
        """Leave a log directory alone from now on."""
        self._checkpoints.drop_directory(directory)

    def first_dirty_offset(self, log: PartitionLog) -> int | None:
        """How far a log has been compacted; None if it never was."""
        return self._checkpoints.get(directory_of(log), log.partition)

    # Inside

    def _is_free(self, partition: TopicPartition, log: PartitionLog) -> bool:
        return (
            log.settings.cleanup_compact
            and log.health.failure is None
            and partition not in self._states
            and partition not in self.uncleanable.get(directory_of(log), ())
        )

    def _forget_deleted(self) -> None:
        for directory, partitions in list(self.uncleanable.items()):
            partitions &= self._logs.keys()
            if not partitions:
                del self.uncleanable[directory]

    def _mark_uncleanable(self, log: PartitionLog, error: Exception) -> None:
        self.uncleanable.setdefault(directory_of(log), set()).add(log.partition)
        LOGGER.error(
            "compaction of %s in %s failed, and is not tried again before a restart: %s",
            log.partition,
            log.directory,
            error if isinstance(error, HeadraceError) else repr(error),
        )

    def _on_medium_failure(self, log: PartitionLog, error: OSError) -> None:
        if error.errno in NO_ROOM:
            # Nothing was promised about the files being written, so nobody is harmed; retention may help.
            LOGGER.warning("compaction of %s found no room and is put off: %s", log.partition, error)
        else:
            log.health.fail(f"compacting {log.partition}", error)

    def _report(self, candidate: LogToClean, result: CleanResult) -> None:
        stats = result.stats
        LOGGER.info(
            "compacted %s from offset %d to %d: %d bytes to %d, %d records to %d, in %d ms; the map took "
            "%d ms and was %.0f %% full",
            candidate.log.partition,
            candidate.first_dirty.offset,
            result.next_dirty_offset,
            stats.bytes_read,
            stats.bytes_written,
            stats.records_read,
            stats.records_written,
            stats.elapsed_ms,
            stats.map_ms,
            stats.map_utilisation * 100,
        )


def directory_of(log: PartitionLog) -> str:
    """The log directory that a partition's directory is in."""
    return log.directory.rpartition("/")[0]
