"""One hosted partition: its log, who leads it, which replicas are in sync, and who waits for it.

Nothing here waits itself. What the high watermark is, and that it stands still while too few replicas are in
sync, is decided here and nowhere else."""

from typing import TYPE_CHECKING, Final, Protocol

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_info import AppendInfo
from headrace.log.append_origin import AppendOrigin
from headrace.log.appending import append_as_leader
from headrace.log.leader_epochs import EpochEnd
from headrace.log.log_errors import OffsetOutOfRange
from headrace.log.log_reads import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FoundOffset,
    Isolation,
    LogRead,
)
from headrace.log.partition_log import PartitionLog
from headrace.log.producer_append import TRANSACTION_VERSION_UNKNOWN
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.records.rules import Validated
from headrace.replication.assignment import PartitionAssignment
from headrace.replication.counters import TopicCounters
from headrace.types import NO_LEADER_EPOCH, NO_TIMESTAMP, TopicId, TopicPartition

if TYPE_CHECKING:
    from headrace.replication.parked_fetches import WaitedPartition, WaitingFetch

NO_LEADER: Final = -1
ACKS_ALL: Final = -1
DELETE_TO_HIGH_WATERMARK: Final = -1


class Waiter(Protocol):
    """Somebody who wants to know when something about a partition has changed."""

    def on_progress(self, partition: "Partition") -> None:
        """Look at the partition again."""


class FollowerState:
    """What the leader knows about another replica."""

    __slots__ = ("last_caught_up_ms", "log_end_offset", "log_start_offset", "node_id")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.log_end_offset = -1
        self.log_start_offset = -1
        self.last_caught_up_ms = 0


class Partition:
    """A partition of which this node has a replica. Its log is absent while its directory is offline."""

    __slots__ = (
        "_epoch_unwritten",
        "_flush_to",
        "_leader_log",
        "_min_insync_replicas",
        "counters",
        "followers",
        "future_log",
        "is_deleted",
        "is_offline",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start",
        "log",
        "name",
        "node_id",
        "parked",
        "partition_epoch",
        "replicas",
        "topic_id",
        "waits",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        node_id: int,
        counters: TopicCounters,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.node_id = node_id
        self.counters = counters
        self.log: PartitionLog | None = None
        self.future_log: PartitionLog | None = None
        self.leader = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.leader_epoch_start: int | None = None
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: frozenset[int] = frozenset()
        self.followers: dict[int, FollowerState] = {}
        self.is_offline = False
        self.is_deleted = False
        self.parked: dict[WaitingFetch, WaitedPartition] = {}
        self.waits: dict[Waiter, None] = {}
        self._leader_log: PartitionLog | None = None
        self._min_insync_replicas = 1
        self._epoch_unwritten = False
        self._flush_to = 0

    def __repr__(self) -> str:
        return f"Partition({self.name}, leader={self.leader}, epoch={self.leader_epoch}, isr={set(self.isr)})"

    # Who leads

    @property
    def is_leader(self) -> bool:
        return self.leader == self.node_id

    @property
    def prompt_log(self) -> PartitionLog | None:
        """The log, if this node leads the partition and what it appends needs to wait for nothing."""
        log = self._leader_log
        return None if log is None or self.followers or self._flush_to > log.recovery_point else log

    @property
    def leader_log(self) -> PartitionLog:
        """The log, if this node leads the partition."""
        if self._leader_log is None:
            self.require_online()
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"Leader not local for partition {self.name} on broker {self.node_id}",
            )
        return self._leader_log

    def require_online(self) -> None:
        """Refuse to go on if the directory below has failed."""
        if self.is_offline:
            message = f"Partition {self.name} is in an offline log directory"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    @property
    def min_insync_replicas(self) -> int:
        """How many replicas must be in sync; never more than there are."""
        return min(self._min_insync_replicas, len(self.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) < self.min_insync_replicas

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and len(self.isr) < len(self.replicas)

    def apply(self, assignment: PartitionAssignment, log: PartitionLog, now_ms: int) -> bool:
        """Take over what the metadata says. True if this node has become the leader of a new epoch."""
        if assignment.partition_epoch < self.partition_epoch:
            return False
        self.log = log
        self.replicas = assignment.replicas
        self.isr = frozenset(assignment.isr) if assignment.leader == self.node_id else frozenset()
        others = [node for node in assignment.replicas if node != self.node_id]
        self.followers = {node: self.followers.get(node) or FollowerState(node) for node in others}
        was_leader, self.leader = self.is_leader, assignment.leader
        is_new_epoch = assignment.leader_epoch > self.leader_epoch
        self.partition_epoch = assignment.partition_epoch
        if self.is_leader:
            if is_new_epoch:
                self._begin_epoch(log, assignment.leader_epoch, now_ms)
            self._leader_log = log
        else:
            self._leader_log = None
            self.leader_epoch_start = None
        self.leader_epoch = assignment.leader_epoch
        if is_new_epoch or was_leader != self.is_leader:
            self.release_waiting()
        if self.is_leader and self.advance_high_watermark():
            self.notify()
        return is_new_epoch and self.is_leader

    def _begin_epoch(self, log: PartitionLog, epoch: int, now_ms: int) -> None:
        """Followers may ask about the epoch before there is a record in it, so it is noted at once. The file
        is written with the first record: a node may come to lead thousands of partitions at once."""
        log.epochs.note(epoch, log.log_end_offset)
        self._epoch_unwritten = True
        self.leader_epoch_start = log.log_end_offset
        for follower in self.followers.values():
            follower.log_end_offset = follower.log_start_offset = -1
            follower.last_caught_up_ms = now_ms if follower.node_id in self.isr else 0

    def set_min_insync_replicas(self, count: int) -> None:
        self._min_insync_replicas = count
        if self._leader_log is not None and self.advance_high_watermark():
            self.notify()

    def log_for(self, leader_epoch: int, *, leader_only: bool) -> PartitionLog:
        """The log for a reader that knows the partition at `leader_epoch` (-1 if it did not say)."""
        if leader_epoch not in (NO_LEADER_EPOCH, self.leader_epoch):
            older = leader_epoch < self.leader_epoch
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch {leader_epoch} was named for {self.name}, which is at {self.leader_epoch}",
            )
        log = self._leader_log if leader_only else self.log
        if log is None:
            self.require_online()
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.name} is not led by broker {self.node_id} but by {self.leader}",
            )
        return log

    # Writing

    def append(
        self,
        records: bytearray | memoryview | Validated,
        acks: int,
        now_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard = NO_VERIFICATION_GUARD,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
    ) -> AppendInfo:
        """Append as leader. What waits for the partition is told; with `acks` all, see `is_replicated`."""
        log = self._leader_log
        if log is None:
            log = self.leader_log
        if self._epoch_unwritten:
            self._write_epoch(log)
        followers = self.followers
        if acks == ACKS_ALL and followers and len(self.isr) < self.min_insync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR : {len(self.isr)} is insufficient to satisfy the min.isr "
                f"requirement of {self.min_insync_replicas} for partition {self.name}, live replica(s) "
                f"broker.id are : {sorted(self.isr)}",
            )
        info = append_as_leader(log, records, self.leader_epoch, now_ms, origin, guard, transaction_version)
        if info.must_flush:
            self._flush_first(log, info.last_offset + 1, now_ms)
        if followers or self._flush_to > log.recovery_point:
            self.advance_high_watermark()
            if info.is_duplicate and self._flush_to > log.recovery_point:
                # The batch that it repeats may be on its way to the disk.
                info = info._replace(must_flush=True)
        else:
            log.advance_high_watermark(info.last_offset + 1)
        if self.parked or self.waits:
            self.notify()
        return info

    def _flush_first(self, log: PartitionLog, offset: int, now_ms: int) -> None:
        """Let consumers see what `flush.messages` wants on disk once it is there. The sync is begun here,
        so that those of several partitions go together."""
        self._flush_to = offset
        log.on_flushed = self._on_flushed
        log.flusher.begin(offset, now_ms)

    def _on_flushed(self) -> None:
        if self.advance_high_watermark():
            self.notify()

    def _write_epoch(self, log: PartitionLog) -> None:
        """An epoch is durable before the first record that is written in it."""
        try:
            log.epochs.flush()
        except OSError as error:
            raise log.health.fail(f"noting the leader epoch of {self.name}", error) from error
        self._epoch_unwritten = False

    def advance_high_watermark(self) -> bool:
        """Raise the high watermark to what every in-sync replica has; True if it moved."""
        log = self._leader_log
        if log is None or len(self.isr) < self.min_insync_replicas:
            return False
        offset = log.log_end_offset
        if self._flush_to > log.recovery_point:
            offset = log.recovery_point
        for node, follower in self.followers.items():
            if node in self.isr and follower.log_end_offset < offset:
                offset = follower.log_end_offset
        return offset > log.high_watermark and log.advance_high_watermark(offset)

    def on_follower_fetch(self, node_id: int, offset: int, log_start_offset: int, now_ms: int) -> None:
        """A follower asks for `offset`, so it has everything before."""
        follower, log = self.followers[node_id], self.leader_log
        old_low_watermark = follower.log_start_offset
        follower.log_end_offset = offset
        follower.log_start_offset = log_start_offset
        if offset >= log.log_end_offset:
            follower.last_caught_up_ms = now_ms
        if self.advance_high_watermark() or log_start_offset != old_low_watermark:
            self.notify()

    def is_replicated(self, offset: int) -> bool:
        """Whether all in-sync replicas have everything below `offset`."""
        return self.leader_log.high_watermark >= offset

    # Reading

    def read(
        self,
        log: PartitionLog,
        offset: int,
        max_bytes: int,
        isolation: Isolation,
        min_one_message: bool,
    ) -> LogRead:
        """A stretch of the log; a first batch that is cut short by the limit is left out."""
        found = log.read(offset, max_bytes, isolation, min_one_message)
        return found._replace(records=None) if found.first_batch_incomplete else found

    def diverging_epoch(self, log: PartitionLog, last_fetched_epoch: int, offset: int) -> EpochEnd | None:
        """Where a reader's log parts from this one; None if it does not."""
        end = log.end_offset_for_epoch(last_fetched_epoch)
        if end is None or end.epoch < 0:
            raise OffsetOutOfRange(f"the end of epoch {last_fetched_epoch} of {self.name} is not known")
        if offset < log.log_start_offset:
            raise OffsetOutOfRange(f"offset {offset} of {self.name} lies before {log.log_start_offset}")
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    def offset_for_timestamp(
        self, timestamp: int, isolation: Isolation, leader_epoch: int, *, leader_only: bool
    ) -> FoundOffset | None:
        """The answer to ListOffsets; None if nothing is found."""
        log = self.log_for(leader_epoch, leader_only=leader_only)
        start = self.leader_epoch_start
        is_client = isolation is not Isolation.LOG_END
        lags = is_client and start is not None and start > log.high_watermark
        if timestamp == LATEST_TIMESTAMP:
            if lags:
                raise self._offset_not_available(log)
            bound = {
                Isolation.LOG_END: log.log_end_offset,
                Isolation.HIGH_WATERMARK: log.high_watermark,
                Isolation.COMMITTED: log.last_stable_offset,
            }[isolation]
            return FoundOffset(NO_TIMESTAMP, bound, self.leader_epoch)
        found = log.offset_for_timestamp(timestamp, isolation)
        if found is None and lags and timestamp not in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            raise self._offset_not_available(log)
        return found

    def _offset_not_available(self, log: PartitionLog) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"the high watermark {log.high_watermark} of {self.name} has not reached the start "
            f"{self.leader_epoch_start} of leader epoch {self.leader_epoch}",
        )

    # The log's start

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all replicas, a future one included."""
        lowest = self.leader_log.log_start_offset
        for follower in self.followers.values():
            lowest = min(lowest, follower.log_start_offset)
        return lowest if self.future_log is None else min(lowest, self.future_log.log_start_offset)

    def delete_records(self, offset: int) -> int:
        """Give up what lies before `offset` (-1 for the high watermark); returns the offset meant."""
        log = self.leader_log
        if log.settings.cleanup_compact and not log.settings.cleanup_delete:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.name} can not be deleted due to the configured policy",
            )
        target = log.high_watermark if offset == DELETE_TO_HIGH_WATERMARK else offset
        if target < 0:
            raise OffsetOutOfRange(f"The offset {target} for partition {self.name} is not valid")
        if log.advance_log_start(target):
            self.notify()
        return target

    # Who waits

    def notify(self) -> None:
        """Tell those who wait that there is something new."""
        for fetch, waited in self.parked.items():
            fetch.on_progress(waited)
        for wait in tuple(self.waits):
            wait.on_progress(self)

    def release_waiting(self) -> None:
        """Let all who wait look again: the partition is not what it was."""
        for fetch in self.parked:
            fetch.release()
        for wait in tuple(self.waits):
            wait.on_progress(self)

    def go_offline(self) -> None:
        """The directory below has failed."""
        self.is_offline = True
        self.log = self._leader_log = self.future_log = None
        self.release_waiting()

    def move_to(self, log: PartitionLog) -> None:
        """Go on with the log in another directory."""
        self.log, self.future_log = log, None
        if self._leader_log is not None:
            self._leader_log = log
        self.release_waiting()

    def delete(self) -> None:
        """The partition has been deleted, or is no longer this node's."""
        self.is_deleted = True
        self.log = self._leader_log = self.future_log = None
        self.release_waiting()
