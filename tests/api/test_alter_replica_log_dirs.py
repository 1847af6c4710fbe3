"""AlterReplicaLogDirs: partitions move between directories while they are in use."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.api.k21_delete_records import API as DELETE
from headrace.api.k34_alter_replica_log_dirs import API
from headrace.errors import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.replication import log_directories, moves
from headrace.replication.log_directories import directory_path
from headrace.testing.memory_disk import Loss
from tests.support_data import (
    FIRST_DIRECTORY,
    IDS,
    NODE,
    SECOND_DIRECTORY,
    TOPIC,
    DataNode,
    batch,
    start_node,
    topic_id_of,
)
from tests.support_log import content, on_loop

BOTH = (FIRST_DIRECTORY, SECOND_DIRECTORY)


async def ask(
    node: DataNode, wanted: Mapping[int, str], topic: str = TOPIC, version: int = 2
) -> dict[int, int]:
    """Error codes by partition."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])
        for index, path in wanted.items()
    ]
    response: Any = await node.ask(API, AlterReplicaLogDirsRequest(dirs=dirs), version)
    return {
        result.partition_index: result.error_code for found in response.results for result in found.partitions
    }


async def filled(batches: int = 20) -> DataNode:
    """A partition in the first directory, with records, a moved start and an epoch without records."""
    node = await start_node(directories=BOTH)
    node.assign(directory=IDS[FIRST_DIRECTORY])
    for _ in range(batches):
        node.append(3, value=b"v" * 500)
    node.partition().delete_records(4)
    node.assign(leader_epoch=3, partition_epoch=1, directory=IDS[FIRST_DIRECTORY])
    return node


def home(node: DataNode) -> str:
    return directory_path(node.partition().leader_log)


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
@on_loop
async def test_a_partition_moves_with_everything_it_has(version: int) -> None:
    node = await filled()
    before = content(node.partition().leader_log)
    assert await ask(node, {0: SECOND_DIRECTORY}, version=version) == {0: ErrorCode.NONE}
    await node.replicas.background.wait()
    log = node.partition().leader_log
    assert home(node) == SECOND_DIRECTORY
    assert content(log) == before
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 60, 60)
    assert [entry.epoch for entry in log.epochs.entries] == [0, 3]
    assert node.events.assigned[-1] == (topic_id_of(TOPIC), 0, IDS[SECOND_DIRECTORY])
    assert node.partition().future_log is None
    assert [name.endswith("-delete") for name in node.disk.list_directory(FIRST_DIRECTORY)] == [True]


@on_loop
async def test_appends_go_on_while_the_partition_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 2_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    turns = 0
    while len(node.replicas.moves):
        node.append(1) if turns % 2 else None
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10, "a move takes one slice per turn of the loop"
    appended = node.append(1)
    assert home(node) == SECOND_DIRECTORY
    found = content(node.partition().leader_log)
    assert found.endswith(batch(1)[61:])
    assert appended == node.partition().leader_log.log_end_offset - 1


@on_loop
async def test_a_producer_is_known_after_the_move() -> None:
    node = await start_node(directories=BOTH)
    node.assign(directory=IDS[FIRST_DIRECTORY])
    sent = batch(2, producer_id=7, epoch=0, sequence=0)
    first = node.partition().append(bytearray(sent), 1, node.clock.now_ms())
    await ask(node, {0: SECOND_DIRECTORY})
    await node.replicas.background.wait()
    again = node.partition().append(bytearray(sent), 1, node.clock.now_ms())
    assert (again.is_duplicate, again.first_offset) == (True, first.first_offset)


@on_loop
async def test_naming_the_present_directory_calls_a_move_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 1_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    assert node.partition().future_log is not None
    assert await ask(node, {0: FIRST_DIRECTORY}) == {0: ErrorCode.NONE}
    await node.replicas.background.wait()
    assert (home(node), node.partition().future_log) == (FIRST_DIRECTORY, None)
    assert [name.endswith("-delete") for name in node.disk.list_directory(SECOND_DIRECTORY)] == [True]


@on_loop
async def test_a_move_that_takes_the_place_of_another_is_known_until_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 1_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    await ask(node, {0: FIRST_DIRECTORY})
    await ask(node, {0: SECOND_DIRECTORY})
    for _ in range(5):
        await asyncio.sleep(0)
    assert home(node) == FIRST_DIRECTORY
    assert len(node.replicas.moves) == 1
    await node.replicas.moves.stop()
    assert home(node) == FIRST_DIRECTORY


@pytest.mark.parametrize("cleanly", [True, False])
@on_loop
async def test_a_move_goes_on_after_a_restart(cleanly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 1_000)
    node = await filled()
    before = content(node.partition().leader_log)
    await ask(node, {0: SECOND_DIRECTORY})
    for _ in range(5):
        await asyncio.sleep(0)
    assert home(node) == FIRST_DIRECTORY
    if cleanly:
        await node.replicas.close(node.clock.now_ms())
    else:
        await node.replicas.moves.stop()
        await node.partition().leader_log.flush(node.clock.now_ms())
        for directory in node.replicas.directories:
            await directory.write_log_starts()
        node.disk.crash(Loss.EVERYTHING)
    node = await start_node(node.disk, node.clock, node.cluster, directories=BOTH)
    await node.replicas.background.wait()
    assert home(node) == SECOND_DIRECTORY
    assert content(node.partition().leader_log) == before


@on_loop
async def test_a_move_that_the_controller_knows_to_be_done_is_finished_at_the_start() -> None:
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    await node.replicas.close(node.clock.now_ms())
    assignment = node.cluster.assignments.popitem()[1]
    node.cluster.assignments[assignment.partition] = type(assignment)(
        assignment.partition,
        assignment.topic_id,
        (NODE,),
        (NODE,),
        NODE,
        4,
        4,
        IDS[SECOND_DIRECTORY],
    )
    node = await start_node(node.disk, node.clock, node.cluster, directories=BOTH)
    assert home(node) == SECOND_DIRECTORY
    assert not len(node.replicas.moves)


@on_loop
async def test_what_can_not_be_moved_says_why() -> None:
    node = await filled()
    node.assign(partition=1, replicas=(NODE, 2), leader=2)
    node.replicas.drop(node.partition(TOPIC, 1).name, topic_id_of(TOPIC), node.clock.now_ms())
    assert await ask(node, {0: "/elsewhere"}) == {0: ErrorCode.LOG_DIR_NOT_FOUND}
    assert await ask(node, {7: SECOND_DIRECTORY}) == {7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await ask(node, {1: SECOND_DIRECTORY}) == {1: ErrorCode.REPLICA_NOT_AVAILABLE}
    assert await ask(node, {0: SECOND_DIRECTORY}, "t" * 240) == {0: ErrorCode.INVALID_TOPIC_EXCEPTION}
    node.replicas.directories.cordoned = [SECOND_DIRECTORY]
    assert await ask(node, {0: SECOND_DIRECTORY}) == {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    node.replicas.directories.fail(SECOND_DIRECTORY, "pulled out")
    assert await ask(node, {0: SECOND_DIRECTORY}) == {0: ErrorCode.KAFKA_STORAGE_ERROR}


@on_loop
async def test_a_partition_that_comes_later_is_made_where_it_was_wanted() -> None:
    node = await start_node(directories=BOTH)
    await ask(node, {0: SECOND_DIRECTORY})
    node.assign()
    assert home(node) == SECOND_DIRECTORY


@on_loop
async def test_a_target_that_fails_leaves_the_partition_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 30."""
    monkeypatch.setattr(moves, "SLICE_BYTES", 1_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    node.disk.fail(28, when=lambda operation: operation.path.startswith(SECOND_DIRECTORY))
    await node.replicas.background.wait()
    assert node.events.failed == [SECOND_DIRECTORY]
    assert (home(node), node.partition().is_offline) == (FIRST_DIRECTORY, False)
    assert node.append(1) == 60


@on_loop
async def test_the_deletion_of_a_topic_ends_its_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 1_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    node.delete_topic()
    await node.replicas.background.wait()
    for path in BOTH:
        assert all(name.endswith("-delete") for name in node.disk.list_directory(path))


@on_loop
async def test_moves_keep_to_their_bytes_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "SLICE_BYTES", 2_000)
    waited: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await real_sleep(0)

    node = await filled()
    size = node.partition().leader_log.size
    node.replicas.moves.bytes_per_second = 1_000
    with monkeypatch.context() as patched:
        patched.setattr(moves.asyncio, "sleep", sleep)  # type: ignore[attr-defined]
        await ask(node, {0: SECOND_DIRECTORY})
        await node.replicas.background.wait()
    assert home(node) == SECOND_DIRECTORY
    # What is paid for in advance adds up, so the last wait is as long as the whole move should take.
    assert max(waited) == pytest.approx(size / 1_000, rel=0.1)


@on_loop
async def test_records_can_be_deleted_while_their_partition_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Promise 26: the future log counts as a replica."""
    monkeypatch.setattr(moves, "SLICE_BYTES", 2_000)
    node = await filled()
    await ask(node, {0: SECOND_DIRECTORY})
    await asyncio.sleep(0)
    topics = [
        DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=50)])
    ]
    response = await node.ask(DELETE, DeleteRecordsRequest(topics=topics, timeout_ms=600_000))
    assert [each.low_watermark for each in response.topics[0].partitions] == [50]
    await node.replicas.background.wait()
    assert node.partition().leader_log.log_start_offset == 50


@on_loop
async def test_wishes_for_partitions_that_never_come_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_directories, "PREFERENCES_MAX", 3)
    node = await start_node(directories=BOTH)
    for index in (0, 1, 2, 0, 3):
        await ask(node, {index: SECOND_DIRECTORY})
    assert [name.partition for name in node.replicas.directories.preferred] == [2, 0, 3]
    node.assign(partition=3)
    assert directory_path(node.partition(TOPIC, 3).leader_log) == SECOND_DIRECTORY
    assert len(node.replicas.directories.preferred) == 2
