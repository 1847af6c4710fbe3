"""In which directory a broker's replicas lie, and what becomes of them when one fails or is cordoned."""

from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.ids import UNASSIGNED_DIRECTORY
from headrace.metadata.partitions import NO_LEADER
from headrace.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsRequestDirectoryData,
    AssignReplicasToDirsRequestPartitionData,
    AssignReplicasToDirsRequestTopicData,
)
from tests.support_metadata import DATA, STATIC, MetadataNode, on_loop


async def with_two_directories() -> tuple[MetadataNode, UUID, UUID]:
    node = MetadataNode(texts={**STATIC, "log.dirs": f"{DATA},/more"})
    node.format()
    await node.start()
    ids = node.metadata.directories.ids
    return node, ids[DATA], ids["/more"]


def assignment(
    node: MetadataNode, directory: UUID, topic_id: UUID, *indexes: int
) -> AssignReplicasToDirsRequest:
    partitions = [AssignReplicasToDirsRequestPartitionData(partition_index=index) for index in indexes]
    topic = AssignReplicasToDirsRequestTopicData(topic_id=topic_id, partitions=partitions)
    return AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=node.metadata.broker_epoch,
        directories=[AssignReplicasToDirsRequestDirectoryData(id=directory, topics=[topic])],
    )


@on_loop
async def test_the_broker_says_where_its_replicas_lie() -> None:
    node, first, second = await with_two_directories()
    topic_id = (await node.create("t", 2)).topic_id
    assert node.image.topics["t"].partitions[0].directories == (UNASSIGNED_DIRECTORY,)
    await node.metadata.assign_directories({(topic_id, 0): first, (topic_id, 1): second})
    found = node.image.topics["t"].partitions
    assert [found[index].directories for index in (0, 1)] == [(first,), (second,)]
    assert [found[index].leader_epoch for index in (0, 1)] == [0, 0]
    before = node.metadata.quorum.next_offset
    await node.metadata.assign_directories({(topic_id, 0): first})
    assert node.metadata.quorum.next_offset == before
    again = node.restarted()
    await again.start()
    assert again.image.topics["t"].partitions[1].directories == (second,)


@on_loop
async def test_each_partition_is_answered_by_itself() -> None:
    node, first, _ = await with_two_directories()
    topic_id = (await node.create("t")).topic_id
    controller = node.metadata.controller

    async def codes(topic: UUID, *indexes: int) -> list[int]:
        reply = await controller.assign_replicas_to_dirs(assignment(node, first, topic, *indexes))
        return [each.error_code for each in reply.directories[0].topics[0].partitions]

    assert await codes(topic_id, 0, 7) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await codes(UUID(int=99), 0) == [ErrorCode.UNKNOWN_TOPIC_ID]
    stale = assignment(node, first, topic_id, 0)
    stale.broker_epoch = 1
    with pytest.raises(KafkaError) as refused:
        await controller.assign_replicas_to_dirs(stale)
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


@on_loop
async def test_partitions_of_a_failed_directory_have_no_leader_until_it_is_back() -> None:
    node, first, second = await with_two_directories()
    topic_id = (await node.create("t", 2)).topic_id
    await node.metadata.assign_directories({(topic_id, 0): first, (topic_id, 1): second})
    await node.metadata.report_directories([second])
    assert [node.image.topics["t"].partitions[index].leader for index in (0, 1)] == [1, NO_LEADER]
    assert node.image.brokers[1].log_dirs == (first,)
    again = node.restarted()
    await again.start()
    assert [again.image.topics["t"].partitions[index].leader for index in (0, 1)] == [1, 1]


@on_loop
async def test_a_failure_leaves_cordoned_directories_cordoned() -> None:
    node, first, second = await with_two_directories()
    await node.metadata.report_directories([], [first])
    assert node.image.brokers[1].cordoned_log_dirs == (first,)
    await node.metadata.report_directories([second])
    broker = node.image.brokers[1]
    assert (broker.cordoned_log_dirs, broker.log_dirs, broker.takes_partitions) == ((first,), (first,), False)
    await node.metadata.report_directories([], [])
    assert node.image.brokers[1].takes_partitions


@on_loop
async def test_before_3_7_directories_are_not_noted() -> None:
    node = MetadataNode()
    node.format("3.6")
    await node.start()
    topic_id = (await node.create("t")).topic_id
    before = node.metadata.quorum.next_offset
    await node.metadata.assign_directories({(topic_id, 0): UUID(int=500)})
    assert node.metadata.quorum.next_offset == before
    with pytest.raises(KafkaError) as refused:
        await node.metadata.controller.assign_replicas_to_dirs(assignment(node, UUID(int=500), topic_id, 0))
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION
