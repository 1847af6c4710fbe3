"""Reading columns from a real node: everything that was written, over restarts and kills of the node."""

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader
from headrace.client.config import ClientConfig
from headrace.client.errors import PositionOutOfRange, TopicRecreated
from headrace.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, list_offsets
from headrace.types import TopicPartition
from tests.client.test_column_reader import offsets, read_all, values
from tests.support_client import soon
from tests.support_node import CLUSTER_ID, PATIENCE_SECONDS, RunningNode

START_MS = 1_700_000_000_000


def config(node: RunningNode, **fields: object) -> ClientConfig:
    return ClientConfig(bootstrap_servers=(node.bootstrap,), **fields)  # type: ignore[arg-type]


def create(node: RunningNode, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(PATIENCE_SECONDS)


def produce(node: RunningNode, name: str, first: int, count: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 0, **settings})
    for number in range(first, first + count):
        producer.produce(name, b"%d" % number, timestamp=START_MS + number, partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_was_produced_is_read(shared_node: RunningNode, codec: str) -> None:
    name = f"read-{codec}"
    create(shared_node, name)
    produce(shared_node, name, 0, 500, **{"compression.type": codec, "batch.num.messages": 40})

    async def test() -> None:
        partition = TopicPartition(name, 0)
        async with Cluster(config(shared_node)) as cluster:
            assert cluster.cluster_id == CLUSTER_ID
            found = await soon(read_all(cluster, {partition: EARLIEST}, until={partition: 500}))
            assert values(found, partition) == [b"%d" % number for number in range(500)]
            assert offsets(found) == list(range(500))
            times = [time.timestamp() for columns in found for time in columns.batch["timestamp"].to_pylist()]
            assert times == pytest.approx([(START_MS + number) / 1000 for number in range(500)])

    asyncio.run(test())


def test_offsets_by_time_and_by_name(shared_node: RunningNode) -> None:
    create(shared_node, "by-time")
    produce(shared_node, "by-time", 0, 100)
    partition = TopicPartition("by-time", 0)

    async def test() -> None:
        async with Cluster(config(shared_node)) as cluster:
            for position, offset in [
                (EARLIEST, 0),
                (LATEST, 100),
                (MAX_TIMESTAMP, 99),
                (START_MS + 42, 42),
                (START_MS + 100, -1),
            ]:
                assert (await list_offsets(cluster, {partition: position}))[partition].offset == offset

    asyncio.run(test())


def test_a_reader_gets_over_restarts_and_kills(start_node: Callable[..., RunningNode]) -> None:
    node = start_node()
    create(node, "lasting")

    async def test() -> None:
        partition = TopicPartition("lasting", 0)
        async with (
            Cluster(config(node, reconnect_backoff_max_ms=100)) as cluster,
            ColumnReader(cluster, {partition: 0}) as reader,
        ):
            for turn in range(4):
                await asyncio.to_thread(produce, node, "lasting", turn * 50, 50)
                found: list[bytes] = []
                while len(found) < 50:
                    columns = await soon(reader.next())
                    assert columns.start == turn * 50 + len(found)
                    found += values([columns], partition)
                assert found == [b"%d" % number for number in range(turn * 50, turn * 50 + 50)]
                if turn < 3:
                    await asyncio.to_thread(node.restart, hard=turn % 2 == 1)

    asyncio.run(test())


def test_a_position_that_was_deleted_and_a_topic_that_was_recreated(shared_node: RunningNode) -> None:
    create(shared_node, "again")
    produce(shared_node, "again", 0, 10)
    admin = AdminClient({"bootstrap.servers": shared_node.bootstrap})

    async def test() -> None:
        partition = TopicPartition("again", 0)
        async with Cluster(config(shared_node)) as cluster:
            with pytest.raises(PositionOutOfRange, match="holds offsets 0 to 10"):
                await soon(read_all(cluster, {partition: 11}))
            async with ColumnReader(cluster, {partition: 0}) as reader:
                assert len(await soon(reader.next()) or ()) > 0
                await asyncio.to_thread(admin.delete_topics(["again"])["again"].result, PATIENCE_SECONDS)
                await asyncio.to_thread(create, shared_node, "again")
                with pytest.raises(TopicRecreated):
                    async for _ in reader:
                        pass

    asyncio.run(test())
