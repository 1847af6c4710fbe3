"""The coordinator's runtime: for one internal topic, a shard for every partition that this node leads.

It loads and unloads shards with the leadership of their partitions, has operations decided by them, writes
what they decide, and answers when that is committed. It knows nothing of groups or transactions."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from headrace.coordinator.hosted_shard import (
    NO_PRODUCER,
    HostedShard,
    Producer,
    Refuse,
    ShardSettings,
    ShardState,
    fail,
)
from headrace.coordinator.loading import Loading
from headrace.coordinator.placement import partition_for
from headrace.coordinator.refusals import not_coordinator
from headrace.coordinator.shard import Operation, Reading, Shard, ShardContext
from headrace.coordinator.timers import TimerQueue
from headrace.ports import Clock
from headrace.replication.partition import Partition
from headrace.replication.replicas import Replicas

if TYPE_CHECKING:
    from headrace.metadata.delta import MetadataDelta
    from headrace.metadata.image import MetadataImage

logger: Final = logging.getLogger("headrace.coordinator")

S = TypeVar("S", bound=Shard)
T = TypeVar("T")


class LoadCounters:
    """What loads have taken, as Kafka's metrics tell it."""

    __slots__ = ("count", "total_ms", "worst_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0
        self.worst_ms = 0

    def add(self, elapsed_ms: int) -> None:
        self.count += 1
        self.total_ms += elapsed_ms
        self.worst_ms = max(self.worst_ms, elapsed_ms)


class CoordinatorRuntime(Generic[S]):
    """All shards of one topic. `start` it when the partitions are there, and `close` it before they go."""

    __slots__ = (
        "_clock",
        "_default_partitions",
        "_image",
        "_is_closed",
        "_loads",
        "_make_shard",
        "_replicas",
        "_settings",
        "loads",
        "shards",
        "timers",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        make_shard: Callable[[ShardContext], S],
        settings: ShardSettings,
        replicas: Replicas,
        image: "MetadataImage",
        clock: Clock,
        default_partitions: int,
    ) -> None:
        self.topic = topic
        self.shards: dict[int, HostedShard[S]] = {}
        self.timers = TimerQueue(clock)
        self.loads = LoadCounters()
        self._make_shard = make_shard
        self._settings = settings
        self._replicas = replicas
        self._image = image
        self._clock = clock
        self._default_partitions = default_partitions
        self._loads: set[asyncio.Task[None]] = set()
        self._is_closed = False

    # Its life

    def start(self) -> None:
        """Serve the partitions that this node leads, now and from now on."""
        self._replicas.watch(self.topic, self.follow)
        hosted = self._replicas.topics.get(self.topic)
        for partition in [] if hosted is None else list(hosted.partitions.values()):
            self.follow(partition)

    async def close(self) -> None:
        """Stop serving: from here on, this is not the coordinator of anything."""
        self._is_closed = True
        for index in list(self.shards):
            self._unload(index)
        self.timers.close()
        for task in tuple(self._loads):
            task.cancel()
        if self._loads:
            await asyncio.wait(self._loads)

    def follow(self, partition: Partition) -> None:
        """Load or unload a shard as the leadership of its partition is now."""
        if self._is_closed:
            return
        index = partition.name.partition
        hosted = self.shards.get(index)
        leads = partition.is_leader and partition.log is not None and not partition.is_deleted
        if not leads:
            if hosted is not None and hosted.partition is partition:
                self._unload(index)
        elif hosted is None or hosted.partition is not partition or hosted.state is ShardState.FAILED:
            self._load(index, partition)
        else:
            hosted.epoch = partition.leader_epoch

    def on_new_metadata_image(self, delta: "MetadataDelta", image: "MetadataImage") -> None:
        """Tell the shards that serve; others see the image when they are loaded."""
        self._image = image
        for hosted in tuple(self.shards.values()):
            if hosted.state is ShardState.ACTIVE and hosted.shard is not None:
                hosted.shard.on_new_metadata_image(image, delta)

    # Operations

    @property
    def partitions(self) -> int:
        """How many partitions the topic has, or will have when it is created."""
        topic = self._image.topics.get(self.topic)
        return self._default_partitions if topic is None else len(topic.partitions)

    def partition_for(self, key: str) -> int:
        """The partition that has the state of a key."""
        return partition_for(key, self.partitions)

    def shard_for(self, key: str) -> S:
        """The shard that has the state of a key; a `KafkaError` says why there is none."""
        hosted = self.shards.get(self.partition_for(key))
        if hosted is None:
            raise not_coordinator()
        return hosted.active()

    def write(
        self,
        index: int,
        operation: Operation[S, T],
        *,
        refuse: Refuse[T] | None = None,
        producer: Producer = NO_PRODUCER,
        joins: bool = False,
    ) -> "asyncio.Future[T]":
        """Have a shard decide, and answer when what it decided is committed.

        With `joins`, the operation neither depends on what other such operations of the same round have
        decided nor they on it, and all are written as one batch. With a producer, its records are part of
        that producer's transaction. The future fails with what went wrong, unless `refuse` makes a reply of
        it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        hosted = self.shards.get(index)
        if hosted is None:
            fail(future, refuse, not_coordinator())
        else:
            hosted.write(operation, future, refuse, producer, joins)
        return future

    def read(
        self, index: int, reading: Reading[S, T], refuse: Refuse[T] | None = None
    ) -> "asyncio.Future[T]":
        """Ask a shard; the answer waits until everything that it may be founded on is committed."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        hosted = self.shards.get(index)
        if hosted is None:
            fail(future, refuse, not_coordinator())
        else:
            hosted.read(reading, future, refuse)
        return future

    def read_all(self, reading: Reading[S, T]) -> "list[asyncio.Future[T]]":
        """Ask every shard, also those that are being loaded: they fail, and it is told why."""
        return [self.read(index, reading) for index in list(self.shards)]

    def write_all(self, operation: Operation[S, T]) -> "list[asyncio.Future[T]]":
        """Have every shard decide."""
        return [self.write(index, operation) for index in list(self.shards)]

    def complete_transaction(
        self,
        index: int,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> "asyncio.Future[None]":
        """Write the marker that ends a producer's transaction in a partition, and have it take effect."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        hosted = self.shards.get(index)
        if hosted is None:
            future.set_exception(not_coordinator())
        else:
            hosted.complete_transaction(
                Producer(producer_id, producer_epoch),
                committed,
                coordinator_epoch,
                transaction_version,
                future,
            )
        return future

    def active_shards(self) -> Iterator[S]:
        """The shards that serve."""
        for hosted in tuple(self.shards.values()):
            if hosted.state is ShardState.ACTIVE and hosted.shard is not None:
                yield hosted.shard

    def count(self, state: ShardState) -> int:
        """How many shards are in a state."""
        return sum(hosted.state is state for hosted in self.shards.values())

    # Loading and unloading

    def _load(self, index: int, partition: Partition) -> None:
        self._unload(index)
        hosted = HostedShard[S](index, partition, self._settings, self._clock, self.timers, self._reload)
        self.shards[index] = hosted
        shard = self._make_shard(ShardContext(index, hosted.timers, self._image))
        log = partition.leader_log
        if log.log_start_offset == log.log_end_offset:
            self._activate(hosted, shard, log.log_end_offset)
            return
        task = asyncio.get_running_loop().create_task(
            self._run_load(hosted, shard), name=f"loading {partition.name}"
        )
        self._loads.add(task)
        task.add_done_callback(self._loads.discard)

    async def _run_load(self, hosted: HostedShard[S], shard: S) -> None:
        begun_ms = self._clock.monotonic_ms()
        try:
            loading = Loading(hosted.partition, self._settings.codec, shard)
            await loading.run()
        except Exception as error:
            if hosted.state is ShardState.LOADING:
                logger.error("%s could not be loaded: %s", hosted.partition.name, error, exc_info=error)
                hosted.close(ShardState.FAILED)
            return
        if hosted.state is ShardState.LOADING:
            elapsed_ms = self._clock.monotonic_ms() - begun_ms
            self.loads.add(elapsed_ms)
            logger.info(
                "%s loaded in epoch %d: %d records, %d bytes, %d ms",
                hosted.partition.name,
                hosted.epoch,
                loading.records,
                loading.size_bytes,
                elapsed_ms,
            )
            self._activate(hosted, shard, loading.offset)

    def _activate(self, hosted: HostedShard[S], shard: S, end_offset: int) -> None:
        hosted.activate(shard, end_offset)
        try:
            shard.on_loaded(self._image)
        except Exception as error:
            logger.error("%s could not be loaded: %s", hosted.partition.name, error, exc_info=error)
            hosted.close(ShardState.FAILED)

    def _reload(self, hosted: HostedShard[S]) -> None:
        """Forget the state of a shard, and build it anew from the log."""
        if self.shards.get(hosted.index) is hosted:
            self._load(hosted.index, hosted.partition)

    def _unload(self, index: int) -> None:
        hosted = self.shards.pop(index, None)
        if hosted is not None:
            hosted.close()
