"""The partitions that this node hosts, kept as the metadata says.

Whoever follows the metadata calls `assign`, `drop` and `reconfigure`; requests ask `find`. A log directory
that fails takes its partitions offline, and with the last one the node has nothing left to do."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from logging import getLogger
from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.log.cleaner_manager import CleanerManager
from headrace.log.log_directory import DirectoryPorts, DirectorySettings
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.partition_log import PartitionLog
from headrace.log.settings import LogSettings, ProducerStateSettings
from headrace.ports import Clock
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.background import Background
from headrace.replication.cluster_view import ClusterView
from headrace.replication.hosted_topic import HostedTopic
from headrace.replication.log_directories import DirectoryPlan, LogDirectories, directory_path
from headrace.replication.log_settings import topic_settings
from headrace.replication.moves import Moves
from headrace.replication.partition import Partition
from headrace.replication.replica_events import ReplicaEvents
from headrace.replication.turns import Turns
from headrace.types import TopicId, TopicPartition

LOGGER: Final = getLogger(__name__)


class Replicas:
    """All hosted partitions. Make one, `open` it, then hand it every assignment of the metadata."""

    __slots__ = (
        "_clock",
        "_events",
        "_later",
        "_leaving",
        "_turns",
        "_watchers",
        "background",
        "cleaner",
        "cluster",
        "directories",
        "logs",
        "moves",
        "node_id",
        "producer_settings",
        "topics",
        "topics_by_id",
    )

    def __init__(
        self,
        node_id: int,
        cluster: ClusterView,
        plan: DirectoryPlan,
        ports: DirectoryPorts,
        events: ReplicaEvents,
        clock: Clock,
        *,
        producer_settings: ProducerStateSettings | None = None,
        recoveries_at_once: int = 2,
        max_transaction_timeout_ms: int = 900_000,
    ) -> None:
        self.node_id = node_id
        self.cluster = cluster
        self.topics: dict[str, HostedTopic] = {}
        self.topics_by_id: dict[TopicId, HostedTopic] = {}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.cleaner: CleanerManager | None = None
        self.background = Background()
        self.producer_settings = producer_settings or ProducerStateSettings()
        self._events = events
        self._clock = clock
        self._later: dict[TopicId, dict[int, PartitionAssignment]] = {}
        self._leaving: dict[str, dict[int, Partition]] = {}
        self._turns = Turns(clock, self._has_more, self._next_step)
        self._watchers: dict[str, Callable[[Partition], None]] = {}
        settings = DirectorySettings(
            self._log_settings_of,
            self.producer_settings,
            recoveries_at_once,
            max_transaction_timeout_ms,
        )
        self.directories = LogDirectories(plan, ports, settings, self._on_directory_failed)
        self.moves = Moves(self, clock, self.background)

    def _log_settings_of(self, topic: str) -> LogSettings:
        return topic_settings(self.cluster.topic_config(topic)).log

    # Opening and closing

    async def open(self, assignments: Iterable[PartitionAssignment], now_ms: int) -> None:
        """Load the log directories, put strays aside, and take over every partition assigned to this node."""
        own = {each.partition: each for each in assignments if self.node_id in each.replicas}
        await self.directories.open(now_ms)
        self.directories.set_strays_aside(lambda log: _is_stray(log, own), now_ms)
        self.moves.finish_abandoned(own.values(), now_ms)
        self.directories.require_one_home()
        for number, assignment in enumerate(own.values()):
            self._assign(assignment, now_ms)
            if number % 64 == 63:
                await asyncio.sleep(0)
        self._require_a_directory()

    async def close(self, now_ms: int, broker_epoch: int = -1) -> None:
        """Stop cleanly; a directory that fails at it does not keep the others from it."""
        self._later.clear()
        while self._leaving:
            self._leave_next(now_ms)
        await self.moves.stop()
        await self.background.wait()
        for partition in self.partitions():
            partition.release_waiting()
        for directory in self.directories:
            try:
                await directory.close(now_ms, broker_epoch)
            except LogDirectoryOffline as error:
                LOGGER.error("%s was not closed: %s", directory.path, error.message)

    # Asking

    def watch(self, topic: str, watcher: Callable[[Partition], None]) -> None:
        """Be told of every partition of a topic whose leader may have changed, or that is gone."""
        self._watchers[topic] = watcher

    def _tell(self, partition: Partition) -> None:
        watcher = self._watchers.get(partition.name.topic)
        if watcher is not None:
            watcher(partition)

    def partitions(self) -> Iterator[Partition]:
        """Every hosted partition, offline ones included."""
        for topic in tuple(self.topics.values()):
            yield from tuple(topic.partitions.values())

    def get(self, topic: str, index: int) -> Partition | None:
        """A hosted partition, also one that is offline."""
        hosted = self.topics.get(topic)
        return None if hosted is None else hosted.partitions.get(index)

    def find(self, topic: str, index: int) -> Partition:
        """A partition to work with; a `KafkaError` says why there is none."""
        hosted = self.topics.get(topic)
        partition = None if hosted is None else hosted.partitions.get(index)
        if partition is None:
            raise KafkaError(self.absence(topic, index), f"{topic}-{index} is not on this broker")
        partition.require_online()
        return partition

    def absence(self, topic: str, index: int) -> ErrorCode:
        """What to tell somebody who asks for a partition that is not here."""
        if self.cluster.has_partition(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # Following the metadata

    def assign(self, assignment: PartitionAssignment, now_ms: int) -> None:
        """Host a partition, or take over what has changed about it.

        Of many new ones only some are made in one turn of the loop, the others in the turns that follow;
        until then they are among those that this node does not lead yet."""
        index = assignment.partition.partition
        if self.node_id not in assignment.replicas:
            self.drop(assignment.partition, assignment.topic_id, now_ms)
            return
        topic = self.topics_by_id.get(assignment.topic_id)
        if topic is not None and index in topic.partitions:
            self._assign(assignment, now_ms)
            return
        if self._turns.take():
            self._cross_off(assignment.topic_id, index)
            self._assign(assignment, now_ms)
        else:
            self._later.setdefault(assignment.topic_id, {})[index] = assignment

    def _has_more(self) -> bool:
        return bool(self._leaving or self._later)

    def _next_step(self) -> None:
        """Do some of what did not fit into an earlier turn: deletions first, whose names may be wanted."""
        now_ms = self._clock.now_ms()
        if not self._leave_next(now_ms) and self._later:
            topic_id = next(iter(self._later))
            waiting = self._later.pop(topic_id)
            assignment = waiting.pop(next(iter(waiting)))
            if waiting:
                # Topics take turns, so that a small one does not wait for a large one.
                self._later[topic_id] = waiting
            self._assign(assignment, now_ms)

    def _cross_off(self, topic_id: TopicId, index: int) -> None:
        """Do not make a partition later as it was to be made."""
        waiting = self._later.get(topic_id)
        if waiting is not None:
            waiting.pop(index, None)
            if not waiting:
                del self._later[topic_id]

    def _assign(self, assignment: PartitionAssignment, now_ms: int) -> None:
        name, index = assignment.partition
        topic = self._topic(name, assignment.topic_id, now_ms)
        partition = topic.partitions.get(index)
        if partition is None:
            partition = Partition(assignment.partition, topic.topic_id, self.node_id, topic.counters)
            partition.set_min_insync_replicas(topic.settings.min_insync_replicas)
            topic.partitions[index] = partition
        elif partition.is_offline:
            return
        try:
            log = partition.log or self._open_log(assignment, now_ms)
            partition.apply(assignment, log, now_ms)
        except KafkaError as error:
            # One partition that can't be hosted must not keep the others from being hosted.
            LOGGER.error("%s is offline: %s", assignment.partition, error.message)
            partition.go_offline()
            self._tell(partition)
            return
        self._tell(partition)
        path = directory_path(log)
        if self.directories.id_of(path) != assignment.directory:
            self.report_home(partition, path)
        self.moves.resume(partition)

    def _topic(self, name: str, topic_id: TopicId, now_ms: int) -> HostedTopic:
        topic = self.topics.get(name)
        if topic is not None and topic.topic_id != topic_id:
            # The deletion of the old topic was not seen by itself.
            self.delete_topic(topic.topic_id, now_ms)
            topic = None
        if topic is None:
            topic = HostedTopic(name, topic_id, topic_settings(self.cluster.topic_config(name)))
            self.topics[name] = self.topics_by_id[topic_id] = topic
        return topic

    def _open_log(self, assignment: PartitionAssignment, now_ms: int) -> PartitionLog:
        partition = assignment.partition
        former = self._leaving.get(partition.topic, {}).pop(partition.partition, None)
        if former is not None:
            self._retire(former, now_ms)
        log = self.directories.get_or_create(partition, assignment.topic_id, assignment.directory, now_ms)
        self.logs[partition] = log
        return log

    def report_home(self, partition: Partition, path: str) -> None:
        """Tell the controller which directory a partition lies in."""
        self._events.on_assigned(partition.topic_id, partition.name.partition, self.directories.id_of(path))

    def drop(self, partition: TopicPartition, topic_id: TopicId, now_ms: int) -> None:
        """Stop hosting a partition; its directory is renamed at once and removed later."""
        self._cross_off(topic_id, partition.partition)
        topic = self.topics_by_id.get(topic_id)
        hosted = None if topic is None else topic.partitions.pop(partition.partition, None)
        if topic is None or hosted is None:
            return
        if not topic.partitions:
            self._forget_topic(topic)
        self._retire(hosted, now_ms)

    def _forget_topic(self, topic: HostedTopic) -> None:
        del self.topics_by_id[topic.topic_id]
        if self.topics.get(topic.name) is topic:
            del self.topics[topic.name]

    def _retire(self, hosted: Partition, now_ms: int) -> None:
        partition = hosted.name
        if self.logs.get(partition) is hosted.log:
            self.logs.pop(partition, None)
        directory = self.directories.directory_with(partition)
        try:
            self.moves.abandon(hosted, now_ms)
            if directory is not None and not hosted.is_offline:
                directory.retire(partition, now_ms)
                self._forget_compaction(directory.path, partition)
        except (LogDirectoryOffline, OSError) as error:
            # Somebody may have removed files by hand; what is left goes after the next start.
            LOGGER.error("%s could not be deleted: %s", partition, error)
        hosted.delete()
        self._tell(hosted)

    def _forget_compaction(self, path: str, partition: TopicPartition) -> None:
        """A round under way notices by itself that its log is gone; this is about the checkpoint."""
        if self.cleaner is not None:
            self.background.start(self.cleaner.on_deleted(path, partition), f"forgetting {partition}")

    def delete_topic(self, topic_id: TopicId, now_ms: int) -> None:
        """Stop hosting every partition of a topic. Nobody finds them from now on; their directories are
        renamed over the next turns of the loop, and before a partition of the same name is made."""
        self._later.pop(topic_id, None)
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            return
        self._forget_topic(topic)
        self._leaving.setdefault(topic.name, {}).update(topic.partitions)
        while self._leaving and self._turns.take():
            self._leave_next(now_ms)

    def _leave_next(self, now_ms: int) -> bool:
        """Let go of one partition of a deleted topic; False if there is none."""
        while self._leaving:
            name, partitions = next(iter(self._leaving.items()))
            hosted = partitions.popitem()[1] if partitions else None
            if not partitions:
                del self._leaving[name]
            if hosted is not None:
                self._retire(hosted, now_ms)
                return True
        return False

    def reconfigure(self, name: str) -> None:
        """Take over the changed configuration of a topic."""
        topic = self.topics.get(name)
        if topic is None:
            return
        topic.settings = topic_settings(self.cluster.topic_config(name))
        for partition in topic.partitions.values():
            partition.set_min_insync_replicas(topic.settings.min_insync_replicas)
            for log in (partition.log, partition.future_log):
                if log is not None:
                    was_compacted = log.settings.cleanup_compact
                    log.update_settings(topic.settings.log)
                    if was_compacted and not topic.settings.log.cleanup_compact and self.cleaner is not None:
                        self.background.start(self.cleaner.abort(partition.name), "ending compaction")

    def reconfigure_all(self) -> None:
        """Take over changed defaults of the broker."""
        for name in tuple(self.topics):
            self.reconfigure(name)

    # Failing directories

    def _on_directory_failed(self, path: str) -> None:
        """May be called from within any operation on a log, so files are closed a little later."""
        if self.cleaner is not None:
            self.cleaner.on_directory_failed(path)
        leaving = (partition for topic in self._leaving.values() for partition in topic.values())
        for partition in (*self.partitions(), *leaving):
            log, future = partition.log, partition.future_log
            if future is not None and directory_path(future) == path:
                self.moves.forget(partition)
            if log is not None and directory_path(log) == path:
                self.moves.forget(partition)
                partition.go_offline()
                self._tell(partition)
                self.logs.pop(partition.name, None)
                asyncio.get_running_loop().call_soon(log.close_files)
        self._events.on_directory_failed(path, self.directories.id_of(path))
        self._require_a_directory()

    def _require_a_directory(self) -> None:
        if not self.directories.online:
            self._events.on_fatal("all log directories are offline: " + ", ".join(self.directories.offline))


def _is_stray(log: PartitionLog, own: dict[TopicPartition, PartitionAssignment]) -> bool:
    """Another topic id is that of another topic of this name. An empty log without one was being made when
    the node ended, and may go on to be made."""
    assignment = own.get(log.partition)
    if assignment is None:
        return True
    return log.topic_id != assignment.topic_id and not (log.topic_id is None and log.was_never_written)
