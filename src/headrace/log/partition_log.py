"""A partition's log: segments in order, the offsets that bound what may be read, and who wrote what.

Everything runs on one event loop and nothing here waits, except `flush`, `close` and `delete`: reads and
writes go to the operating system's cache. A failure of the medium takes the log directory offline and is
raised as `LogDirectoryOffline`; nothing is acknowledged after it. Reading, truncation, retention and loading
have modules of their own; this one holds the state they share and takes appends."""

from collections.abc import Callable, Iterable

from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.log import appending, log_reads, retention, segment_swap, truncation
from headrace.log.append_info import AppendInfo
from headrace.log.append_origin import AppendOrigin
from headrace.log.deletions import Deletions
from headrace.log.flush import Flusher
from headrace.log.leader_epochs import EpochEnd, LeaderEpochs
from headrace.log.log_errors import OffsetOutOfRange
from headrace.log.log_parts import LoadedParts
from headrace.log.log_parts import LogSurroundings as LogSurroundings
from headrace.log.log_position import LogPosition
from headrace.log.log_reads import FoundOffset, Isolation, LogRead
from headrace.log.partition_metadata import read_topic_id, write_topic_id
from headrace.log.producer_append import TRANSACTION_VERSION_UNKNOWN
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.log.producer_state import ProducerState
from headrace.log.segment import Segment, roll_jitter_ms
from headrace.log.settings import LogSettings
from headrace.log.transaction_index import AbortedTransaction
from headrace.log.truncation import EpochTruncation
from headrace.ports import BytesLike, Disk, File
from headrace.records.rules import Validated, ValidationRules
from headrace.types import TopicId, TopicPartition

_new_tuple = tuple.__new__


class PartitionLog:
    """The log of one partition. Make one with `loader.open_partition`."""

    __slots__ = (
        "_epochs",
        "_first_unstable",
        "_high_watermark",
        "_names_changed",
        "_parts",
        "_producers",
        "_surroundings",
        "_topic_id",
        "_topic_id_unread",
        "_unsynced_snapshots",
        "deletions",
        "directory",
        "disk",
        "flush_wanted_to",
        "flusher",
        "health",
        "is_changed",
        "is_closed",
        "log_end_offset",
        "log_start_offset",
        "on_flushed",
        "partition",
        "recovery_point",
        "rules",
        "segments",
        "settings",
        "topic_id_unwritten",
        "truncations",
        "verifier",
    )

    def __init__(
        self,
        surroundings: LogSurroundings,
        directory: str,
        partition: TopicPartition,
        settings: LogSettings,
        parts: LoadedParts,
        now_ms: int,
    ) -> None:
        self._surroundings = surroundings
        self._parts = parts
        self.disk = surroundings.disk
        self.health = surroundings.health
        self.directory = directory
        self.partition = partition
        self.settings = settings
        self.segments = parts.segments
        self.verifier = parts.verifier
        self.log_start_offset = parts.log_start_offset
        self.log_end_offset = parts.log_end_offset
        """The offset that the next record gets; appends and truncation alone move it."""
        self.recovery_point = max(parts.recovery_point, parts.log_start_offset)
        self.flusher = Flusher(self, surroundings.disk, surroundings.health, now_ms)
        self.deletions = Deletions(surroundings.disk, surroundings.health)
        self.flush_wanted_to = 0
        self.on_flushed: Callable[[], None] | None = None
        """Who is told that the recovery point has moved after a sync."""
        self.truncations = 0
        self.is_changed = parts.is_new
        self.rules: dict[AppendOrigin, ValidationRules] = {}
        self.topic_id_unwritten = False
        self._topic_id: TopicId | None = None
        self._topic_id_unread = parts.has_topic_id
        self._epochs: LeaderEpochs | None = None
        self._producers: ProducerState | None = None
        self._high_watermark = LogPosition(parts.log_start_offset)
        self._first_unstable: LogPosition | None = None
        self._unsynced_snapshots: list[File] = []
        self._names_changed = parts.is_new
        self.is_closed = False

    def __repr__(self) -> str:
        return (
            f"PartitionLog({self.partition}, start={self.log_start_offset}, "
            f"high_watermark={self.high_watermark}, end={self.log_end_offset})"
        )

    @property
    def producers(self) -> ProducerState:
        """What is known about producers, loaded when it is first needed."""
        return self._producers or self._load_producers()

    @property
    def epochs(self) -> LeaderEpochs:
        """Which leader epoch began where, loaded when it is first needed."""
        # Epochs have a length, and are false as long as there are none.
        return self._load_epochs() if self._epochs is None else self._epochs

    def _load_producers(self) -> ProducerState:
        try:
            producers, written = self._parts.load_producers(self.log_start_offset, self.log_end_offset)
        except OSError as error:
            raise self.health.fail(f"loading the producers of {self.partition}", error) from error
        self._producers = producers
        self._unsynced_snapshots += written
        producers.forget_replicated(self._high_watermark.offset)
        self.refresh_first_unstable()
        return producers

    def _load_epochs(self) -> LeaderEpochs:
        try:
            self._epochs = self._parts.load_epochs(self.log_end_offset)
        except OSError as error:
            raise self.health.fail(f"loading the leader epochs of {self.partition}", error) from error
        return self._epochs

    # Offsets

    @property
    def end(self) -> LogPosition:
        """The log end with its place on disk."""
        active = self.segments.active
        # A named tuple's own constructor takes several times as long.
        return _new_tuple(LogPosition, (self.log_end_offset, active.base_offset, active.size))

    @property
    def high_watermark(self) -> int:
        """What lies below is on every in-sync replica."""
        return self._high_watermark.offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest undecided transaction begins."""
        if self._producers is None:
            self._load_producers()
        return None if self._first_unstable is None else self._first_unstable.offset

    @property
    def last_stable_offset(self) -> int:
        """What lies below is decided and replicated: the bound of read_committed."""
        if self._producers is None:
            self._load_producers()
        unstable, watermark = self._first_unstable, self._high_watermark.offset
        return unstable.offset if unstable is not None and unstable.offset < watermark else watermark

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, or -1."""
        return self.epochs.latest_epoch

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return self.segments.size_bytes

    @property
    def was_never_written(self) -> bool:
        """Whether no record was ever appended, not even one that retention has removed since."""
        return not self.log_end_offset and not self.size

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd | None:
        """The largest known epoch up to `epoch` and where it ends; None if there is none."""
        found = self.epochs.end_offset_for(epoch, self.log_end_offset)
        return None if found.end_offset < 0 else found

    # The high watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark, as a leader does; it never goes back by this. True if it moved."""
        if offset > self.log_end_offset:
            raise ValueError(
                f"a high watermark of {offset} lies beyond the end {self.log_end_offset} of {self.partition}"
            )
        if offset <= self._high_watermark.offset:
            return False
        self._set_high_watermark(self._position_if_end(offset))
        return True

    def update_high_watermark(self, offset: int) -> int:
        """Take over a high watermark from a leader or a checkpoint, as far as the log reaches."""
        bounded = min(max(offset, self.log_start_offset), self.log_end_offset)
        if bounded != self._high_watermark.offset:
            self._set_high_watermark(self._position_if_end(bounded))
        return bounded

    def high_watermark_position(self) -> LogPosition:
        """The high watermark with its place on disk."""
        if self._high_watermark.is_offset_only:
            self._high_watermark = self.locate(self._high_watermark.offset)
        return self._high_watermark

    def last_stable_position(self) -> LogPosition:
        """The last stable offset with its place on disk."""
        if self._producers is None:
            self._load_producers()
        watermark, unstable = self.high_watermark_position(), self._first_unstable
        if unstable is None or unstable.offset >= watermark.offset:
            return watermark
        if unstable.is_offset_only:
            unstable = self._first_unstable = self.locate(unstable.offset)
        return unstable

    def locate(self, offset: int) -> LogPosition:
        """An offset with the place of the batch that holds it; by offset alone if it is out of range."""
        return log_reads.locate(self, offset)

    def refresh_first_unstable(self) -> None:
        """Note anew where the oldest undecided transaction begins."""
        unstable = self.producers.first_unstable()
        if unstable is not None and unstable.offset < self.log_start_offset:
            unstable = LogPosition(self.log_start_offset)
        self._first_unstable = unstable

    def _position_if_end(self, offset: int) -> LogPosition:
        return self.end if offset == self.log_end_offset else LogPosition(offset)

    def _set_high_watermark(self, position: LogPosition) -> None:
        self._high_watermark = position
        if self._producers is not None and not self._producers.has_no_transactions:
            self._producers.forget_replicated(position.offset)
            self.refresh_first_unstable()

    def follow_end(self) -> None:
        """Keep the high watermark at the end's place if it has reached it: after a roll or a truncation."""
        if self._high_watermark.offset >= self.log_end_offset:
            self._set_high_watermark(self.end)

    # Appending

    def append_as_leader(
        self,
        records: bytearray | memoryview | Validated,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard = NO_VERIFICATION_GUARD,
        transaction_version: int = TRANSACTION_VERSION_UNKNOWN,
    ) -> AppendInfo:
        """Validate records, give them offsets, epoch and timestamps, and write them with one call.

        The buffer is stamped in place. A refusal raises `KafkaError` and leaves the log as it was."""
        return appending.append_as_leader(
            self, records, leader_epoch, now_ms, origin, guard, transaction_version
        )

    def append_as_follower(self, records: BytesLike, leader_epoch: int, now_ms: int) -> AppendInfo:
        """Write what the leader has written, byte for byte; its offsets may skip but not go back."""
        return appending.append_given(
            self, memoryview(records), leader_epoch, now_ms, AppendOrigin.REPLICATION
        )

    # Verification of transactions

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard:
        """The guard for a producer's first batch of a transaction; no guard if one is open already."""
        entry = self.producers.entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {producer_id} in {self.partition} is below the last seen epoch "
                f"{entry.epoch}",
            )
        if self.producers.has_ongoing_transaction(producer_id, epoch):
            return NO_VERIFICATION_GUARD
        return self.producers.begin_verification(
            producer_id, sequence, epoch, supports_epoch_bump, now_ms
        ).guard

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that have been idle for too long, if any are loaded."""
        if self._producers is not None:
            self._producers.remove_expired(now_ms)

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.LOG_END,
        min_one_message: bool = True,
    ) -> LogRead:
        """A file range from the batch that holds `offset`, up to the bound of `isolation`."""
        return log_reads.read(self, offset, max_bytes, isolation, min_one_message)

    def offset_for_timestamp(
        self, timestamp: int, isolation: Isolation = Isolation.LOG_END
    ) -> FoundOffset | None:
        """The answer to ListOffsets: a time or one of its negative codes; None if nothing is that late."""
        return log_reads.offset_for_timestamp(self, timestamp, isolation)

    def aborted_transactions(self, offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [offset, upper_bound)."""
        return log_reads.aborted_transactions(self, offset, upper_bound)

    # Rolling and flushing

    def roll(self, now_ms: int, expected_next_offset: int = 0) -> Segment:
        """Begin a new segment at the log end, or at a later first offset of what is appended next."""
        base_offset = max(expected_next_offset, self.log_end_offset)
        active = self.segments.active
        if base_offset == active.base_offset and active.size == 0:
            active.activate(self.settings.segment_index_bytes)
            return active
        if base_offset <= active.base_offset:
            raise HeadraceError(
                f"{self.partition} cannot roll at offset {base_offset}: its active segment begins at "
                f"{active.base_offset}"
            )
        active.deactivate()
        segment = self._create_segment(base_offset, now_ms)
        # The snapshot at a segment's base is what recovery of that segment starts from.
        self.producers.end_offset = base_offset
        snapshot = self.producers.take_snapshot()
        if snapshot is not None:
            self._unsynced_snapshots.append(snapshot)
        self.follow_end()
        self._want_flush(base_offset)
        return segment

    def _create_segment(self, base_offset: int, now_ms: int) -> Segment:
        jitter_ms = roll_jitter_ms(self.settings, self._surroundings.entropy)
        segment = Segment.create(
            self.disk, self.directory, base_offset, self.settings, now_ms, jitter_ms=jitter_ms
        )
        self.segments.add(segment)
        self.verifier.trust(base_offset)
        self.is_changed = self._names_changed = True
        return segment

    def _want_flush(self, offset: int) -> None:
        self.flush_wanted_to = offset
        if self._surroundings.on_flush_wanted is not None:
            self._surroundings.on_flush_wanted(self)

    async def flush(self, now_ms: int, offset: int | None = None) -> None:
        """Return once everything up to the present end (or `offset`) is durable."""
        await self.flusher.flush_to(self.log_end_offset if offset is None else offset, now_ms)

    async def flush_if_due(self, now_ms: int) -> bool:
        """Flush what a roll has left behind, and all if `flush.ms` has passed; True if there was anything."""
        if self.unflushed_messages and now_ms - self.flusher.last_flush_ms >= self.settings.flush_ms:
            await self.flush(now_ms)
            return True
        if self.recovery_point < self.flush_wanted_to:
            await self.flush(now_ms, self.flush_wanted_to)
            return True
        return False

    def unsynced(self, end_offset: int) -> Callable[[], None]:
        """A call that makes every file with offsets up to `end_offset` durable, to run off the loop."""
        segments = self.segments.covering(self.recovery_point, end_offset)
        calls = [segment.prepare_sync() for segment in segments]
        snapshots, self._unsynced_snapshots = self._unsynced_snapshots, []
        names_changed, self._names_changed = self._names_changed, False
        disk, directory = self.disk, self.directory

        def sync() -> None:
            for call in calls:
                call()
            for snapshot in snapshots:
                _sync_if_there(disk, snapshot)
            if names_changed:
                disk.sync_directory(directory)

        return sync

    def mark_flushed(self, offset: int) -> None:
        """Move the recovery point up, after a sync."""
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        if self.on_flushed is not None:
            self.on_flushed()

    # The log's start, truncation, retention

    def advance_log_start(self, offset: int) -> bool:
        """Give up what lies before `offset`, as DeleteRecords asks; True if the start moved."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(
                f"the start of {self.partition} cannot move to {offset}, beyond its high watermark "
                f"{self.high_watermark}"
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_moved(offset)
        self.refresh_first_unstable()
        return True

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Remove every batch that ends at or after `offset`; True if there was one."""
        return truncation.truncate_to(self, offset, now_ms)

    def truncate_fully(self, offset: int, now_ms: int, log_start_offset: int | None = None) -> None:
        """Remove everything and begin anew at `offset`."""
        truncation.truncate_fully(self, offset, now_ms, log_start_offset)

    def truncate_by_epoch(self, epoch: int, end_offset: int, now_ms: int) -> EpochTruncation:
        """Cut where this log and its leader's part, given the leader's answer about an epoch."""
        return truncation.truncate_by_epoch(self, epoch, end_offset, now_ms)

    def delete_old_segments(self, now_ms: int) -> int:
        """Apply retention; returns how many segments went."""
        return retention.delete_old_segments(self, now_ms)

    def replace_segments(self, base_offset: int, replaced: Iterable[int], now_ms: int) -> None:
        """Put the `.cleaned` segment at `base_offset` in the place of those with the given bases."""
        segment_swap.replace_segments(self, base_offset, list(replaced), now_ms)

    def remove_segments(self, segments: list[Segment], now_ms: int) -> None:
        """Take segments out of the log; their files go after `file.delete.delay.ms`."""
        retention.remove_segments(self, segments, now_ms)

    async def delete_due_files(self, now_ms: int) -> int:
        """Unlink what waits for it long enough; returns how many files."""
        return await self.deletions.delete_due(now_ms)

    def set_end(self, offset: int) -> None:
        """Move the log end back, for truncation alone."""
        self.log_end_offset = offset
        if offset < self.recovery_point:
            self.recovery_point = offset
            # The checkpoint says more than is true now.
            self._want_flush(offset)
        self.truncations += 1
        self.is_changed = self._names_changed = True
        self.flusher.on_truncated(offset)

    def sync_later(self, snapshots: list[File]) -> None:
        """Let the next flush make these producer snapshots durable."""
        self._unsynced_snapshots += snapshots

    def forget_positions(self) -> None:
        """Look places on disk up anew: compaction has moved batches."""
        self._high_watermark = LogPosition(self._high_watermark.offset)
        if self._first_unstable is not None:
            self._first_unstable = LogPosition(self._first_unstable.offset)

    def restart_at(self, offset: int, now_ms: int) -> Segment:
        """An empty active segment at `offset`, for truncation alone."""
        return self._create_segment(offset, now_ms)

    # The partition itself

    def update_settings(self, settings: LogSettings) -> None:
        """Take over a changed topic configuration."""
        self.settings = settings
        self.rules.clear()
        self.segments.active.index_interval_bytes = settings.index_interval_bytes

    @property
    def topic_id(self) -> TopicId | None:
        """The id in `partition.metadata`, read when it is first asked for."""
        if self._topic_id_unread:
            self._topic_id = read_topic_id(self.disk, self.directory)
            self._topic_id_unread = False
        return self._topic_id

    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Tie the log to its topic's id; the file is written before the first record is."""
        if self.topic_id is None:
            self._topic_id = topic_id
            self.topic_id_unwritten = True
        elif self.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.partition} belongs to topic id {self.topic_id}, not {topic_id}",
            )

    def write_topic_id(self) -> None:
        """Write `partition.metadata` if that is still to be done."""
        if self.topic_id_unwritten and self._topic_id is not None:
            write_topic_id(self.disk, self.directory, self._topic_id)
            self.topic_id_unwritten = False

    def rename_directory(self, name: str, *, durably: bool = True) -> None:
        """Give the partition's directory another name beside its present one."""
        parent = self.directory.rpartition("/")[0]
        target = f"{parent}/{name}"
        # What is loaded on first use has to be loaded before its files move.
        producers, epochs = self.producers, self.epochs
        try:
            if durably:
                self.write_topic_id()
            self.disk.rename(self.directory, target)
            if durably:
                self.disk.sync_directory(parent)
        except OSError as error:
            raise self.health.fail(f"renaming the directory of {self.partition}", error) from error
        # Ranges that were handed out name files by paths that may soon be another log's.
        self.truncations += 1
        self._names_changed = True
        self.deletions.moved_to(self.directory, target)
        producers.directory = target
        epochs.moved_to(target)
        self.directory = target
        for segment in self.segments:
            segment.moved_to(target)

    async def close(self, now_ms: int) -> None:
        """Stop cleanly: everything durable, a producer snapshot at the end, indexes trimmed."""
        if self.is_closed:
            return
        self.health.check()
        try:
            if self.is_changed:
                await self._finish()
            elif self.topic_id_unwritten or (self._epochs is not None and self._epochs.dirty):
                await self.disk.off_loop(self._write_small_files)
        except OSError as error:
            raise self.health.fail(f"closing {self.partition}", error) from error
        self.mark_flushed(self.log_end_offset)
        self.abandon()

    async def _finish(self) -> None:
        snapshot = self.producers.take_snapshot()
        if snapshot is not None:
            self._unsynced_snapshots.append(snapshot)
            self._names_changed = True
        self.segments.active.deactivate()
        sync_segments = self.unsynced(self.log_end_offset + 1)

        def sync() -> None:
            self._write_small_files()
            sync_segments()

        await self.disk.off_loop(sync)

    def _write_small_files(self) -> None:
        """What a crash could do without; each costs two syncs, so this happens off the loop."""
        self.write_topic_id()
        if self._epochs is not None:
            self._epochs.flush()

    def close_files(self) -> None:
        """Give back all descriptors and write nothing, as for a directory that has failed."""
        for segment in self.segments:
            segment.close_files()

    def abandon(self) -> None:
        """Give back all descriptors for good: nothing is written or flushed from here on."""
        self.close_files()
        self.is_closed = True

    async def delete(self) -> None:
        """Remove the partition from the disk."""
        self.abandon()
        self.truncations += 1
        try:
            await self.disk.off_loop(lambda: self.disk.remove_tree(self.directory))
        except FileNotFoundError:
            return
        except OSError as error:
            raise self.health.fail(f"deleting {self.partition}", error) from error


def _sync_if_there(disk: Disk, file: File) -> None:
    """Retention may have removed a snapshot before its turn to be synced came."""
    if disk.exists(file.path):
        file.sync()
