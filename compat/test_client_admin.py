"""The client's administrative calls and the commands for topics and records against Apache Kafka."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer

from compat.kafka_peer import CLUSTER_ID, KafkaPeer, running_kafka
from compat.support_tools import CONSOLE_PRODUCER, TOPICS, KafkaTools
from headrace.client.admin.cluster import describe_cluster
from headrace.client.admin.committed_offsets import (
    CommittedOffset,
    commit_offsets,
    committed_offsets,
    delete_offsets,
)
from headrace.client.admin.configs import (
    ConfigChange,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from headrace.client.admin.groups import delete_groups, describe_groups, list_groups
from headrace.client.admin.offsets import topic_offsets
from headrace.client.admin.records import UP_TO_THE_END, delete_records
from headrace.client.admin.topic_descriptions import TopicDescription, describe_topics
from headrace.client.admin.topics import (
    MorePartitions,
    NewTopic,
    add_partitions,
    create_topics,
    delete_topics_by_id,
    list_topics,
)
from headrace.client.cluster import Cluster
from headrace.client.config import ClientConfig
from headrace.client.offsets import EARLIEST, LATEST
from headrace.errors import ErrorCode
from headrace.types import TopicPartition
from tests.support_console import Console

R = TypeVar("R")
PATIENCE_SECONDS = 60
LOOKS = 1000


@pytest.fixture(scope="module")
def kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaPeer]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as peer:
        yield peer


@pytest.fixture(scope="module")
def console(kafka: KafkaPeer) -> Console:
    return Console(kafka.address)


@pytest.fixture(scope="module")
def tools(kafka_libs: Path) -> Iterator[KafkaTools]:
    with KafkaTools() as running:
        yield running


def administer(kafka: KafkaPeer, work: Callable[[Cluster], Awaitable[R]]) -> R:
    async def connected() -> R:
        async with Cluster(ClientConfig(bootstrap_servers=(kafka.address,))) as cluster:
            return await work(cluster)

    return asyncio.run(connected())


async def grown(cluster: Cluster, topic: str, partitions: int) -> TopicDescription:
    """The topic, once the broker has followed the controller; page by page."""
    for _ in range(LOOKS):
        found = (await describe_topics(cluster, [topic], page_partitions=2)).all()[topic]
        if len(found.partitions) == partitions:
            break
    return found


async def is_gone(cluster: Cluster, topic: str) -> bool:
    """Whether the broker knows, in the end, that a topic was deleted."""
    for _ in range(LOOKS):
        if (await describe_topics(cluster, [topic])).refused:
            return True
    return False


def test_the_cluster_is_described(kafka: KafkaPeer) -> None:
    found = administer(kafka, describe_cluster)
    assert found.cluster_id == CLUSTER_ID
    assert [(each.node_id, each.port) for each in found.brokers] == [(1, kafka.port)]


def test_a_topic_from_its_creation_to_its_end(kafka: KafkaPeer) -> None:
    async def live(cluster: Cluster) -> None:
        new = NewTopic("life", 2, 1, configs={"retention.ms": "5000"})
        assert (await create_topics(cluster, [new], validate_only=True)).all()["life"].partitions == 2
        outcomes = await create_topics(cluster, [new, NewTopic("not a name")])
        created = outcomes.done["life"]
        assert outcomes.refused["not a name"].code == ErrorCode.INVALID_TOPIC_EXCEPTION
        (await add_partitions(cluster, {"life": MorePartitions(5)})).all()
        described = await grown(cluster, "life", 5)
        assert described.id == created.id
        assert [each.partition for each in described.partitions] == [0, 1, 2, 3, 4]
        assert all(each.in_sync == (1,) for each in described.partitions)
        assert "life" in {topic.name for topic in await list_topics(cluster)}
        (await delete_topics_by_id(cluster, [created.id])).all()
        assert await is_gone(cluster, "life")

    administer(kafka, live)


def test_configurations_are_changed_key_by_key(kafka: KafkaPeer) -> None:
    topic, broker, group = (
        ConfigResource(ResourceKind.TOPIC, "configs"),
        ConfigResource(ResourceKind.BROKER, "1"),
        ConfigResource(ResourceKind.GROUP, "configured"),
    )

    async def change(cluster: Cluster) -> None:
        (await create_topics(cluster, [NewTopic("configs", 1)])).all()
        changes = {
            topic: [
                ConfigChange("retention.ms", Operation.SET, "5000"),
                ConfigChange("cleanup.policy", Operation.APPEND, "compact"),
            ],
            broker: [ConfigChange("log.cleaner.threads", Operation.SET, "2")],
            group: [ConfigChange("consumer.session.timeout.ms", Operation.SET, "50000")],
        }
        (await alter_configs(cluster, changes)).all()
        found = (await describe_configs(cluster, changes, synonyms=True, documentation=True)).all()
        assert found[topic]["cleanup.policy"].value == "delete,compact"
        assert found[topic]["retention.ms"].source is ConfigSource.TOPIC
        assert found[topic]["retention.ms"].documentation
        assert found[broker]["log.cleaner.threads"].source is ConfigSource.BROKER
        assert found[group]["consumer.session.timeout.ms"].source is ConfigSource.GROUP
        back = {broker: [ConfigChange("log.cleaner.threads", Operation.DELETE)]}
        (await alter_configs(cluster, back)).all()

    administer(kafka, change)


def test_records_are_deleted_and_offsets_tell(kafka: KafkaPeer, console: Console) -> None:
    console.succeed("topic", "create", "offsets", "-p", "1")
    console.succeed("produce", "offsets", stdin=b"a\nb\nc\n")
    partition = TopicPartition("offsets", 0)

    async def use(cluster: Cluster) -> None:
        assert (await topic_offsets(cluster, ["offsets"], LATEST))[partition].offset == 3
        assert (await delete_records(cluster, {partition: 2})).all() == {partition: 2}
        assert (await topic_offsets(cluster, ["offsets"], EARLIEST))[partition].offset == 2
        assert (await delete_records(cluster, {partition: UP_TO_THE_END})).all() == {partition: 3}

    administer(kafka, use)
    assert console.succeed("consume", "offsets", "--until", "end") == b""
    assert "offset 0 has been deleted" in console.fail("consume", "offsets", "--from", "offset:0")


def test_offsets_are_committed_to_a_group_without_members(kafka: KafkaPeer, console: Console) -> None:
    console.succeed("topic", "create", "simple", "-p", "2")
    first, second = TopicPartition("simple", 0), TopicPartition("simple", 1)

    async def use(cluster: Cluster) -> None:
        assert await committed_offsets(cluster, "simple-group", [first]) == {first: None}
        wanted: dict[TopicPartition, int | CommittedOffset] = {
            first: 5,
            second: CommittedOffset(7, 0, "noted"),
        }
        (await commit_offsets(cluster, "simple-group", wanted)).all()
        found = await committed_offsets(cluster, "simple-group", require_stable=True)
        assert found == {first: CommittedOffset(5), second: CommittedOffset(7, 0, "noted")}
        listed = {each.group: each for each in await list_groups(cluster)}
        assert (listed["simple-group"].kind, listed["simple-group"].state) == ("classic", "Empty")
        assert "simple-group" not in {each.group for each in await list_groups(cluster, states=["Stable"])}
        described = (await describe_groups(cluster, ["simple-group", "nobody"])).done
        assert described["simple-group"].is_simple
        assert set(described) == {"simple-group"}
        (await delete_offsets(cluster, "simple-group", [second])).all()
        assert set(await committed_offsets(cluster, "simple-group")) == {first}
        missing = await commit_offsets(cluster, "simple-group", {TopicPartition("no-such", 0): 1})
        assert len(missing.refused) == 1
        (await delete_groups(cluster, ["simple-group"])).all()
        refused = (await describe_groups(cluster, ["simple-group"])).refused["simple-group"]
        assert refused.code == ErrorCode.GROUP_ID_NOT_FOUND

    administer(kafka, use)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_members_are_described(kafka: KafkaPeer, console: Console, protocol: str) -> None:
    name = f"{protocol}-group"
    console.succeed("topic", "create", name, "-p", "2")
    settings: dict[str, Any] = {
        "bootstrap.servers": kafka.address,
        "group.id": name,
        "group.protocol": protocol,
        "client.id": "member",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([name])
        for _ in range(PATIENCE_SECONDS):
            consumer.poll(1)
            if len(consumer.assignment()) == 2:
                break

        async def look(cluster: Cluster) -> None:
            found = (await describe_groups(cluster, [name])).all()[name]
            assert (found.kind, found.state) == (protocol, "Stable")
            (member,) = found.members
            assert member.client_id == "member"
            assert member.assignment == (TopicPartition(name, 0), TopicPartition(name, 1))
            refused = await commit_offsets(cluster, name, {TopicPartition(name, 0): 1})
            assert refused.refused[TopicPartition(name, 0)].code == ErrorCode.UNKNOWN_MEMBER_ID
            occupied = await delete_groups(cluster, [name])
            assert occupied.refused[name].code == ErrorCode.NON_EMPTY_GROUP

        administer(kafka, look)
    finally:
        consumer.close()


def test_our_description_has_the_lines_of_kafkas_script(
    kafka: KafkaPeer, console: Console, tools: KafkaTools
) -> None:
    console.succeed("topic", "create", "described", "-p", "2", "--config", "retention.ms=5000")
    theirs = tools.run(TOPICS, "--bootstrap-server", kafka.address, "--describe", "--topic", "described").out
    ours = console.succeed("topic", "describe", "described").decode()
    without_offsets = [line.partition("\tOffsetFirst: ")[0] for line in ours.splitlines()]
    assert [line.rstrip() for line in without_offsets] == [line.rstrip() for line in theirs.splitlines()]


def test_records_go_through_kafka_and_its_tools(
    kafka: KafkaPeer, console: Console, tools: KafkaTools
) -> None:
    console.succeed("topic", "create", "records", "-p", "1")
    console.succeed("produce", "records", "--key-separator", ":", stdin=b"k:ours\n")
    words = ("--bootstrap-server", kafka.address, "--topic", "records")
    tools.run(CONSOLE_PRODUCER, *words, stdin="theirs\n")
    out = console.succeed("consume", "records", "--until", "end", "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [("k", "ours"), (None, "theirs")]
    with console.started("consume", "records", "--from", "last:1") as consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline() == b"theirs\n"
        console.succeed("produce", "records", stdin=b"live\n")
        assert consumer.stdout.readline() == b"live\n"


def test_refusals_are_told_in_kafkas_words(console: Console) -> None:
    console.succeed("topic", "create", "twice", "-p", "2")
    assert "already exists" in console.fail("topic", "create", "twice")
    assert "INVALID_PARTITIONS" in console.fail("topic", "alter", "twice", "--partitions", "1")
    assert "INVALID_REPLICATION_FACTOR" in console.fail("topic", "create", "wide", "-r", "3")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in console.fail("topic", "delete", "nothing")
    assert console.succeed("topic", "delete", "twice") == b"Deleted topic twice.\n"
