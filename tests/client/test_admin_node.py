"""The client's administrative calls against a node."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from headrace.client.admin.cluster import describe_cluster
from headrace.client.admin.configs import (
    ConfigChange,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from headrace.client.admin.offsets import topic_offsets
from headrace.client.admin.records import UP_TO_THE_END, delete_records
from headrace.client.admin.topic_descriptions import describe_topics
from headrace.client.admin.topics import (
    MorePartitions,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topics,
    delete_topics_by_id,
    list_topics,
)
from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.offsets import EARLIEST, LATEST
from headrace.errors import ErrorCode
from headrace.types import TopicPartition

if TYPE_CHECKING:
    from tests.support_node import RunningNode

Administer = Callable[[Callable[[Cluster], Awaitable[Any]]], Any]


@pytest.fixture
def administer(shared_node: "RunningNode") -> Administer:
    """Runs a function with a cluster."""

    async def connected(work: Callable[[Cluster], Awaitable[Any]]) -> Any:
        async with Cluster(ClientConfig(bootstrap_servers=(shared_node.bootstrap,))) as cluster:
            return await work(cluster)

    return lambda work: asyncio.run(connected(work))


def test_the_cluster_is_described(administer: Administer, shared_node: "RunningNode") -> None:
    found = administer(describe_cluster)
    assert found.cluster_id == "aGVhZHJhY2UtdGVzdHMtMQ"
    assert [(each.node_id, each.port) for each in found.brokers] == [(1, shared_node.port)]
    assert found.controller == 1


def test_a_topic_from_its_creation_to_its_end(administer: Administer) -> None:
    async def live(cluster: Cluster) -> None:
        new = NewTopic("admin-life", 2, 1, configs={"retention.ms": "5000"})
        assert (await create_topics(cluster, [new], validate_only=True)).all()["admin-life"].partitions == 2
        assert "admin-life" not in {topic.name for topic in await list_topics(cluster)}
        created = (await create_topics(cluster, [new])).all()["admin-life"]
        assert created.configs is not None
        assert created.configs["retention.ms"] == "5000"
        (await add_partitions(cluster, {"admin-life": MorePartitions(4)})).all()
        described = (await describe_topics(cluster, ["admin-life"], page_partitions=1)).all()["admin-life"]
        assert described.id == created.id
        assert [(each.partition, each.leader, each.in_sync) for each in described.partitions] == [
            (number, 1, (1,)) for number in range(4)
        ]
        again = await create_topics(cluster, [new])
        assert again.refused["admin-life"].code == ErrorCode.TOPIC_ALREADY_EXISTS
        (await delete_topics_by_id(cluster, [created.id])).all()
        gone = await delete_topics(cluster, ["admin-life"])
        assert gone.refused["admin-life"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    administer(live)


def test_replicas_can_be_placed_by_hand(administer: Administer) -> None:
    async def place(cluster: Cluster) -> None:
        new = [
            NewTopic("admin-placed", assignments={0: [1], 1: [1]}),
            NewTopic("admin-lost", assignments={0: [9]}),
        ]
        outcomes = await create_topics(cluster, new)
        assert outcomes.done["admin-placed"].partitions == 2
        assert outcomes.refused["admin-lost"].code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    administer(place)


def test_configurations_are_changed_key_by_key(administer: Administer) -> None:
    resource = ConfigResource(ResourceKind.TOPIC, "admin-configs")

    async def change(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("admin-configs", 1, configs={"segment.ms": "9000"})])).all()
        changes = [
            ConfigChange("retention.ms", Operation.SET, "5000"),
            ConfigChange("cleanup.policy", Operation.APPEND, "compact"),
            ConfigChange("segment.ms", Operation.DELETE),
        ]
        (await alter_configs(cluster, {resource: changes}, validate_only=True)).all()
        before = (await describe_configs(cluster, [resource])).all()[resource]
        assert before["segment.ms"].value == "9000"
        (await alter_configs(cluster, {resource: changes})).all()
        after = (await describe_configs(cluster, [resource], documentation=True)).all()[resource]
        assert (after["retention.ms"].value, after["retention.ms"].source) == ("5000", ConfigSource.TOPIC)
        assert after["cleanup.policy"].value == "delete,compact"
        assert after["segment.ms"].is_default
        assert after["retention.ms"].documentation

    administer(change)


def test_a_brokers_configurations_are_described_by_itself(administer: Administer) -> None:
    async def look(cluster: Cluster) -> None:
        broker = ConfigResource(ResourceKind.BROKER, "1")
        group = ConfigResource(ResourceKind.GROUP, "admin-group")
        found = (await describe_configs(cluster, [broker, group])).all()
        assert found[broker]["node.id"].source is ConfigSource.BROKER_FILE
        assert found[broker]["node.id"].is_read_only
        assert "consumer.session.timeout.ms" in found[group]
        (
            await alter_configs(
                cluster, {group: [ConfigChange("streams.num.standby.replicas", Operation.SET, "1")]}
            )
        ).all()

    administer(look)


def test_one_bad_change_leaves_the_other_resources_alone(administer: Administer) -> None:
    async def change(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("admin-good", 1), NewTopic("admin-bad", 1)])).all()
        good, bad = (ConfigResource(ResourceKind.TOPIC, name) for name in ("admin-good", "admin-bad"))
        outcomes = await alter_configs(
            cluster,
            {
                good: [ConfigChange("retention.ms", Operation.SET, "5")],
                bad: [ConfigChange("retention.ms", Operation.SET, "soon")],
            },
        )
        assert set(outcomes.done) == {good}
        assert outcomes.refused[bad].code == ErrorCode.INVALID_CONFIG

    administer(change)


def test_offsets_of_whole_topics_and_deleted_records(administer: Administer) -> None:
    import pyarrow as pa

    from headrace.client.column_writer import ColumnWriter

    first, second = TopicPartition("admin-offsets", 0), TopicPartition("admin-offsets", 1)

    async def use(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("admin-offsets", 2)])).all()
        async with ColumnWriter(cluster, topic="admin-offsets") as writer:
            columns = {"value": [b"a", b"b", b"c"], "partition": [0, 0, 1], "timestamp": [10, 20, 30]}
            await writer.write(pa.RecordBatch.from_pydict(columns))
        ends = await topic_offsets(cluster, ["admin-offsets"], LATEST)
        assert {each: found.offset for each, found in ends.items()} == {first: 2, second: 1}
        at = await topic_offsets(cluster, ["admin-offsets"], 15)
        assert {each: found.offset for each, found in at.items()} == {first: 1, second: 0}
        outcomes = await delete_records(cluster, {first: 1, second: UP_TO_THE_END})
        assert outcomes.all() == {first: 1, second: 1}
        begins = await topic_offsets(cluster, ["admin-offsets"], EARLIEST)
        assert {each: found.offset for each, found in begins.items()} == {first: 1, second: 1}
        beyond = await delete_records(cluster, {first: 99})
        assert beyond.refused[first].code == ErrorCode.OFFSET_OUT_OF_RANGE

    administer(use)
