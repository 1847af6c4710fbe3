"""Metadata: what clients of a listener are told about brokers, topics and partitions."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.api.auto_topics import AutoTopics
from headrace.api.context import RequestContext
from headrace.api.k03_metadata import API
from headrace.errors import ErrorCode
from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.cluster_metadata import BrokerEndpoint
from headrace.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support_admin import (
    CLUSTER_ID,
    LISTENER,
    ask,
    broker_record,
    image_of,
    services_of,
    spoken_versions,
    topic_records,
)

NO_CREATION = {"auto.create.topics.enable": "false"}
ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096
NOT_ASKED = -(1 << 31)


def metadata(
    request: MetadataRequest,
    version: int,
    image: MetadataImage | None = None,
    texts: dict[str, str] | None = None,
    **where: Any,
) -> MetadataResponse:
    services, _ = services_of(image, texts or NO_CREATION)
    return ask(services, API, request, MetadataResponse, version, **where)


def by_name(*names: str | None, **fields: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields)


def by_id(*ids: int, **fields: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=None, topic_id=UUID(int=each)) for each in ids]
    return MetadataRequest(topics=topics, **fields)


def two_topics() -> MetadataImage:
    return image_of(
        broker_record(1, rack="r1"), *topic_records("a", 0xA, [[1], [1]]), *topic_records("b", 0xB)
    )


@pytest.mark.parametrize("version", spoken_versions(API))
def test_all_topics_and_brokers_are_told_in_every_version(version: int) -> None:
    request = MetadataRequest(topics=[] if version == 0 else None)
    reply = metadata(request, version, two_topics())
    assert [(each.node_id, each.host, each.port) for each in reply.brokers] == [(1, "host-1", 9001)]
    assert [(topic.name, len(topic.partitions)) for topic in reply.topics] == [("a", 2), ("b", 1)]
    assert {topic.error_code for topic in reply.topics} == {0}
    assert reply.brokers[0].rack == ("r1" if version >= 1 else None)
    assert reply.cluster_id == (CLUSTER_ID if version >= 2 else None)
    assert reply.controller_id == (1 if version >= 1 else -1)


def test_a_partition_is_told_with_leader_epoch_and_replicas() -> None:
    (topic,) = metadata(by_name("b"), 13, two_topics()).topics
    assert topic.topic_id == UUID(int=0xB)
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (0, 1, 3)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])


def test_no_topics_are_told_when_none_are_asked_for() -> None:
    assert metadata(MetadataRequest(topics=[]), 1, two_topics()).topics == []


def test_topics_are_found_by_id() -> None:
    reply = metadata(by_id(0xB, 0xDEAD, include_topic_authorized_operations=True), 12, two_topics())
    unknown, known = reply.topics
    assert (known.name, known.topic_id, known.error_code) == ("b", UUID(int=0xB), 0)
    assert (unknown.name, unknown.topic_id) == (None, UUID(int=0xDEAD))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert unknown.topic_authorized_operations == NOT_ASKED
    assert known.topic_authorized_operations == ALL_TOPIC_OPERATIONS


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("request_", [by_name(None), by_id(0xA)], ids=["no name", "an id"])
def test_ids_are_refused_before_version_12(version: int, request_: MetadataRequest) -> None:
    reply = metadata(request_, version, two_topics())
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [("", ErrorCode.INVALID_REQUEST)]
    assert reply.brokers == []


def test_each_topic_is_told_once() -> None:
    assert len(metadata(by_name("a", "a", "zz", "zz"), 9, two_topics()).topics) == 2


@pytest.mark.parametrize("version", [1, 8, 13])
def test_missing_topics_have_errors_of_their_own(version: int) -> None:
    reply = metadata(by_name("a", "nope", "no/pe", "", ".", "x" * 250), version, two_topics())
    assert {(topic.name or "")[:6]: topic.error_code for topic in reply.topics} == {
        "a": 0,
        "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "no/pe": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        ".": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "xxxxxx": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_internal_topics_are_marked() -> None:
    image = image_of(broker_record(), *topic_records("__consumer_offsets", 0xC))
    reply = metadata(by_name("__consumer_offsets", "__transaction_state", "x"), 4, image)
    assert [topic.is_internal for topic in reply.topics] == [True, True, False]


def test_authorized_operations_are_told_if_asked_for() -> None:
    asked = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    reply = metadata(by_name("a", "nope", **asked), 8, two_topics())
    assert reply.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert [each.topic_authorized_operations for each in reply.topics] == [ALL_TOPIC_OPERATIONS] * 2
    reply = metadata(by_name("a"), 8, two_topics())
    assert reply.cluster_authorized_operations == NOT_ASKED
    assert reply.topics[0].topic_authorized_operations == NOT_ASKED


def unreachable_brokers() -> MetadataImage:
    """Broker 2 is fenced, 3 has another listener, 4 is gone."""
    elsewhere = [BrokerEndpoint(name="OTHER", host="h", port=1, security_protocol=0)]
    return image_of(
        broker_record(1),
        broker_record(2, fenced=True),
        broker_record(3, end_points=elsewhere),
        *topic_records("t", 0xF, [[1, 2], [1, 3], [2, 1], [3, 1], [4, 1]]),
    )


@pytest.mark.parametrize(
    ("version", "listener_error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
def test_unreachable_leaders_and_replicas_are_told(version: int, listener_error: ErrorCode) -> None:
    reply = metadata(by_name("t"), version, unreachable_brokers())
    (topic,) = reply.topics
    told = [(each.error_code, each.leader_id, each.offline_replicas) for each in topic.partitions]
    assert told == [
        (0, 1, [2]),
        (0, 1, [3]),
        (0, 2, [2]),
        (listener_error, -1, [3]),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [4]),
    ]
    assert [each.node_id for each in reply.brokers] == [1]


def test_the_first_version_leaves_out_unreachable_replicas() -> None:
    (topic,) = metadata(by_name("t"), 0, unreachable_brokers()).topics
    first = topic.partitions[0]
    assert (first.error_code, first.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [1])
    assert topic.partitions[4].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_a_replica_in_a_lost_directory_is_offline() -> None:
    image = image_of(broker_record(), *topic_records("t", 0xF, directories=[UUID(int=0xEE)]))
    assert metadata(by_name("t"), 5, image).topics[0].partitions[0].offline_replicas == [1]


def test_brokers_are_told_at_the_listener_that_was_asked() -> None:
    endpoints = [
        BrokerEndpoint(name="PLAINTEXT", host="inside", port=1, security_protocol=0),
        BrokerEndpoint(name="EXTERNAL", host="outside", port=2, security_protocol=0),
    ]
    image = image_of(broker_record(end_points=endpoints))
    reply = metadata(MetadataRequest(topics=[]), 9, image, listener="EXTERNAL")
    assert [(each.host, each.port) for each in reply.brokers] == [("outside", 2)]


def test_nobody_is_named_for_changes_when_no_broker_is_alive() -> None:
    reply = metadata(MetadataRequest(topics=[]), 9, image_of(broker_record(fenced=True)))
    assert (reply.brokers, reply.controller_id) == ([], -1)


class TestAutoCreation:
    def ask(
        self,
        request: MetadataRequest,
        version: int = 9,
        texts: dict[str, str] | None = None,
        code: ErrorCode = ErrorCode.POLICY_VIOLATION,
    ) -> tuple[MetadataResponse, list[str]]:
        services, controller = services_of(two_topics(), texts)
        controller.answers["auto_create_topics"] = CreateTopicsResponse(
            topics=[CreatableTopicResult(name="new", error_code=code, error_message="no")]
        )
        reply = ask(services, API, request, MetadataResponse, version)
        assert services.auto_topics.in_flight == set()
        return reply, [name for _, names in controller.asked for name in names]

    def test_a_missing_topic_is_created_and_unknown_until_then(self) -> None:
        reply, asked = self.ask(by_name("a", "new", "other"))
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [topic.error_code for topic in reply.topics] == [0, unknown, unknown]
        assert asked == ["new", "other"]

    def test_a_failed_creation_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        self.ask(by_name("new"))
        assert "auto-creation of topic new failed: no" in caplog.text

    def test_a_topic_that_somebody_else_has_created_first_is_nothing_to_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.ask(by_name("new"), code=ErrorCode.TOPIC_ALREADY_EXISTS)
        assert "auto-creation" not in caplog.text

    @pytest.mark.parametrize("version", [0, 3])
    def test_old_versions_always_allow_it(self, version: int) -> None:
        assert len(self.ask(by_name("new"), version)[1]) == 1

    def test_the_request_may_forbid_it(self) -> None:
        assert self.ask(by_name("new", allow_auto_topic_creation=False))[1] == []

    def test_the_broker_may_forbid_it(self) -> None:
        assert self.ask(by_name("new"), texts=NO_CREATION)[1] == []

    def test_a_bad_name_is_not_created(self) -> None:
        reply, asked = self.ask(by_name("n/w"))
        assert reply.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert asked == []

    def test_a_topic_on_its_way_is_not_created_again(self) -> None:
        services, controller = services_of(two_topics())
        services.auto_topics.in_flight.add("new")
        reply = ask(services, API, by_name("new"), MetadataResponse, 9)
        assert reply.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert controller.asked == []

    def test_a_node_that_stops_gives_up_what_is_not_created(self) -> None:
        async def scenario() -> None:
            never: asyncio.Future[CreateTopicsResponse] = asyncio.get_running_loop().create_future()
            auto_topics = AutoTopics()
            auto_topics.begin(["new"], never)
            auto_topics.cancel()
            await auto_topics.settled()
            assert auto_topics.in_flight == set()

        asyncio.run(scenario())


def test_a_request_is_gone_through_a_fixed_number_of_times() -> None:
    """Topics that are named in no way, with an id at the end, must not be compared with all the others."""
    rounds = []

    class Counted(list[MetadataRequestTopic]):
        def __iter__(self) -> Iterator[MetadataRequestTopic]:
            rounds.append(1)
            return super().__iter__()

    topics = Counted(MetadataRequestTopic(name=None) for _ in range(100))
    topics.append(MetadataRequestTopic(name=None, topic_id=UUID(int=0xA)))
    services, _ = services_of(two_topics(), NO_CREATION)
    context = RequestContext(API.key, API.versions[1], None, LISTENER, "/127.0.0.1", cast(Any, None))
    reply: Any = API.handle(services, context, MetadataRequest(topics=topics))
    assert [topic.name for topic in reply.topics] == ["a"]
    assert len(rounds) < 10
