"""Moves of partitions between the log directories of this node.

A future log in the target directory is filled from the present one, a bounded slice per turn of the loop,
while the partition goes on working. Once it has everything it is made durable, gets what came in meanwhile,
and takes the present log's place in one step."""

import asyncio
from collections.abc import Iterable
from logging import getLogger
from typing import TYPE_CHECKING, Final

from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_directory import LogDirectory
from headrace.log.log_errors import LogDirectoryOffline, OffsetOutOfRange, UnexpectedAppendOffset
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.ports import Clock
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.background import Background
from headrace.replication.log_directories import directory_path
from headrace.replication.partition import Partition
from headrace.types import TopicPartition

if TYPE_CHECKING:
    from headrace.replication.replicas import Replicas

LOGGER: Final = getLogger(__name__)
SLICE_BYTES: Final = 1024 * 1024
NAME_LENGTH_MAX: Final = 255
UNLIMITED: Final = 2**63 - 1
PAUSED_SECONDS: Final = 1.0
_FUTURE_SUFFIX_LENGTH: Final = len(".") + 32 + len("-future")


class Moves:
    """The moves under way, by partition."""

    __slots__ = ("_clock", "_paid_until", "_replicas", "_tasks", "background", "bytes_per_second")

    def __init__(self, replicas: "Replicas", clock: Clock, background: Background) -> None:
        self.bytes_per_second = UNLIMITED
        self._paid_until = 0.0
        self._replicas = replicas
        self._clock = clock
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self.background = background

    def __len__(self) -> int:
        return len(self._tasks)

    # What an administrator asks for

    def request(self, name: TopicPartition, path: str, now_ms: int) -> None:
        """Move a partition, or call off a move by naming its present directory."""
        directories = self._replicas.directories
        if len(str(name)) + _FUTURE_SUFFIX_LENGTH > NAME_LENGTH_MAX:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        directories.require_known(path)
        if path not in directories.online:
            raise LogDirectoryOffline(f"Log directory {path} is offline")
        if path in directories.cordoned:
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Log directory {path} is cordoned")
        hosted = self._replicas.get(*name)
        if hosted is not None:
            if hosted.is_offline:
                raise LogDirectoryOffline(f"Partition {name} is offline")
            if hosted.future_log is not None and directory_path(hosted.future_log) != path:
                self.abandon(hosted, now_ms)
        if hosted is None or path not in _homes(hosted):
            # A partition that comes later is made there.
            directories.prefer(name, path)
        self._begin(self._replicas.find(*name), directories.online[path], now_ms)

    def _begin(self, partition: Partition, target: LogDirectory, now_ms: int) -> None:
        log = partition.log
        if log is None:
            message = f"Log for partition {partition.name} is not available"
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
        if directory_path(log) == target.path or partition.future_log is not None:
            return
        offline = self._replicas.directories.offline
        if offline:
            raise LogDirectoryOffline(
                f"{partition.name} is not moved while log directories are offline: {', '.join(offline)}"
            )
        partition.future_log = target.create(
            partition.name, now_ms, topic_id=partition.topic_id, is_future=True
        )
        self._replicas.directories.preferred.pop(partition.name, None)
        self._start(partition)

    # Moves that a restart has interrupted

    def finish_abandoned(self, assignments: Iterable[PartitionAssignment], now_ms: int) -> None:
        """Promote future logs that the controller takes for the present ones already."""
        directories = self._replicas.directories
        for assignment in assignments:
            target = directories.future_directory_with(assignment.partition)
            if target is None or directories.id_of(target.path) != assignment.directory:
                continue
            source = directories.directory_with(assignment.partition)
            if source is not None:
                source.retire(assignment.partition, now_ms)
            target.promote_future(assignment.partition, now_ms)
            LOGGER.info("finished the interrupted move of %s to %s", assignment.partition, target.path)

    def resume(self, partition: Partition) -> None:
        """Go on with a move if the partition has a future log from before a restart."""
        if partition.future_log is None and partition.log is not None:
            target = self._replicas.directories.future_directory_with(partition.name)
            if target is not None:
                partition.future_log = target.future_logs[partition.name]
                self._start(partition)

    # Ending early

    def abandon(self, partition: Partition, now_ms: int) -> None:
        """Call a move off and remove what it has written."""
        self.forget(partition)
        target = self._replicas.directories.future_directory_with(partition.name)
        if target is not None:
            target.retire(partition.name, now_ms, is_future=True)

    def forget(self, partition: Partition) -> None:
        """Stop a move and touch nothing on disk."""
        partition.future_log = None
        task = self._tasks.pop(partition, None)
        if task is not None:
            task.cancel()

    # The work

    def _start(self, partition: Partition) -> None:
        what = f"moving {partition.name} to another log directory"
        task = self.background.start(self._run(partition), what)
        self._tasks[partition] = task
        task.add_done_callback(lambda ended: self._on_ended(partition, ended))

    def _on_ended(self, partition: Partition, ended: asyncio.Task[None]) -> None:
        """A move that was called off ends a little later, when another may have taken its place."""
        if self._tasks.get(partition) is ended:
            del self._tasks[partition]

    async def _run(self, partition: Partition) -> None:
        cleaner = self._replicas.cleaner
        if cleaner is not None:
            await cleaner.pause(partition.name)
        try:
            is_done = False
            while not is_done:
                is_done = await self._advance(partition)
                await asyncio.sleep(0)
        finally:
            if cleaner is not None:
                cleaner.resume(partition.name)

    async def _advance(self, partition: Partition) -> bool:
        """One step; True once there is nothing more to do."""
        source, future = partition.log, partition.future_log
        if source is None or future is None:
            return True
        if self.bytes_per_second == 0:
            await asyncio.sleep(PAUSED_SECONDS)
            return False
        now_ms = self._clock.now_ms()
        copied = copy_slice(source, future, partition.leader_epoch, now_ms)
        if partition.waits:
            # Somebody may wait for the log's start to move in both logs.
            partition.notify()
        if copied:
            await self._pay_for(copied)
            return False
        await future.flush(now_ms)
        # Whatever was appended during the sync is as durable in either place.
        if partition.log is not source or partition.future_log is not future:
            return True
        now_ms = self._clock.now_ms()
        copy_slice(source, future, partition.leader_epoch, now_ms)
        if future.log_end_offset != source.log_end_offset:
            return False
        await self._swap(partition, source, future, now_ms)
        return True

    async def _pay_for(self, size: int) -> None:
        """Wait until all moves together are within their bytes per second."""
        if self.bytes_per_second == UNLIMITED:
            return
        now = asyncio.get_running_loop().time()
        self._paid_until = max(now, self._paid_until) + size / self.bytes_per_second
        await asyncio.sleep(self._paid_until - now)

    async def _swap(
        self, partition: Partition, source: PartitionLog, future: PartitionLog, now_ms: int
    ) -> None:
        directories = self._replicas.directories
        source_path, target_path = directory_path(source), directory_path(future)
        take_over_epochs(source, future)
        log = directories.online[target_path].promote_future(partition.name, now_ms)
        log.update_high_watermark(source.high_watermark)
        partition.move_to(log)
        self._replicas.logs[partition.name] = log
        directories.online[source_path].retire(partition.name, now_ms)
        self._replicas.report_home(partition, target_path)
        LOGGER.info("moved %s from %s to %s", partition.name, source_path, target_path)
        if self._replicas.cleaner is not None:
            await self._replicas.cleaner.on_moved(partition.name, source_path, target_path)

    async def stop(self) -> None:
        """Leave all moves as they are; they go on after a restart."""
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def copy_slice(source: PartitionLog, future: PartitionLog, leader_epoch: int, now_ms: int) -> int:
    """Copy what one turn of the loop may take; returns how many bytes, 0 if there was nothing to do."""
    if future.log_end_offset > source.log_end_offset:
        future.truncate_to(source.log_end_offset, now_ms)
    try:
        found = source.read(future.log_end_offset, SLICE_BYTES, Isolation.LOG_END)
    except OffsetOutOfRange:
        future.truncate_fully(source.log_start_offset, now_ms)
        return 1
    copied = 0
    if found.records is not None:
        copied = _append(future, found.records.read(), leader_epoch, now_ms)
    future.update_high_watermark(source.high_watermark)
    start = min(source.log_start_offset, future.high_watermark)
    if start > future.log_start_offset:
        future.advance_log_start(start)
    return copied


def _append(future: PartitionLog, records: bytes, leader_epoch: int, now_ms: int) -> int:
    """The log may start in the middle of a batch; the copy has to begin with all of it."""
    try:
        return future.append_as_follower(records, leader_epoch, now_ms).size
    except UnexpectedAppendOffset as unexpected:
        if future.size or not unexpected.first_offset < future.log_end_offset <= unexpected.last_offset:
            raise
        future.truncate_fully(unexpected.first_offset, now_ms)
        return future.append_as_follower(records, leader_epoch, now_ms).size


def take_over_epochs(source: PartitionLog, future: PartitionLog) -> None:
    """Epochs in which nothing was written yet are known to the present log alone."""
    try:
        future.epochs.assign_all(
            entry for entry in source.epochs.entries if entry.epoch > future.epochs.latest_epoch
        )
    except OSError as error:
        raise future.health.fail(f"noting the leader epochs of {future.partition}", error) from error


def _homes(partition: Partition) -> set[str]:
    return {directory_path(log) for log in (partition.log, partition.future_log) if log is not None}
