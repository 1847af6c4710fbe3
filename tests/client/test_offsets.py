"""Offsets by time, earliest and latest: asked of all leaders, and again of those that have moved."""

import asyncio

import pytest

from headrace.client.config import READ_COMMITTED
from headrace.client.errors import BrokerRefused, UnknownTopics, UnsupportedByBroker
from headrace.client.offsets import EARLIEST, EARLIEST_LOCAL, LATEST, MAX_TIMESTAMP, list_offsets
from headrace.errors import ErrorCode
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.types import TopicPartition
from tests.client.conftest import Run
from tests.support_client import connected, fake_cluster, hang_up, saying, soon, when

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_every_leader_is_asked_once_for_all_its_partitions(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            topic = fake.create("a", leaders=(1, 2, 1))
            topic.partitions[0].append(b"x", b"y")
            topic.partitions[1].append(b"x")
            topic.partitions[2].start = topic.partitions[2].end = 7
            async with connected(fake) as cluster:
                positions = {A0: LATEST, A1: LATEST, TopicPartition("a", 2): EARLIEST}
                found = await soon(list_offsets(cluster, positions))
                assert {each.partition: offset.offset for each, offset in found.items()} == {0: 2, 1: 1, 2: 7}
                assert [len(fake.broker(node).seen[ApiKey.LIST_OFFSETS]) for node in (1, 2)] == [1, 1]

    run(test())


def test_nothing_is_asked_for_nothing(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            assert await soon(list_offsets(cluster, {})) == {}

    run(test())


def test_committed_readers_are_told_the_last_stable_offset(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            partition.append(b"x", b"y", b"z")
            partition.stable = 1
            async with connected(fake) as cluster:
                assert (await list_offsets(cluster, {A0: LATEST}))[A0].offset == 3
                found = await list_offsets(cluster, {A0: LATEST}, isolation=READ_COMMITTED)
                assert found[A0].offset == 1

    run(test())


def test_a_time_without_records_has_no_offset(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                found = (await list_offsets(cluster, {A0: 123_456}))[A0]
                assert (found.offset, found.timestamp, found.leader_epoch) == (-1, -1, -1)

    run(test())


@pytest.mark.parametrize(("position", "version"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8)])
def test_newer_questions_are_not_put_to_older_brokers(run: Run, position: int, version: int) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            fake.broker().versions[ApiKey.LIST_OFFSETS] = (1, version - 1)
            async with connected(fake) as cluster:
                with pytest.raises(UnsupportedByBroker, match="ListOffsets"):
                    await soon(list_offsets(cluster, {A0: position}))
                assert (await soon(list_offsets(cluster, {A0: LATEST})))[A0].offset == 0

    run(test())


def test_a_leader_that_moved_is_found_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            fake.create("a", leaders=(1, 1))
            fake.partition("a", 1).append(b"x")
            async with connected(fake) as cluster:
                await cluster.topics(["a"])
                moved = fake.partition("a", 1)
                moved.leader, moved.epoch = 2, 4
                found = await soon(list_offsets(cluster, {A0: LATEST, A1: LATEST}))
                assert (found[A0].offset, found[A1].offset) == (0, 1)
                assert len(fake.broker(1).seen[ApiKey.LIST_OFFSETS]) == 1

    run(test())


def test_a_lost_connection_is_got_over(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            fake.broker().next(ApiKey.LIST_OFFSETS, hang_up, hang_up)
            async with connected(fake) as cluster:
                assert (await soon(list_offsets(cluster, {A0: LATEST})))[A0].offset == 0

    run(test())


def test_a_refusal_for_good_names_the_partition(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            refused = ListOffsetsPartitionResponse(
                partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            reply = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="a", partitions=[refused])])
            fake.broker().next(ApiKey.LIST_OFFSETS, saying(reply))
            async with connected(fake) as cluster:
                with pytest.raises(BrokerRefused, match="offsets of a-0: TOPIC_AUTHORIZATION_FAILED"):
                    await soon(list_offsets(cluster, {A0: LATEST}))

    run(test())


def test_what_does_not_pass_is_told_when_time_is_up(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            fake.answers[ApiKey.LIST_OFFSETS] = lambda *_: ListOffsetsResponse(
                topics=[
                    ListOffsetsTopicResponse(
                        name="a",
                        partitions=[ListOffsetsPartitionResponse(error_code=ErrorCode.OFFSET_NOT_AVAILABLE)],
                    )
                ]
            )
            async with connected(fake) as cluster:
                with pytest.raises(BrokerRefused, match="OFFSET_NOT_AVAILABLE") as refused:
                    await soon(list_offsets(cluster, {A0: LATEST}, timeout_ms=300))
                assert refused.value.is_retriable
                with pytest.raises(UnknownTopics):
                    await soon(list_offsets(cluster, {TopicPartition("none", 0): LATEST}))

    run(test())


def test_cancelling_is_safe(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            held = asyncio.Event()
            fake.broker().next(ApiKey.LIST_OFFSETS, when(held))
            async with connected(fake) as cluster:
                waiting = asyncio.create_task(list_offsets(cluster, {A0: LATEST}))
                await fake.broker().asked(ApiKey.LIST_OFFSETS)
                waiting.cancel()
                held.set()
                assert (await soon(list_offsets(cluster, {A0: LATEST})))[A0].offset == 0

    run(test())
