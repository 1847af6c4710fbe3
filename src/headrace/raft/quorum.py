"""A metadata quorum of one: this node votes for itself, leads, and commits what is durable on its own disk.

`Quorum.open` reads what is on disk and hands it to the listener: first the batches of the latest snapshot,
then those of the log. `lead` begins a new epoch. From then on `append` writes a batch and `committed` waits
until it is durable; the listener gets every batch once it is committed, in the order of offsets, before
those who wait for it go on. Syncs happen off the event loop, and appends made meanwhile share the next one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.health import DirectoryHealth
from headrace.ports import Clock, Disk, Entropy
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from headrace.raft.batches import ControlBatch, DataBatch, build_data_batch, read_batches
from headrace.raft.control_state import BEFORE_LOG, ControlState
from headrace.raft.metadata_log import MetadataLog, open_metadata_log
from headrace.raft.quorum_state import ElectionState, read_quorum_state, write_quorum_state
from headrace.raft.settings import QuorumSettings
from headrace.raft.snapshots import SnapshotBuilder, SnapshotId
from headrace.raft.voters import Voter, record_of_voters, static_voters
from headrace.records.quorum_control import QuorumMessage, build_quorum_batch

logger: Final = logging.getLogger("headrace.raft")


class NotSoleVoter(HeadraceError):
    """The quorum has other voters than this node, or none."""


class QuorumListener(Protocol):
    """Who is told what the quorum has committed."""

    def on_snapshot(self, snapshot_id: SnapshotId, timestamp: int) -> None:
        """A snapshot has been handed over as a whole; what follows is the log from its offset on."""

    def on_snapshot_batch(self, batch: DataBatch) -> None:
        """Values of a snapshot. They replace whatever was known before."""

    def prepare(self, batch: DataBatch) -> Iterator[None]:
        """What can be done ahead of `on_committed` for a batch, a little at a time."""

    def on_committed(self, batch: DataBatch | ControlBatch) -> None:
        """A committed batch of the log."""


class Appended(NamedTuple):
    """Where a batch has gone."""

    base_offset: int
    last_offset: int


class Quorum:
    """This node's membership in the metadata quorum. Make one with `Quorum.open`."""

    __slots__ = (
        "_clock",
        "_control",
        "_disk",
        "_election",
        "_flushing",
        "_listener",
        "_pending",
        "_settings",
        "_told_to",
        "metadata_log",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        settings: QuorumSettings,
        metadata_log: MetadataLog,
        listener: QuorumListener,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._settings = settings
        self._listener = listener
        self._control = ControlState()
        self._election = ElectionState()
        self._pending: deque[DataBatch | ControlBatch] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._told_to = 0
        self.metadata_log = metadata_log

    @classmethod
    def open(
        cls,
        disk: Disk,
        clock: Clock,
        entropy: Entropy,
        health: DirectoryHealth,
        settings: QuorumSettings,
        listener: QuorumListener,
    ) -> "Quorum":
        """Read the log of this node and hand everything in it to the listener.

        A quorum of one has committed whatever is in its log, as soon as it is durable: `lead` sees to that.
        `NotSoleVoter` if other nodes have a say."""
        metadata_log = open_metadata_log(disk, clock, entropy, health, settings)
        quorum = cls(disk, clock, settings, metadata_log, listener)
        quorum._load()
        return quorum

    def _load(self) -> None:
        latest = self.metadata_log.latest_snapshot
        offset = self.metadata_log.log.log_start_offset
        if latest is not None:
            timestamp = 0
            for batch in self.metadata_log.read_latest_snapshot():
                timestamp = batch.append_timestamp
                if isinstance(batch, ControlBatch):
                    self._control.apply(batch.records, latest.offset - 1)
                else:
                    self._listener.on_snapshot_batch(batch)
            self._listener.on_snapshot(latest, timestamp)
            offset = latest.offset
        for batch in self.metadata_log.read_from(offset):
            if isinstance(batch, ControlBatch):
                self._control.apply(batch.records)
            self._listener.on_committed(batch)
        self._told_to = self.next_offset
        self._check_sole_voter()

    # Who votes

    @property
    def kraft_version(self) -> int:
        """The version of the quorum's protocol: 0 with voters by configuration, 1 with voters in the log."""
        return self._control.kraft_version

    @property
    def voters(self) -> tuple[Voter, ...]:
        """Everyone who votes."""
        if self._control.voters is not None:
            return self._control.voters
        listener = self._settings.endpoints[0][0] if self._settings.endpoints else ""
        return static_voters(self._settings.static_voters, listener)

    def _check_sole_voter(self) -> None:
        voters = self.voters
        ids = [voter.id for voter in voters]
        if ids != [self._settings.node_id]:
            named = ", ".join(map(str, ids)) or "nobody"
            raise NotSoleVoter(
                f"node {self._settings.node_id} can only lead a metadata quorum of its own, but the voters "
                f"of {self._settings.directory} are {named}; set controller.quorum.voters to this node "
                "alone, or format with --standalone"
            )
        known = voters[0].directory_id
        if known.int and known != self._settings.directory_id:
            raise NotSoleVoter(
                f"the voter {voters[0].id} keeps its log in directory {known}, but "
                f"{self._settings.metadata_log_dir} is {self._settings.directory_id}"
            )

    # Leading

    @property
    def node_id(self) -> int:
        return self._settings.node_id

    @property
    def directory_id(self) -> UUID:
        return self._settings.directory_id

    @property
    def epoch(self) -> int:
        """The epoch this node leads in; 0 before it does."""
        return self._election.epoch

    @property
    def is_leader(self) -> bool:
        return self._election.leader_id == self._settings.node_id

    @property
    def next_offset(self) -> int:
        """The offset that the next appended record gets."""
        return self.metadata_log.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self.metadata_log.log.high_watermark

    async def lead(self) -> None:
        """Win the election of a new epoch; on return, all that is in the log is committed."""
        self.begin_epoch()
        await self.committed(self.next_offset - 1)

    def begin_epoch(self) -> None:
        """Win the election and write a leader's first words; they are committed with what comes next."""
        directory, version = self._settings.directory, self._state_version
        previous = read_quorum_state(self._disk, directory) or ElectionState()
        epoch = max(previous.epoch, self.metadata_log.last_epoch) + 1
        voters = tuple(voter.id for voter in self.voters)
        candidate = ElectionState(voters=voters).voted(epoch, self.node_id, self._settings.directory_id)
        # The vote is durable before it counts, or a crash could lead to two leaders of one epoch.
        write_quorum_state(self._disk, directory, candidate, version)
        self._election = candidate.elected()
        write_quorum_state(self._disk, directory, self._election, version)
        self._append_control(self._first_words())
        logger.info("node %d leads the metadata quorum in epoch %d", self.node_id, epoch)

    @property
    def _state_version(self) -> int:
        return min(self.kraft_version, 1)

    def _first_words(self) -> list[QuorumMessage]:
        """What a leader writes at the beginning of its epoch."""
        ids = [LeaderChangeMessageVoter(voter_id=voter.id) for voter in self.voters]
        messages: list[QuorumMessage] = [
            LeaderChangeMessage(leader_id=self.node_id, voters=ids, granting_voters=ids)
        ]
        if self.kraft_version > 0 and self._voters_are_outdated:
            messages.append(KRaftVersionRecord(k_raft_version=self.kraft_version))
            messages.append(record_of_voters([self._self_as_voter]))
        return messages

    @property
    def _self_as_voter(self) -> Voter:
        return Voter(self.node_id, self._settings.directory_id, self._settings.endpoints)

    @property
    def _voters_are_outdated(self) -> bool:
        """Whether the log does not say yet who votes, or not where this node is to be found now."""
        return self._control.voters_offset == BEFORE_LOG or self.voters[0] != self._self_as_voter

    def upgrade_kraft_version(self, version: int, *, validate_only: bool = False) -> None:
        """Keep the voters in the log from here on; ValueError if this version cannot be reached."""
        if version == self.kraft_version or validate_only:
            return
        if version < self.kraft_version:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid upgrade of kraft.version from version {self.kraft_version} to {version} because "
                "the new version is a downgrade",
            )
        self._append_control(
            [KRaftVersionRecord(k_raft_version=version), record_of_voters([self._self_as_voter])]
        )

    # Appending and committing

    def append(self, values: Sequence[bytes]) -> Appended:
        """Write values as one batch. They are committed once `committed` returns for their last offset."""
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this node does not lead the metadata quorum")
        now_ms = self._clock.now_ms()
        data = build_data_batch(values, self.next_offset, self.epoch, now_ms)
        if len(data) > self._settings.batch_bytes_max:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"a batch of {len(data)} bytes of metadata is larger than {self._settings.batch_bytes_max}",
            )
        place = self._write(data, now_ms)
        self._pending.append(DataBatch(*place, self.epoch, now_ms, len(data), values))
        return place

    def _append_control(self, messages: list[QuorumMessage]) -> Appended:
        now_ms = self._clock.now_ms()
        data = build_quorum_batch(
            messages, timestamp=now_ms, leader_epoch=self.epoch, base_offset=self.next_offset
        )
        place = self._write(data, now_ms)
        for batch in read_batches(data):
            if isinstance(batch, ControlBatch):
                self._control.apply(batch.records)
            self._pending.append(batch)
        return place

    def _write(self, data: bytes, now_ms: int) -> Appended:
        log = self.metadata_log.log
        info = log.append_as_leader(bytearray(data), self.epoch, now_ms, origin=AppendOrigin.RAFT_LEADER)
        return Appended(info.first_offset, info.last_offset)

    async def committed(self, last_offset: int) -> None:
        """Return once everything up to and including `last_offset` is committed and the listener told."""
        while min(self.high_watermark, self._told_to) <= last_offset:
            if self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush())
                self._flushing.add_done_callback(_retrieve)
            # One who stops waiting must not take the others' commit along.
            await asyncio.shield(self._flushing)

    async def _flush(self) -> None:
        log = self.metadata_log.log
        try:
            await self.metadata_log.flush(self._clock.now_ms())
            log.advance_high_watermark(log.recovery_point)
            await self._deliver()
        finally:
            self._flushing = None

    async def _deliver(self) -> None:
        while self._pending and self._pending[0].last_offset < self.high_watermark:
            batch = self._pending[0]
            if isinstance(batch, DataBatch):
                for _ in self._listener.prepare(batch):
                    await asyncio.sleep(0)
            self._pending.popleft()
            self._told_to = batch.last_offset + 1
            self._listener.on_committed(batch)

    # Snapshots

    async def write_snapshot(
        self, snapshot_id: SnapshotId, last_timestamp: int, chunks: AsyncIterable[Sequence[bytes]]
    ) -> bool:
        """Keep what all records before `snapshot_id.offset` add up to; False if that is there already."""
        if snapshot_id in self.metadata_log.snapshots:
            return False
        if not self.metadata_log.log.log_start_offset <= snapshot_id.offset <= self.high_watermark:
            raise ValueError(f"a snapshot at {snapshot_id.offset} is not within the committed log")
        kraft_version, voters = self._control.at(snapshot_id.offset - 1)
        builder = SnapshotBuilder(
            self._clock.now_ms(),
            last_timestamp,
            snapshot_id.epoch,
            kraft_version=kraft_version,
            voters=voters,
        )
        async for values in chunks:
            builder.add(values)
        content = builder.finish()
        await self.metadata_log.add_snapshot(snapshot_id, content)
        logger.info("metadata snapshot %s written, %d bytes", snapshot_id.file_name, len(content))
        return True

    async def clean(self) -> bool:
        """Drop what retention no longer keeps; call it now and then. True if anything went."""
        return await self.metadata_log.clean(self._clock.now_ms())

    async def close(self) -> None:
        """Stop cleanly: everything written is durable, no descriptor stays open."""
        if self._flushing is not None:
            await asyncio.shield(self._flushing)
        await self.metadata_log.log.close(self._clock.now_ms())


def _retrieve(task: asyncio.Task[None]) -> None:
    """Those who wait are told of a failure; if nobody does, the next append is."""
    if not task.cancelled():
        task.exception()
