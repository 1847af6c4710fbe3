"""Groups and transactions of a node, seen by the client: committed offsets, members, aborted records."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Theirs

from headrace.client.admin.committed_offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_offsets,
)
from headrace.client.admin.groups import delete_groups, describe_groups, list_groups
from headrace.client.admin.topics import NewTopic, create_topics
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader
from headrace.client.config import READ_COMMITTED, READ_UNCOMMITTED, ClientConfig
from headrace.client.offsets import EARLIEST, LATEST, list_offsets
from headrace.errors import ErrorCode
from headrace.types import TopicPartition

if TYPE_CHECKING:
    from tests.support_node import RunningNode

PATIENCE_SECONDS = 60
Administer = Callable[[Callable[[Cluster], Awaitable[Any]]], Any]


@pytest.fixture
def administer(shared_node: "RunningNode") -> Administer:
    """Runs a function with a cluster."""

    async def connected(work: Callable[[Cluster], Awaitable[Any]]) -> Any:
        async with Cluster(ClientConfig(bootstrap_servers=(shared_node.bootstrap,))) as cluster:
            return await work(cluster)

    return lambda work: asyncio.run(connected(work))


def test_offsets_are_committed_to_a_group_without_members(administer: Administer) -> None:
    first, second = TopicPartition("grp-simple", 0), TopicPartition("grp-simple", 1)

    async def use(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("grp-simple", 2)])).all()
        assert await committed_offsets(cluster, "grp-s", [first]) == {first: None}
        wanted: dict[TopicPartition, int | CommittedOffset] = {
            first: 5,
            second: CommittedOffset(7, 0, "noted"),
        }
        (await commit_offsets(cluster, "grp-s", wanted)).all()
        found = await committed_offsets(cluster, "grp-s", require_stable=True)
        assert found == {first: CommittedOffset(5), second: CommittedOffset(7, 0, "noted")}
        listed = {each.group: each for each in await list_groups(cluster)}
        assert (listed["grp-s"].kind, listed["grp-s"].state) == ("classic", "Empty")
        assert "grp-s" not in {each.group for each in await list_groups(cluster, states=["Stable"])}
        assert "grp-s" not in {each.group for each in await list_groups(cluster, kinds=["consumer"])}
        described = await describe_groups(cluster, ["grp-s", "grp-nobody"])
        assert described.done["grp-s"].is_simple
        assert described.refused["grp-nobody"].code == ErrorCode.GROUP_ID_NOT_FOUND
        (await delete_offsets(cluster, "grp-s", [second])).all()
        assert set(await committed_offsets(cluster, "grp-s")) == {first}
        missing = await commit_offsets(cluster, "grp-s", {TopicPartition("grp-none", 0): 1})
        assert missing.refused[TopicPartition("grp-none", 0)].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (await delete_groups(cluster, ["grp-s"])).all()
        again = (await delete_groups(cluster, ["grp-s"])).refused["grp-s"]
        assert again.code == ErrorCode.GROUP_ID_NOT_FOUND
        assert await committed_offsets(cluster, "grp-s") == {}

    administer(use)


@contextmanager
def member_of(bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[Consumer]:
    """A consumer that has both partitions of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "member",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        for _ in range(PATIENCE_SECONDS):
            consumer.poll(1)
            if len(consumer.assignment()) == 2:
                break
        yield consumer
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_members_are_described(
    administer: Administer, shared_node: "RunningNode", protocol: str
) -> None:
    name = f"grp-{protocol}"
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)

    async def create(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic(name, 2)])).all()

    async def look(cluster: Cluster) -> None:
        found = (await describe_groups(cluster, [name])).all()[name]
        assert (found.kind, found.state) == (protocol, "Stable")
        (member,) = found.members
        assert member.client_id == "member"
        assert member.assignment == (first, second)
        listed = {each.group: each for each in await list_groups(cluster, kinds=[protocol])}
        assert listed[name].state == "Stable"
        refused = await commit_offsets(cluster, name, {first: 1})
        assert refused.refused[first].code == ErrorCode.UNKNOWN_MEMBER_ID
        occupied = await delete_groups(cluster, [name])
        assert occupied.refused[name].code == ErrorCode.NON_EMPTY_GROUP

    administer(create)
    with member_of(shared_node.bootstrap, name, name, protocol):
        administer(look)


def test_aborted_transactions_are_read_as_the_isolation_says(
    administer: Administer, shared_node: "RunningNode"
) -> None:
    topic = "grp-transactions"
    partitions = [TopicPartition(topic, number) for number in range(2)]

    async def create(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic(topic, 2)])).all()

    administer(create)
    settings = {"bootstrap.servers": shared_node.bootstrap, "linger.ms": 0}
    producers = [Producer({**settings, "transactional.id": f"grp-t{number}"}) for number in range(2)]
    committed: dict[TopicPartition, list[bytes]] = {each: [] for each in partitions}
    everything: dict[TopicPartition, list[bytes]] = {each: [] for each in partitions}
    for producer in producers:
        producer.init_transactions(PATIENCE_SECONDS)
    for turn in range(6):
        is_aborted = [(turn + index) % 3 == 0 for index in range(2)]
        for producer in producers:
            producer.begin_transaction()
        for number in range(10):
            for index, producer in enumerate(producers):
                value = b"%d %d %d" % (turn, number, index)
                producer.produce(topic, value, partition=number % 2)
                producer.flush(PATIENCE_SECONDS)
                everything[partitions[number % 2]].append(value)
                if not is_aborted[index]:
                    committed[partitions[number % 2]].append(value)
        for index, producer in enumerate(producers):
            end = producer.abort_transaction if is_aborted[index] else producer.commit_transaction
            end(PATIENCE_SECONDS)

    async def read(cluster: Cluster, isolation: str, bytes_max: int) -> dict[TopicPartition, list[bytes]]:
        ends = await list_offsets(cluster, dict.fromkeys(partitions, LATEST), isolation=isolation)
        until = {each: end.offset for each, end in ends.items()}
        found: dict[TopicPartition, list[bytes]] = {each: [] for each in partitions}
        reader = ColumnReader(
            cluster,
            dict.fromkeys(partitions, EARLIEST),
            until=until,
            isolation=isolation,
            prefetch_bytes=bytes_max,
        )
        async with reader:
            async for columns in reader:
                place = TopicPartition(columns.topic, columns.partition)
                found[place] += columns.batch.column("value").to_pylist()
            assert reader.positions == until
        return found

    async def compare(cluster: Cluster) -> None:
        for bytes_max in (1, 1 << 20):
            assert await read(cluster, READ_COMMITTED, bytes_max) == committed
            assert await read(cluster, READ_UNCOMMITTED, bytes_max) == everything

    administer(compare)


def test_an_open_transaction_is_waited_for(administer: Administer, shared_node: "RunningNode") -> None:
    partition = TopicPartition("grp-open", 0)
    producer = Producer({"bootstrap.servers": shared_node.bootstrap, "transactional.id": "grp-open"})

    async def use(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("grp-open", 1)])).all()
        await asyncio.to_thread(producer.init_transactions, PATIENCE_SECONDS)
        producer.begin_transaction()
        producer.produce("grp-open", b"first")
        await asyncio.to_thread(producer.flush, PATIENCE_SECONDS)
        ends = await list_offsets(cluster, {partition: LATEST}, isolation=READ_COMMITTED)
        assert ends[partition].offset == 0
        ends = await list_offsets(cluster, {partition: LATEST}, isolation=READ_UNCOMMITTED)
        assert ends[partition].offset == 1
        async with ColumnReader(
            cluster, {partition: 0}, until={partition: 2}, isolation=READ_COMMITTED
        ) as reader:
            waiting = asyncio.create_task(reader.next())
            await asyncio.to_thread(producer.commit_transaction, PATIENCE_SECONDS)
            columns = await asyncio.wait_for(waiting, PATIENCE_SECONDS)
            assert columns is not None
            assert columns.batch.column("value").to_pylist() == [b"first"]
            assert columns.end == 2
            assert await reader.next() is None

    administer(use)


def test_offsets_of_an_open_transaction_are_not_stable(
    administer: Administer, shared_node: "RunningNode"
) -> None:
    name = "grp-unstable"
    partition = TopicPartition(name, 0)
    producer = Producer({"bootstrap.servers": shared_node.bootstrap, "transactional.id": name})

    async def create(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic(name, 2)])).all()

    async def look(cluster: Cluster) -> None:
        assert await committed_offsets(cluster, name, [partition]) == {partition: None}
        waiting = asyncio.create_task(committed_offsets(cluster, name, [partition], require_stable=True))
        await asyncio.to_thread(producer.commit_transaction, PATIENCE_SECONDS)
        found = (await waiting)[partition]
        assert found is not None
        assert found.offset == 3

    administer(create)
    with member_of(shared_node.bootstrap, name, name, "classic") as consumer:
        producer.init_transactions(PATIENCE_SECONDS)
        producer.begin_transaction()
        producer.produce(name, b"made of what was read")
        there = [Theirs(name, 0, 3)]
        producer.send_offsets_to_transaction(there, consumer.consumer_group_metadata(), PATIENCE_SECONDS)
        administer(look)
