"""Following topics: what they get later is read, and what takes their place is not."""

import asyncio

import pytest

from headrace.cli.consuming.reading import read_on
from headrace.client.errors import TopicRecreated
from headrace.types import TopicPartition
from tests.support_client import connected, fake_cluster, soon

A0 = TopicPartition("a", 0)


def test_a_topic_created_again_with_more_partitions_has_not_grown() -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"old")
            async with connected(fake) as cluster:
                followed = read_on(cluster, {A0: 0}, is_whole=True)
                assert (await soon(anext(followed))).end == 1
                again = fake.create("a", leaders=(1, 1))
                again.partitions[0].append(b"new", b"newer")
                await cluster.refresh()
                with pytest.raises(TopicRecreated):
                    await soon(anext(followed))

    asyncio.run(test())


def test_partitions_that_a_topic_gets_are_read_from_their_beginning() -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            topic = fake.create("a")
            topic.partitions[0].append(b"old")
            async with connected(fake) as cluster:
                followed = read_on(cluster, {A0: 0}, is_whole=True)
                assert (await soon(anext(followed))).end == 1
                topic.partitions[1] = type(topic.partitions[0])(1, 0)
                topic.partitions[1].append(b"new")
                await cluster.refresh()
                columns = await soon(anext(followed))
                assert (columns.partition, columns.start, columns.end) == (1, 0, 1)
                await followed.aclose()

    asyncio.run(test())
