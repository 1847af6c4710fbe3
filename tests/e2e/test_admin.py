"""Administration with the clients that people use."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.support_e2e import PATIENCE_SECONDS, ConfluentClient, Sent
from tests.support_node import RunningNode


@pytest.fixture
def admin(shared_node: RunningNode) -> AdminClient:
    return AdminClient({"bootstrap.servers": shared_node.bootstrap})


@pytest.fixture
def client(shared_node: RunningNode) -> ConfluentClient:
    return ConfluentClient(shared_node.bootstrap)


def outcome(futures: dict[Any, Any]) -> Any:
    """The result of a call about one thing."""
    (future,) = futures.values()
    return future.result(PATIENCE_SECONDS)


def refusal(futures: dict[Any, Any]) -> KafkaError:
    with pytest.raises(KafkaException) as failure:
        outcome(futures)
    error = failure.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def configs_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    described: dict[str, ConfigEntry] = outcome(admin.describe_configs([ConfigResource(kind, name)]))
    return described


def alter(admin: AdminClient, kind: ResourceType, name: str, key: str, value: str | None) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(key, value, incremental_operation=operation)
    outcome(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]))


def test_the_cluster_is_this_one_node(admin: AdminClient, shared_node: RunningNode) -> None:
    cluster = admin.describe_cluster().result(PATIENCE_SECONDS)
    (node,) = cluster.nodes
    assert (node.host, node.port) == (shared_node.host, shared_node.port)
    assert cluster.controller.id == node.id


def test_a_topic_is_described_as_it_was_created(admin: AdminClient) -> None:
    name = f"t-{uuid4()}"
    config = {"retention.ms": "12345", "cleanup.policy": "compact,delete"}
    outcome(admin.create_topics([NewTopic(name, 3, 1, config=config)]))
    metadata = admin.list_topics(name, PATIENCE_SECONDS).topics[name]
    assert metadata.error is None
    assert sorted(metadata.partitions) == [0, 1, 2]
    assert all(each.leader == each.replicas[0] == each.isrs[0] for each in metadata.partitions.values())
    described = configs_of(admin, ResourceType.TOPIC, name)
    assert {key: described[key].value for key in config} == config
    assert described["segment.bytes"].is_default


def test_topics_that_exist_or_can_not_are_refused_each_for_itself(admin: AdminClient, topic: str) -> None:
    fresh = f"t-{uuid4()}"
    wishes = [
        NewTopic(topic, 1, 1),
        NewTopic("not/a/name", 1, 1),
        NewTopic(f"a-{fresh}", 1, 3),
        NewTopic(f"b-{fresh}", 1, 1, config={"nonsense": "1"}),
        NewTopic(f"c-{fresh}", 1, 1, config={"retention.ms": "soon"}),
        NewTopic(fresh, 1, 1),
    ]
    results = admin.create_topics(wishes)
    codes = {}
    for name, future in results.items():
        try:
            future.result(PATIENCE_SECONDS)
            codes[name] = "NONE"
        except KafkaException as failure:
            codes[name] = failure.args[0].name()
    assert codes == {
        topic: "TOPIC_ALREADY_EXISTS",
        "not/a/name": "TOPIC_EXCEPTION",
        f"a-{fresh}": "INVALID_REPLICATION_FACTOR",
        f"b-{fresh}": "INVALID_CONFIG",
        f"c-{fresh}": "INVALID_CONFIG",
        fresh: "NONE",
    }


def test_validating_creates_nothing(admin: AdminClient) -> None:
    name = f"t-{uuid4()}"
    outcome(admin.create_topics([NewTopic(name, 1, 1)], validate_only=True))
    assert name not in admin.list_topics(timeout=PATIENCE_SECONDS).topics


def test_a_deleted_topic_is_gone_and_may_come_again(
    admin: AdminClient, client: ConfluentClient, topic: str
) -> None:
    client.produce(topic, [Sent(b"old")])
    outcome(admin.delete_topics([topic]))
    assert topic not in admin.list_topics(timeout=PATIENCE_SECONDS).topics
    assert refusal(admin.delete_topics([topic])).name() == "UNKNOWN_TOPIC_OR_PART"
    outcome(admin.create_topics([NewTopic(topic, 1, 1)]))
    client.produce(topic, [Sent(b"new")])
    assert [record.value for record in client.consume(topic, 1)] == [b"new"]


def test_partitions_can_be_added_but_not_taken_away(
    admin: AdminClient, client: ConfluentClient, topic: str
) -> None:
    outcome(admin.create_partitions([NewPartitions(topic, 4)]))
    assert len(admin.list_topics(topic, PATIENCE_SECONDS).topics[topic].partitions) == 4
    client.produce(topic, [Sent(b"last", partition=3)])
    assert client.consume(topic, 1, partition=3)[0].value == b"last"
    assert refusal(admin.create_partitions([NewPartitions(topic, 2)])).name() == "INVALID_PARTITIONS"


def test_topic_configuration_is_set_and_put_back(admin: AdminClient, topic: str) -> None:
    alter(admin, ResourceType.TOPIC, topic, "retention.ms", "98765")
    changed = configs_of(admin, ResourceType.TOPIC, topic)["retention.ms"]
    assert (changed.value, changed.is_default) == ("98765", False)
    alter(admin, ResourceType.TOPIC, topic, "retention.ms", None)
    back = configs_of(admin, ResourceType.TOPIC, topic)["retention.ms"]
    assert (back.value, back.is_default) == ("604800000", True)


def test_a_changed_limit_of_a_topic_holds_at_once(
    admin: AdminClient, client: ConfluentClient, topic: str
) -> None:
    from tests.support_e2e import DeliveryFailed

    alter(admin, ResourceType.TOPIC, topic, "max.message.bytes", "500")
    with pytest.raises(DeliveryFailed):
        client.produce(topic, [Sent(b"x" * 1000)])
    alter(admin, ResourceType.TOPIC, topic, "max.message.bytes", None)
    assert client.produce(topic, [Sent(b"x" * 1000)]) == [0]


def test_a_broker_tells_every_key_it_has(admin: AdminClient) -> None:
    node_id = str(admin.describe_cluster().result(PATIENCE_SECONDS).controller.id)
    described = configs_of(admin, ResourceType.BROKER, node_id)
    assert described["log.retention.hours"].value == "168"
    assert described["node.id"].value == node_id
    assert len(described) > 200


def test_records_before_an_offset_can_be_deleted(
    admin: AdminClient, client: ConfluentClient, topic: str
) -> None:
    client.produce(topic, [Sent(b"%d" % number) for number in range(10)])
    deleted = outcome(admin.delete_records([TopicPartition(topic, 0, 6)]))
    assert deleted.low_watermark == 6
    assert offset_of(admin, topic, OffsetSpec.earliest()) == 6
    assert [record.value for record in client.consume(topic, 4, offset=6)] == [b"6", b"7", b"8", b"9"]
    assert refusal(admin.delete_records([TopicPartition(topic, 0, 11)])).name() == "OFFSET_OUT_OF_RANGE"


def offset_of(admin: AdminClient, topic: str, spec: OffsetSpec) -> int:
    offset: int = outcome(admin.list_offsets({TopicPartition(topic, 0): spec})).offset
    return offset


def test_offsets_are_found_by_time(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    base = 1_700_000_000_000
    client.produce(topic, [Sent(b"%d" % number, timestamp=base + 100 * number) for number in range(10)])
    assert offset_of(admin, topic, OffsetSpec.earliest()) == 0
    assert offset_of(admin, topic, OffsetSpec.latest()) == 10
    assert offset_of(admin, topic, OffsetSpec.max_timestamp()) == 9
    assert offset_of(admin, topic, OffsetSpec.for_timestamp(base)) == 0
    assert offset_of(admin, topic, OffsetSpec.for_timestamp(base + 401)) == 5
    assert offset_of(admin, topic, OffsetSpec.for_timestamp(base + 901)) == -1


class TestKafkaPython:
    """The administration client of kafka-python."""

    @pytest.fixture
    def admin(self, shared_node: RunningNode) -> Iterator[Any]:
        from kafka import KafkaAdminClient

        admin = KafkaAdminClient(bootstrap_servers=shared_node.bootstrap)
        yield admin
        admin.close()

    def test_topics_come_are_described_and_go(self, admin: Any) -> None:
        name = f"t-{uuid4()}"
        admin.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})
        (described,) = admin.describe_topics([name])
        assert len(described["partitions"]) == 2
        admin.delete_topics([name])
        assert name not in admin.list_topics()

    def test_the_cluster_is_this_one_node(self, admin: Any, shared_node: RunningNode) -> None:
        cluster = admin.describe_cluster()
        assert [(broker["host"], broker["port"]) for broker in cluster["brokers"]] == [
            (shared_node.host, shared_node.port)
        ]


def test_aiokafka_administers_topics(shared_node: RunningNode) -> None:
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.admin import NewTopic as AioNewTopic

    async def administer() -> None:
        name = f"t-{uuid4()}"
        admin = AIOKafkaAdminClient(bootstrap_servers=shared_node.bootstrap)
        await admin.start()
        try:
            await admin.create_topics([AioNewTopic(name, 2, 1)])
            (described,) = await admin.describe_topics([name])
            assert len(described["partitions"]) == 2
            await admin.delete_topics([name])
            assert name not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(administer())
