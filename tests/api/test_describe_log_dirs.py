"""DescribeLogDirs: what is where, how large it is, and how much room is left."""

from typing import Any

import pytest

from headrace.api.k34_alter_replica_log_dirs import API as ALTER
from headrace.api.k35_describe_log_dirs import API
from headrace.errors import ErrorCode
from headrace.metadata.versions import LATEST, METADATA_VERSION
from headrace.protocol.codec import decode, encode
from headrace.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from headrace.replication.log_directories import directory_path
from headrace.testing.memory_disk import MemoryDisk
from tests.support_data import (
    FIRST_DIRECTORY,
    IDS,
    NODE,
    SECOND_DIRECTORY,
    TOPIC,
    DataNode,
    batch,
    start_node,
)
from tests.support_log import on_loop

BOTH = (FIRST_DIRECTORY, SECOND_DIRECTORY)


async def two_directories(**fields: Any) -> DataNode:
    node = await start_node(directories=BOTH, **fields)
    node.services.image.features[METADATA_VERSION] = int(LATEST)
    for index in range(4):
        node.assign(partition=index, directory=IDS[BOTH[index % 2]])
    return node


async def describe(
    node: DataNode, wanted: list[int] | None = None, version: int = 5
) -> dict[str, DescribeLogDirsResult]:
    topics = None if wanted is None else [DescribableLogDirTopic(topic=TOPIC, partitions=wanted)]
    sent = encode(await node.ask(API, DescribeLogDirsRequest(topics=topics), version), version)
    response = decode(DescribeLogDirsResponse, version, sent)
    assert response.error_code == ErrorCode.NONE
    return {result.log_dir: result for result in response.results}


def partitions(result: DescribeLogDirsResult) -> dict[int, DescribeLogDirsPartition]:
    return {each.partition_index: each for topic in result.topics for each in topic.partitions}


@pytest.mark.parametrize("version", range(API.versions[0], API.versions[1] + 1))
@on_loop
async def test_every_version_tells_sizes_by_directory(version: int) -> None:
    node = await two_directories()
    node.append(3, index=2)
    found = await describe(node, version=version)
    assert list(found) == list(BOTH)
    assert sorted(partitions(found[FIRST_DIRECTORY])) == [0, 2]
    size = partitions(found[FIRST_DIRECTORY])[2].partition_size
    assert size == len(batch(3))
    assert (found[FIRST_DIRECTORY].total_bytes == -1) == (version < 4)


@on_loop
async def test_only_what_was_asked_for_is_told() -> None:
    node = await two_directories()
    found = await describe(node, [1, 99])
    assert found[FIRST_DIRECTORY].topics == []
    assert list(partitions(found[SECOND_DIRECTORY])) == [1]


@on_loop
async def test_the_room_on_the_medium_is_told() -> None:
    node = await two_directories(disk=MemoryDisk(capacity_bytes=10**9))
    found = (await describe(node))[FIRST_DIRECTORY]
    assert found.total_bytes == 10**9
    assert 0 < found.usable_bytes <= 10**9


@on_loop
async def test_an_offline_directory_is_told_with_an_error() -> None:
    """Promise 30."""
    node = await two_directories()
    node.replicas.directories.fail(SECOND_DIRECTORY, "pulled out")
    found = await describe(node)
    assert found[SECOND_DIRECTORY].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert found[SECOND_DIRECTORY].topics == []
    assert found[FIRST_DIRECTORY].error_code == ErrorCode.NONE


@on_loop
async def test_a_future_log_is_told_with_its_lag() -> None:
    node = await two_directories()
    node.append(5)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=SECOND_DIRECTORY, topics=[AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
            )
        ]
    )
    await node.ask(ALTER, request)
    future = partitions((await describe(node))[SECOND_DIRECTORY])[0]
    assert (future.is_future_key, future.offset_lag) == (True, 5)
    await node.replicas.background.wait()
    found = await describe(node)
    assert not partitions(found[SECOND_DIRECTORY])[0].is_future_key
    assert 0 not in partitions(found[FIRST_DIRECTORY])


@on_loop
async def test_cordoned_directories_are_told_where_the_metadata_knows_of_them() -> None:
    node = await two_directories()
    node.replicas.directories.cordoned = [FIRST_DIRECTORY]
    has_cordons = node.services.image.metadata_version.has_cordoned_log_dirs
    found = await describe(node)
    assert found[FIRST_DIRECTORY].is_cordoned == has_cordons
    assert not found[SECOND_DIRECTORY].is_cordoned
    node.assign(partition=9)
    assert directory_path(node.partition(TOPIC, 9).leader_log) == SECOND_DIRECTORY


@on_loop
async def test_a_follower_lags_by_what_it_has_not_got_of_the_high_watermark() -> None:
    node = await two_directories()
    node.assign(partition=0, replicas=(NODE, 2), leader=2, leader_epoch=1, partition_epoch=1)
    assert partitions((await describe(node))[FIRST_DIRECTORY])[0].offset_lag == 0
