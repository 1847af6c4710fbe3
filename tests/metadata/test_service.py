"""The metadata of a node as a whole: restarts, snapshots, commits, and crashes at any operation."""

import asyncio
import errno

import pytest

from headrace.errors import ErrorCode
from headrace.log.log_errors import LogDirectoryOffline
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.ids import random_id
from headrace.metadata.image import MetadataImage
from headrace.metadata.service import MetadataService
from headrace.protocol.disk_records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    TopicRecord,
)
from headrace.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.delete_topics import DeleteTopicsRequest
from headrace.raft.snapshots import SnapshotId
from headrace.testing.entropy import SeededEntropy
from headrace.testing.memory_disk import Crashed, Loss, MemoryDisk, Operation
from tests.support_metadata import DATA, STANDALONE, STATIC, MetadataNode, on_loop, started

LOG = f"{DATA}/__cluster_metadata-0"


@on_loop
async def test_a_fresh_log_begins_with_the_bootstrap_records_in_a_transaction() -> None:
    node = await started()
    records = node.records()
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[8], EndTransactionRecord)
    assert node.image.broker_config(None) == {"min.insync.replicas": "1"}
    assert node.image.feature_level("metadata.version") == 30


@on_loop
async def test_before_3_6_there_are_no_transactions() -> None:
    node = MetadataNode()
    node.format("3.5")
    await node.start()
    assert not any(isinstance(record, BeginTransactionRecord) for record in node.records())
    assert node.image.feature_level("metadata.version") == 11


@on_loop
async def test_a_node_without_bootstrap_file_begins_with_the_latest_version() -> None:
    node = MetadataNode()
    node.format()
    node.disk.remove(f"{DATA}/bootstrap.checkpoint")
    await node.start()
    assert node.image.features == {"metadata.version": 30}


@on_loop
async def test_an_open_transaction_of_a_former_leader_is_aborted() -> None:
    node = await started()
    await node.create("kept")
    half = [
        BeginTransactionRecord(name="half"),
        TopicRecord(name="half", topic_id=random_id(SeededEntropy(5))),
    ]
    await node.metadata.controller.activate(half)
    again = node.restarted()
    await again.start()
    assert any(isinstance(record, AbortTransactionRecord) for record in again.records())
    assert list(again.image.topics) == ["kept"]
    assert (await again.create("half")).error_code == ErrorCode.NONE
    third = again.restarted()
    await third.start()
    assert sorted(third.image.topics) == ["half", "kept"]


@on_loop
async def test_a_standalone_node_keeps_its_voters_in_the_log() -> None:
    node = MetadataNode(texts=STANDALONE)
    node.format(standalone=True)
    await node.start()
    assert node.metadata.controller.kraft_version == 1
    await node.create("t")
    await node.metadata.take_snapshot()
    await node.stop()
    again = node.restarted()
    await again.start()
    assert again.metadata.controller.kraft_version == 1
    assert [voter.id for voter in again.metadata.quorum.voters] == [1]
    assert list(again.image.topics) == ["t"]


@on_loop
async def test_the_same_seed_writes_the_same_bytes() -> None:
    async def history() -> bytes:
        node = await started(seed=11)
        await node.create("a", 3)
        await node.create("b", cleanup_policy="compact")
        return node.disk.read(f"{LOG}/00000000000000000000.log")

    assert await history() == await history()


@on_loop
async def test_requests_need_not_wait_for_each_others_sync_but_see_each_other() -> None:
    node = await started()
    results = await asyncio.gather(*(node.create("same") for _ in range(3)), node.create("other"))
    assert sorted(result.error_code for result in results) == [0, 0, 36, 36]
    assert sorted(node.image.topics) == ["other", "same"]


@on_loop
async def test_subscribers_are_told_before_the_reply_leaves() -> None:
    node = await started()
    heard: list[list[str]] = []

    def on_change(delta: MetadataDelta, image: MetadataImage) -> None:
        heard.append([image.topics_by_id[each].name for each in delta.topics_created])

    node.metadata.subscribe(on_change)
    await node.create("t")
    assert heard == [["t"]]


@on_loop
async def test_a_refusal_waits_for_what_it_is_based_on() -> None:
    node = await started()
    seen: list[bool] = []

    async def second() -> None:
        result = await node.create("t")
        assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        seen.append("t" in node.image.topics)

    await asyncio.gather(node.create("t"), second())
    assert seen == [True]


@on_loop
async def test_nothing_is_acknowledged_that_could_not_be_written() -> None:
    node = await started()

    def is_log(operation: Operation) -> bool:
        return operation.kind == "append" and operation.path.endswith(".log")

    node.disk.fail(errno.ENOSPC, when=is_log)
    with pytest.raises(LogDirectoryOffline):
        await node.create("t")
    assert "t" not in node.image.topics
    with pytest.raises(LogDirectoryOffline):
        await node.create("u")


@on_loop
async def test_a_snapshot_is_taken_once_enough_was_written() -> None:
    node = await started(metadata_log_max_record_bytes_between_snapshots="2000")
    for number in range(40):
        await node.create(f"t{number}")
        await node.metadata.tick()
    snapshots = node.metadata.quorum.metadata_log.snapshots
    assert 1 < len(snapshots) < 10
    again = node.restarted()
    await again.start()
    assert len(again.image.topics) == 40


@on_loop
async def test_a_snapshot_is_taken_after_a_while_if_there_is_anything_new() -> None:
    node = await started(metadata_log_max_snapshot_interval_ms="1000")
    await node.metadata.tick()
    assert not node.metadata.quorum.metadata_log.snapshots
    node.clock.advance(1_000)
    await node.metadata.tick()
    assert node.metadata.quorum.metadata_log.snapshots == (SnapshotId(node.image.offset + 1, 1),)
    node.clock.advance(5_000)
    await node.metadata.tick()
    assert len(node.metadata.quorum.metadata_log.snapshots) == 1


@on_loop
async def test_an_interval_of_zero_means_never() -> None:
    node = await started(metadata_log_max_snapshot_interval_ms="0")
    node.clock.advance(10**9)
    await node.metadata.tick()
    assert node.metadata.quorum.metadata_log.snapshots == ()


@on_loop
async def test_others_get_their_turn_while_a_snapshot_is_taken() -> None:
    node = await started()
    await node.create("large", 2_000)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    done = asyncio.Event()
    task = asyncio.ensure_future(others())
    await node.metadata.take_snapshot()
    done.set()
    await task
    assert turns > 20
    again = node.restarted()
    await again.start()
    assert len(again.image.topics["large"].partitions) == 2_000


@on_loop
async def test_a_change_during_a_snapshot_is_not_in_it_and_not_lost() -> None:
    node = await started()
    await node.create("large", 500)
    _, result = await asyncio.gather(node.metadata.take_snapshot(), node.create("meanwhile"))
    assert result.error_code == ErrorCode.NONE
    again = node.restarted()
    await again.start()
    assert sorted(again.image.topics) == ["large", "meanwhile"]


@on_loop
async def test_old_snapshots_and_segments_go() -> None:
    texts = {
        **STATIC,
        "internal.metadata.log.segment.bytes": "4096",
        "metadata.max.retention.bytes": "8000",
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "internal.metadata.delete.delay.millis": "1",
    }
    node = MetadataNode(texts=texts)
    node.format()
    await node.start()
    for number in range(120):
        await node.create(f"t{number % 3}", cleanup_policy="compact")
        await node.metadata.controller.delete_topics(DeleteTopicsRequest(topic_names=[f"t{number % 3}"]))
        node.clock.advance(60_001)
        await node.metadata.tick()
    metadata_log = node.metadata.quorum.metadata_log
    assert metadata_log.log.log_start_offset > 0
    assert len(metadata_log.snapshots) <= 4
    assert metadata_log.log.size < 20_000
    assert len(node.disk.list_directory(LOG)) < 40
    await node.create("last")
    again = node.restarted()
    await again.start()
    assert list(again.image.topics) == ["last"]


@pytest.mark.parametrize("loss", list(Loss))
@on_loop
async def test_acknowledged_metadata_survives_a_crash_at_any_operation(loss: Loss) -> None:
    for operations in range(0, 120, 3):
        disk = MemoryDisk(entropy=SeededEntropy(operations))
        node = MetadataNode(disk)
        node.format()
        disk.crash_after(operations)
        acknowledged: dict[str, object] = {}
        try:
            await node.start()
            for number in range(4):
                result = await node.create(f"t{number}", retention_ms=str(number))
                acknowledged[f"t{number}"] = result.topic_id
                if number == 1:
                    await node.metadata.take_snapshot()
            await node.stop()
        except Crashed:
            pass
        disk.crash(loss)
        again = node.restarted()
        await again.start()
        for name, topic_id in acknowledged.items():
            assert again.image.topics[name].id == topic_id
            assert again.image.topic_config(name) == {"retention.ms": name[1:]}
            assert again.image.topics[name].partitions[0].leader == 1
        assert len(again.image.topics) <= len(acknowledged) + 1


@on_loop
async def test_a_request_leads_to_batches_of_bounded_size() -> None:
    node = await started()
    response = await node.metadata.controller.create_topics(
        CreateTopicsRequest(
            topics=[CreatableTopic(name=f"t{n}", num_partitions=500, replication_factor=1) for n in range(8)]
        )
    )
    assert {each.error_code for each in response.topics} == {0}
    again = node.restarted()
    service: MetadataService = await again.start()
    assert sum(len(topic.partitions) for topic in service.image.topics.values()) == 4_000
    assert all(p.leader == 1 for topic in service.image.topics.values() for p in topic.partitions.values())


@on_loop
async def test_metadata_may_have_a_directory_of_its_own() -> None:
    node = MetadataNode(texts={**STATIC, "metadata.log.dir": "/meta"})
    assert node.format() == [
        f"Formatting data directory {DATA} with metadata.version 4.3-IV0.",
        "Formatting metadata directory /meta with metadata.version 4.3-IV0.",
    ]
    await node.start()
    await node.create("t")
    assert node.disk.exists("/meta/__cluster_metadata-0/quorum-state")
    assert not node.disk.exists(LOG)
    assert node.image.brokers[1].log_dirs == (node.metadata.directories.ids[DATA],)
    await node.stop()
    again = node.restarted()
    await again.start()
    assert again.image.topics["t"].partitions[0].leader == 1
