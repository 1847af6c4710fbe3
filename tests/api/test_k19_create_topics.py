"""CreateTopics through a real controller: each topic has its own result, and is there at once."""

import asyncio
from uuid import UUID

import pytest

from headrace.api.k19_create_topics import API
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support_admin import ask, services_of, spoken_versions
from tests.support_cluster import Cluster, running_cluster


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()],
    )


async def create(cluster: Cluster, *topics: CreatableTopic, version: int = 7) -> CreateTopicsResponse:
    return await cluster.ask(CreateTopicsRequest(topics=list(topics)), CreateTopicsResponse, version)


@pytest.mark.parametrize("version", spoken_versions(API))
def test_a_created_topic_is_in_the_metadata_at_once(version: int) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            (result,) = (await create(cluster, topic("t", 3, retention_ms="5"), version=version)).topics
            assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
            assert result.num_partitions == (3 if version >= 5 else -1)
            asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
            (found,) = (await cluster.ask(asked, MetadataResponse, 12)).topics
            assert (found.error_code, len(found.partitions)) == (0, 3)
            assert {each.leader_id for each in found.partitions} == {1}
            assert result.topic_id in ((found.topic_id,) if version >= 7 else (UUID(int=0),))

    asyncio.run(scenario())


def test_one_bad_topic_does_not_fail_the_others() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            reply = await create(
                cluster,
                topic("good"),
                topic("b/d"),
                topic("twice"),
                topic("twice"),
                topic("many", replicas=3),
                topic("__cluster_metadata"),
                topic("odd", nonsense="1"),
                CreatableTopic(
                    name="manual",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
                ),
            )
            assert {each.name: each.error_code for each in reply.topics} == {
                "good": 0,
                "manual": 0,
                "b/d": ErrorCode.INVALID_TOPIC_EXCEPTION,
                "twice": ErrorCode.INVALID_REQUEST,
                "many": ErrorCode.INVALID_REPLICATION_FACTOR,
                "__cluster_metadata": ErrorCode.INVALID_REQUEST,
                "odd": ErrorCode.INVALID_CONFIG,
            }
            assert set(cluster.services.image.topics) == {"good", "manual"}

    asyncio.run(scenario())


def test_validation_creates_nothing() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            request = CreateTopicsRequest(topics=[topic("t")], validate_only=True)
            reply = await cluster.ask(request, CreateTopicsResponse, 7)
            assert reply.topics[0].error_code == 0
            assert cluster.services.image.topics == {}

    asyncio.run(scenario())


def test_topics_that_are_asked_for_are_created_by_the_way() -> None:
    async def scenario() -> None:
        async with running_cluster({"num.partitions": "2"}) as cluster:
            asked = MetadataRequest(topics=[MetadataRequestTopic(name="wanted")])
            (topic,) = (await cluster.ask(asked, MetadataResponse, 9)).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await cluster.services.auto_topics.settled()
            (topic,) = (await cluster.ask(asked, MetadataResponse, 9)).topics
            assert (topic.error_code, len(topic.partitions)) == (0, 2)

    asyncio.run(scenario())


def test_topics_can_be_created_on_the_controllers_listener() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            request = CreateTopicsRequest(topics=[topic("t")])
            reply = await cluster.ask(request, CreateTopicsResponse, 7, listener="CONTROLLER")
            assert reply.topics[0].error_code == 0

    asyncio.run(scenario())


def test_a_request_that_fails_as_a_whole_is_told_to_every_topic() -> None:
    services, controller = services_of()

    def fail(request: CreateTopicsRequest) -> CreateTopicsResponse:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "too much")

    controller.answers["create_topics"] = fail
    request = CreateTopicsRequest(topics=[topic("a"), topic("b")])
    reply = ask(services, API, request, CreateTopicsResponse, 7)
    assert [(t.name, t.error_code, t.error_message) for t in reply.topics] == [
        (name, ErrorCode.POLICY_VIOLATION, "too much") for name in ("a", "b")
    ]
