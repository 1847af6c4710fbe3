"""The writer and a real node: rows arrive, survive the node's death, and are all there after a close."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig
from headrace.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.records.arrow_reader import read_columns

if TYPE_CHECKING:
    from tests.support_node import RunningNode


def with_cluster(
    node: "RunningNode", use: Callable[[Cluster], Coroutine[Any, Any, None]], **settings: Any
) -> None:
    async def main() -> None:
        async with Cluster(ClientConfig(bootstrap_servers=(node.bootstrap,), **settings)) as cluster:
            await use(cluster)

    asyncio.run(main())


async def create(cluster: Cluster, partitions: int = 1) -> str:
    topic = CreatableTopic(name=f"t-{uuid4()}", num_partitions=partitions, replication_factor=1)
    reply: CreateTopicsResponse = await cluster.send_controller(
        CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    )
    assert [each.error_code for each in reply.topics] == [0]
    return topic.name


async def read(cluster: Cluster, topic: str, partition: int = 0) -> list[bytes]:
    """All values of a partition."""
    found: list[bytes] = []
    known = (await cluster.topics([topic]))[topic]
    leader = await cluster.leader(topic, partition)
    while True:
        part = FetchPartition(partition=partition, fetch_offset=len(found), partition_max_bytes=2**26)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=2**26,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, topic_id=known.topic_id, partitions=[part])],
        )
        reply: FetchResponse = await cluster.send(leader.node_id, request)
        ((answer,),) = [each.partitions for each in reply.responses]
        assert answer.error_code == 0
        rows = read_columns(bytes(answer.records or b""))  # type: ignore[arg-type]
        if not rows.num_rows:
            return found
        found += rows.column("value").to_pylist()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_rows_arrive_in_order(shared_node: "RunningNode", codec: str) -> None:
    async def use(cluster: Cluster) -> None:
        topic = await create(cluster, 2)
        rows = [b"%07d" % number for number in range(30_000)]
        async with ColumnWriter(cluster, topic=topic) as writer:
            for start in range(0, len(rows), 7_000):
                part = rows[start : start + 7_000]
                await writer.write(
                    pa.table({"value": pa.array(part), "partition": [int(row) % 2 for row in part]})
                )
        for partition in range(2):
            assert await read(cluster, topic, partition) == rows[partition::2]
        assert {found.acknowledged for found in writer.report.partitions.values()} == {15_000}
        assert {found.offset_last for found in writer.report.partitions.values()} == {14_999}

    with_cluster(shared_node, use, compression_type=codec)


def test_nothing_is_left_behind_by_a_close_without_acknowledgements(shared_node: "RunningNode") -> None:
    async def use(cluster: Cluster) -> None:
        topic = await create(cluster)
        async with ColumnWriter(cluster, topic=topic) as writer:
            await writer.write(pa.table({"value": [f"{number:01000}" for number in range(20_000)]}))
        found = await read(cluster, topic)
        assert [int(value) for value in found] == list(range(20_000))

    with_cluster(shared_node, use, acks=0, enable_idempotence=False, buffer_memory=64 * 2**20)


def test_every_row_is_there_once_and_in_order_after_the_node_was_killed(headrace_node: "RunningNode") -> None:
    def restart() -> None:
        headrace_node.kill()
        headrace_node.start()

    async def use(cluster: Cluster) -> None:
        topic = await create(cluster)
        total = 0
        async with ColumnWriter(cluster, topic=topic) as writer:
            restarting: asyncio.Task[None] | None = None
            while restarting is None or not restarting.done():
                await writer.write(pa.table({"value": [f"{number}" for number in range(total, total + 200)]}))
                total += 200
                if total == 1_000:
                    restarting = asyncio.create_task(asyncio.to_thread(restart))
                await asyncio.sleep(0.005)
            restarting.result()
        assert writer.report.acknowledged == total
        assert [int(value) for value in await read(cluster, topic)] == list(range(total))

    with_cluster(headrace_node, use)
