"""DeleteTopics and CreatePartitions through a real controller: each topic has its own result."""

import asyncio
from uuid import UUID

import pytest

from headrace.api.k20_delete_topics import API as DELETE
from headrace.api.k37_create_partitions import API as GROW
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from headrace.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.support_admin import ask, services_of, spoken_versions
from tests.support_cluster import Cluster, running_cluster


async def create(cluster: Cluster, *names: str) -> list[UUID]:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    reply = await cluster.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
    return [each.topic_id for each in reply.topics]


@pytest.mark.parametrize("version", spoken_versions(DELETE))
def test_topics_are_deleted_by_name(version: int) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            await create(cluster, "a", "b")
            request = DeleteTopicsRequest(topic_names=["a", "nope"])
            if version >= 6:
                request = DeleteTopicsRequest(
                    topics=[DeleteTopicState(name="a"), DeleteTopicState(name="nope")]
                )
            reply = await cluster.ask(request, DeleteTopicsResponse, version)
            assert {each.name: each.error_code for each in reply.responses} == {
                "a": 0,
                "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            assert set(cluster.services.image.topics) == {"b"}

    asyncio.run(scenario())


def test_topics_are_deleted_by_id() -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            (topic_id,) = await create(cluster, "a")
            request = DeleteTopicsRequest(
                topics=[DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=UUID(int=7))]
            )
            reply = await cluster.ask(request, DeleteTopicsResponse, 6)
            assert {(each.name, each.error_code) for each in reply.responses} == {
                ("a", 0),
                (None, ErrorCode.UNKNOWN_TOPIC_ID),
            }

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_may_be_forbidden(version: int, code: ErrorCode) -> None:
    async def scenario() -> None:
        async with running_cluster({"delete.topic.enable": "false"}) as cluster:
            await create(cluster, "a")
            request = DeleteTopicsRequest(topic_names=["a"])
            reply = await cluster.ask(request, DeleteTopicsResponse, version)
            assert [(each.name, each.error_code) for each in reply.responses] == [("a", code)]
            assert set(cluster.services.image.topics) == {"a"}

    asyncio.run(scenario())


def test_a_failure_is_told_to_topics_however_they_are_named() -> None:
    error = KafkaError(ErrorCode.NOT_CONTROLLER)
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=UUID(int=3))])
    assert DELETE.error_response is not None
    reply = DELETE.error_response(by_id, 6, error)
    assert isinstance(reply, DeleteTopicsResponse)
    assert [(r.name, r.topic_id, r.error_code) for r in reply.responses] == [
        (None, UUID(int=3), ErrorCode.NOT_CONTROLLER)
    ]


@pytest.mark.parametrize("version", spoken_versions(GROW))
def test_topics_grow_each_by_itself(version: int) -> None:
    async def scenario() -> None:
        async with running_cluster() as cluster:
            await create(cluster, "a", "b")
            wanted = [("a", 4), ("b", 1), ("nope", 2), ("twice", 2), ("twice", 3)]
            request = CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in wanted
                ]
            )
            reply = await cluster.ask(request, CreatePartitionsResponse, version)
            assert {each.name: each.error_code for each in reply.results} == {
                "a": 0,
                "b": ErrorCode.INVALID_PARTITIONS,
                "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "twice": ErrorCode.INVALID_REQUEST,
            }
            assert len(cluster.services.image.topics["a"].partitions) == 4

    asyncio.run(scenario())


def test_a_failure_is_told_to_every_topic_that_should_grow() -> None:
    services, controller = services_of()

    def fail(request: CreatePartitionsRequest) -> CreatePartitionsResponse:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "too much")

    controller.answers["create_partitions"] = fail
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=2)])
    reply = ask(services, GROW, request, CreatePartitionsResponse, 3)
    assert [(t.name, t.error_code, t.error_message) for t in reply.results] == [
        ("a", ErrorCode.POLICY_VIOLATION, "too much")
    ]
