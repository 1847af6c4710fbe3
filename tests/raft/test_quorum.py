"""A quorum of one: it leads, commits what is durable, and comes back with it after any crash."""

import asyncio
import errno
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest

from headrace.config.endpoints import Address
from headrace.errors import ErrorCode, KafkaError
from headrace.log.health import DirectoryHealth
from headrace.log.log_errors import LogDirectoryOffline
from headrace.log.settings import LogSettings
from headrace.protocol.disk_records.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from headrace.raft.batches import ControlBatch, DataBatch
from headrace.raft.metadata_log import InconsistentMetadataLog
from headrace.raft.quorum import NotSoleVoter, Quorum
from headrace.raft.settings import QuorumSettings
from headrace.raft.snapshots import BOOTSTRAP_ID, SnapshotBuilder, SnapshotId, write_snapshot
from headrace.raft.voters import Voter
from headrace.testing.clock import ManualClock
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk, Operation
from tests.support_log import PausingDisk
from tests.support_metadata import on_loop

DIRECTORY_ID = UUID(int=0x1234)
ENDPOINTS = (("CONTROLLER", Address("host", 9093)),)
LOG = "/data/__cluster_metadata-0"


class Listened:
    """A listener that remembers what it was told."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.batches: list[DataBatch | ControlBatch] = []
        self.snapshot: SnapshotId | None = None

    def on_snapshot_batch(self, batch: DataBatch) -> None:
        self.values += batch.values

    def on_snapshot(self, snapshot_id: SnapshotId, timestamp: int) -> None:
        self.snapshot = snapshot_id

    def prepare(self, batch: DataBatch) -> Iterator[None]:
        return iter(())

    def on_committed(self, batch: DataBatch | ControlBatch) -> None:
        self.batches.append(batch)
        if isinstance(batch, DataBatch):
            self.values += batch.values

    @property
    def control(self) -> list[object]:
        return [
            record.message
            for batch in self.batches
            if isinstance(batch, ControlBatch)
            for record in batch.records
        ]


class Member:
    """One member in one process; `again` is the next process on the same disk."""

    def __init__(self, disk: MemoryDisk | None = None, **settings: Any) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = ManualClock()
        self.heard = Listened()
        self.health = DirectoryHealth("/data")
        self.given = settings
        fields: dict[str, Any] = {"static_voters": {1: Address("host", 9093)}, "endpoints": ENDPOINTS}
        self.quorum = Quorum.open(
            self.disk,
            self.clock,
            SeededEntropy(),
            self.health,
            QuorumSettings(1, "/data", DIRECTORY_ID, **{**fields, **settings}),
            self.heard,
        )

    def again(self) -> "Member":
        return Member(self.disk, **self.given)

    async def commit(self, *values: bytes) -> None:
        place = self.quorum.append(values)
        await self.quorum.committed(place.last_offset)


async def leader(disk: MemoryDisk | None = None, **settings: Any) -> Member:
    member = Member(disk, **settings)
    await member.quorum.lead()
    return member


async def chunks(*values: Sequence[bytes]) -> AsyncIterator[Sequence[bytes]]:
    for each in values:
        yield each


@on_loop
async def test_a_leader_begins_its_epoch_with_a_leader_change() -> None:
    member = await leader()
    assert member.quorum.epoch == 1
    assert member.quorum.high_watermark == 1
    (message,) = member.heard.control
    assert isinstance(message, LeaderChangeMessage)
    assert message.leader_id == 1
    assert [voter.voter_id for voter in message.voters] == [1]
    assert [voter.voter_id for voter in message.granting_voters] == [1]
    assert b'"leaderEpoch":1,"votedId":-1' in member.disk.read(f"{LOG}/quorum-state")


@on_loop
async def test_every_start_leads_in_an_epoch_of_its_own() -> None:
    member = await leader()
    for epoch in (2, 3, 4):
        member = member.again()
        await member.quorum.lead()
        assert member.quorum.epoch == epoch


@on_loop
async def test_an_epoch_is_not_used_twice_after_a_crash_in_the_election() -> None:
    for operations in range(40):
        disk = MemoryDisk()
        first = await leader(disk)
        await first.commit(b"a")
        disk.crash_after(operations)
        try:
            await first.again().quorum.lead()
        except Crashed:
            disk.crash(Loss.NOTHING)
            voted = disk.read(f"{LOG}/quorum-state")
        else:
            continue
        member = Member(disk)
        await member.quorum.lead()
        assert f'"leaderEpoch":{member.quorum.epoch},'.encode() not in voted
        assert member.heard.values == [b"a"]


@on_loop
async def test_values_are_heard_once_committed_and_in_order() -> None:
    member = await leader()
    first = member.quorum.append([b"a", b"b"])
    second = member.quorum.append([b"c"])
    assert (first.base_offset, first.last_offset, second.base_offset) == (1, 2, 3)
    assert member.heard.values == []
    await member.quorum.committed(second.last_offset)
    assert member.heard.values == [b"a", b"b", b"c"]
    assert member.quorum.high_watermark == 4


@on_loop
async def test_appends_made_during_a_sync_share_the_next_one() -> None:
    member = await leader()
    before = member.disk.operations["sync"]
    await member.commit(b"0")
    alone = member.disk.operations["sync"] - before
    before = member.disk.operations["sync"]
    await asyncio.gather(*(member.commit(b"%d" % number) for number in range(50)))
    assert member.disk.operations["sync"] - before <= 2 * alone


@on_loop
async def test_one_who_stops_waiting_does_not_stop_the_commit() -> None:
    member = await leader()
    place = member.quorum.append([b"a"])
    waiting = asyncio.ensure_future(member.quorum.committed(place.last_offset))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await member.quorum.committed(place.last_offset)
    assert member.heard.values == [b"a"]


@on_loop
async def test_a_restart_hands_over_the_whole_log() -> None:
    member = await leader()
    await member.commit(b"a", b"b")
    await member.commit(b"c")
    await member.quorum.close()
    again = member.again()
    assert again.heard.values == [b"a", b"b", b"c"]
    assert [batch.base_offset for batch in again.heard.batches] == [0, 1, 3]


@pytest.mark.parametrize("loss", list(Loss))
@on_loop
async def test_what_was_committed_is_there_after_a_crash_at_any_operation(loss: Loss) -> None:
    for operations in range(60):
        disk = MemoryDisk(entropy=SeededEntropy(operations))
        member = await leader(disk)
        committed: list[bytes] = []
        disk.crash_after(operations)
        try:
            for number in range(6):
                await member.commit(b"%d" % number)
                committed.append(b"%d" % number)
                if number == 3:
                    snapshot_id = SnapshotId(member.quorum.high_watermark, member.quorum.epoch)
                    await member.quorum.write_snapshot(snapshot_id, 0, chunks(list(member.heard.values)))
        except Crashed:
            pass
        disk.crash(loss)
        again = Member(disk)
        await again.quorum.lead()
        survived = again.heard.values
        assert survived[: len(committed)] == committed
        assert survived == [b"%d" % number for number in range(len(survived))]


@on_loop
async def test_a_failing_disk_commits_nothing_and_says_so() -> None:
    member = await leader()

    def is_sync(operation: Operation) -> bool:
        return operation.kind == "sync"

    member.disk.fail(errno.EIO, when=is_sync)
    with pytest.raises(LogDirectoryOffline):
        await member.commit(b"a")
    assert member.heard.values == []
    assert member.health.failure is not None
    with pytest.raises(LogDirectoryOffline):
        await member.commit(b"b")


@on_loop
async def test_a_snapshot_stands_for_the_log_before_it() -> None:
    member = await leader()
    await member.commit(b"a")
    await member.commit(b"b")
    snapshot_id = SnapshotId(3, 1)
    assert await member.quorum.write_snapshot(snapshot_id, 7, chunks([b"ab"]))
    assert not await member.quorum.write_snapshot(snapshot_id, 7, chunks([b"other"]))
    await member.commit(b"c")
    again = member.again()
    assert again.heard.snapshot == snapshot_id
    assert again.heard.values == [b"ab", b"c"]


@on_loop
async def test_a_snapshot_beyond_what_is_committed_is_refused() -> None:
    member = await leader()
    with pytest.raises(ValueError, match="committed log"):
        await member.quorum.write_snapshot(SnapshotId(99, 1), 0, chunks())


@on_loop
async def test_unfinished_and_retired_snapshots_are_removed_at_the_start() -> None:
    member = await leader()
    names = [
        "00000000000000000001-0000000001.checkpoint.part",
        "00000000000000000001-0000000001.checkpoint.deleted",
    ]
    for name in names:
        member.disk.replace(f"{LOG}/{name}", b"half")
    member.again()
    assert not set(names) & set(member.disk.list_directory(LOG))


def small_segments() -> dict[str, Any]:
    return {
        "log": LogSettings(retention_ms=-1, retention_bytes=-1, segment_bytes=400, segment_index_bytes=1000),
        "delete_delay_ms": 1_000,
    }


async def with_snapshots(retention: dict[str, Any]) -> Member:
    member = await leader(**small_segments(), **retention)
    for number in range(4):
        for _ in range(4):
            await member.commit(b"%d" % number * 60)
        snapshot_id = SnapshotId(member.quorum.high_watermark, 1)
        timestamp = member.clock.now_ms()
        await member.quorum.write_snapshot(snapshot_id, timestamp, chunks([b"up to %d" % number]))
        member.clock.advance(1_000)
    return member


@pytest.mark.parametrize("retention", [{"retention_bytes": 1_500}, {"retention_ms": 1_500}])
@on_loop
async def test_old_snapshots_go_and_the_log_before_them(retention: dict[str, Any]) -> None:
    member = await with_snapshots(retention)
    assert len(member.quorum.metadata_log.snapshots) == 4
    assert await member.quorum.clean()
    kept = member.quorum.metadata_log.snapshots
    assert 1 <= len(kept) < 4
    assert member.quorum.metadata_log.log.log_start_offset == kept[0].offset
    member.clock.advance(120_000)
    await member.quorum.clean()
    assert not [name for name in member.disk.list_directory(LOG) if name.endswith(".deleted")]
    again = member.again()
    assert again.heard.values == [b"up to 3"]
    assert again.quorum.metadata_log.snapshots[-1] == kept[-1]


@on_loop
async def test_the_last_snapshot_stays_however_old() -> None:
    member = await with_snapshots({"retention_ms": 0, "retention_bytes": 0})
    member.clock.advance(10**9)
    await member.quorum.clean()
    assert len(member.quorum.metadata_log.snapshots) == 1
    assert member.again().heard.values == [b"up to 3"]


@on_loop
async def test_a_log_that_lacks_its_beginning_and_the_snapshot_of_it_is_refused() -> None:
    member = await with_snapshots({"retention_ms": 1_500})
    await member.quorum.clean()
    for snapshot_id in member.quorum.metadata_log.snapshots:
        member.disk.remove(f"{LOG}/{snapshot_id.file_name}")
    with pytest.raises(InconsistentMetadataLog, match="no snapshot"):
        member.again()


@on_loop
async def test_a_snapshot_that_reaches_beyond_the_log_goes_before_it() -> None:
    member = await leader()
    await member.commit(b"a")
    await member.quorum.close()
    builder = SnapshotBuilder(1, 1, 5)
    builder.add([b"from elsewhere"])
    write_snapshot(member.disk, LOG, SnapshotId(40, 5), builder.finish())
    again = member.again()
    assert again.heard.values == [b"from elsewhere"]
    await again.quorum.lead()
    assert again.quorum.epoch == 6
    assert again.heard.batches[-1].base_offset == 40


def standalone(disk: MemoryDisk, voter: Voter) -> dict[str, Any]:
    disk.make_directory(LOG)
    builder = SnapshotBuilder(1, 1, kraft_version=1, voters=(voter,))
    write_snapshot(disk, LOG, BOOTSTRAP_ID, builder.finish())
    return {"static_voters": {}}


@on_loop
async def test_with_kraft_version_1_the_first_leader_writes_the_voters_into_the_log() -> None:
    disk = MemoryDisk()
    settings = standalone(disk, Voter(1, DIRECTORY_ID, ENDPOINTS))
    member = await leader(disk, **settings)
    kinds = [type(message) for message in member.heard.control]
    assert kinds == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert b'"data_version":1' in disk.read(f"{LOG}/quorum-state")
    assert member.quorum.kraft_version == 1
    again = member.again()
    await again.quorum.lead()
    assert [type(message) for message in again.heard.control[3:]] == [LeaderChangeMessage]


@on_loop
async def test_a_voter_that_moved_writes_its_new_address() -> None:
    disk = MemoryDisk()
    settings = standalone(disk, Voter(1, DIRECTORY_ID, ENDPOINTS))
    await leader(disk, **settings)
    moved = (("CONTROLLER", Address("elsewhere", 9093)),)
    member = await leader(disk, **settings, endpoints=moved)
    assert member.quorum.voters == (Voter(1, DIRECTORY_ID, moved),)


@on_loop
async def test_snapshots_of_kraft_version_1_keep_the_voters() -> None:
    disk = MemoryDisk()
    settings = standalone(disk, Voter(1, DIRECTORY_ID, ENDPOINTS))
    member = await leader(disk, **settings)
    await member.commit(b"a")
    await member.quorum.write_snapshot(SnapshotId(4, 1), 1, chunks([b"a"]))
    again = member.again()
    assert again.quorum.kraft_version == 1
    assert again.quorum.voters == (Voter(1, DIRECTORY_ID, ENDPOINTS),)
    assert again.heard.values == [b"a"]


@on_loop
async def test_kraft_version_can_be_raised_but_not_lowered() -> None:
    member = await leader()
    member.quorum.upgrade_kraft_version(1, validate_only=True)
    assert member.quorum.kraft_version == 0
    member.quorum.upgrade_kraft_version(1)
    assert member.quorum.kraft_version == 1
    await member.commit(b"a")
    with pytest.raises(KafkaError) as refused:
        member.quorum.upgrade_kraft_version(0)
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
    again = member.again()
    assert again.quorum.voters == (Voter(1, DIRECTORY_ID, ENDPOINTS),)


@pytest.mark.parametrize("voters", [{}, {2: Address("host", 9093)}, {1: Address("a", 1), 2: Address("b", 2)}])
def test_a_node_that_is_not_the_only_voter_does_not_lead(voters: dict[int, Address]) -> None:
    with pytest.raises(NotSoleVoter, match=r"controller\.quorum\.voters"):
        Member(static_voters=voters)


def test_a_voter_with_another_directory_is_not_this_node() -> None:
    disk = MemoryDisk()
    settings = standalone(disk, Voter(1, UUID(int=99), ENDPOINTS))
    with pytest.raises(NotSoleVoter, match="directory"):
        Member(disk, **settings)


def test_nobody_appends_without_leading() -> None:
    with pytest.raises(KafkaError) as refused:
        Member().quorum.append([b"a"])
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


@on_loop
async def test_a_batch_beyond_the_limit_is_refused_and_leaves_nothing() -> None:
    member = await leader(batch_bytes_max=200)
    with pytest.raises(KafkaError) as refused:
        member.quorum.append([b"x" * 200])
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
    await member.commit(b"small")
    assert member.heard.values == [b"small"]


@on_loop
async def test_a_batch_larger_than_one_read_is_replayed() -> None:
    member = await leader()
    large = [b"%d" % number * 1000 for number in range(500)]
    await member.commit(*large)
    await member.commit(b"small")
    assert member.again().heard.values == [*large, b"small"]


@on_loop
async def test_segments_roll_and_all_of_them_are_replayed() -> None:
    member = await leader(**small_segments())
    values = [b"%03d" % number for number in range(60)]
    for value in values:
        await member.commit(value)
    assert len([name for name in member.disk.list_directory(LOG) if name.endswith(".log")]) > 5
    member.disk.crash(Loss.EVERYTHING)
    assert member.again().heard.values == values


@on_loop
async def test_bytes_that_take_the_place_of_truncated_ones_during_a_sync_are_synced_too() -> None:
    disk = PausingDisk()
    member = await leader(disk)
    await member.commit(b"a")
    metadata_log = member.quorum.metadata_log
    disk.gate.clear()
    end = member.quorum.append([b"gone"]).base_offset
    flush = asyncio.create_task(metadata_log.flush(0))
    await asyncio.sleep(0)
    metadata_log.log.truncate_to(end, 0)
    member.quorum.append([b"kept"])
    assert b"gone" in (disk.durable(metadata_log.log.segments.active.log.path) or b"")
    disk.gate.set()
    await flush
    assert metadata_log.log.recovery_point == metadata_log.log.log_end_offset == end + 1
    assert b"kept" in (disk.durable(metadata_log.log.segments.active.log.path) or b"")
