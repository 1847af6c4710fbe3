"""Metadata, DescribeTopicPartitions, DescribeCluster and ApiVersions."""

from uuid import UUID

from headrace.protocol.messages.api_versions import ApiVersionsRequest
from headrace.protocol.messages.describe_cluster import DescribeClusterRequest
from headrace.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.types import ZERO_UUID
from tests.answers.requests import UNKNOWN_ID, await_topic, create_topic, metadata, versions
from tests.answers.session import Session

ODD_NAMES = ("", ".", "..", "a b", "x" * 249, "x" * 250, "ä", "a/b", "__cluster_metadata")


def topics_by_name(session: Session) -> None:
    """Topics that are, are not, and cannot be, in every version."""
    create_topic(session, "m-one", 2)
    create_topic(session, "m-two")
    for version in versions(MetadataRequest):
        # Before version 4 a request could not forbid the creation of topics.
        unknown = ["m-nowhere"] if version >= 4 else []
        request = metadata("m-two", *unknown, "m-one", allow_auto_topic_creation=version < 4)
        session.ask("by name", request, version)
        odd = metadata("a b", ".", "m-one", allow_auto_topic_creation=version < 4)
        session.ask("invalid names", odd, version)
    for name in ODD_NAMES:
        session.ask(f"a topic called {name[:20]!r}", metadata(name), 12)
    session.ask("one twice", metadata("m-one", "m-one"), 12)


def topics_by_id(session: Session) -> None:
    """Ids may be asked for since version 12; names and ids may not be mixed."""
    one, two = create_topic(session, "m-id-one", 2), create_topic(session, "m-id-two")
    for version in versions(MetadataRequest, since=10):
        for about, ids in {"both": [two, one], "an unknown one": [one, UNKNOWN_ID]}.items():
            session.ask(about, _by_id(*ids), version)
        both = MetadataRequest(
            topics=[MetadataRequestTopic(name="m-id-one", topic_id=one)], allow_auto_topic_creation=False
        )
        session.ask("name and id", both, version)
        mixed = MetadataRequest(
            topics=[
                MetadataRequestTopic(name=None, topic_id=one),
                MetadataRequestTopic(name="m-id-two", topic_id=ZERO_UUID),
            ],
            allow_auto_topic_creation=False,
        )
        session.ask("one by name, one by id", mixed, version)
        session.ask("neither name nor id", _by_id(ZERO_UUID), version)


def _by_id(*ids: UUID) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=None, topic_id=each) for each in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def topics_created_on_the_way(session: Session) -> None:
    """A topic that is not there is made where the request allows it; the first answer does not have it."""
    for version in versions(MetadataRequest):
        name = f"m-made-{version}"
        session.ask("not there yet", metadata(name, allow_auto_topic_creation=True), version)
        await_topic(session, name, 2)
        session.ask("made meanwhile", metadata(name), max(version, 4))
    for name in ("", "a b", "x" * 250):
        request = metadata(name, allow_auto_topic_creation=True)
        session.ask(f"a topic called {name[:10]!r}", request, 12)
    session.ask("forbidden", metadata("m-forbidden"), 12)


def authorized_operations(session: Session) -> None:
    """What a client may do is told only where it asks."""
    topic_id = create_topic(session, "m-operations")
    for version in versions(MetadataRequest, since=8):
        flags = {"include_topic_authorized_operations": True}
        if version <= 10:
            flags["include_cluster_authorized_operations"] = True
        session.ask("operations of a topic", metadata("m-operations", "m-nowhere", **flags), version)
    wanted = MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=topic_id)],
        include_topic_authorized_operations=True,
        allow_auto_topic_creation=False,
    )
    session.ask("operations by id", wanted, 13)


def all_topics(session: Session) -> None:
    """No list means all topics, an empty one means none; in version 0 an empty one means all."""
    for version in versions(MetadataRequest):
        session.ask("no topics there", MetadataRequest(topics=[] if version == 0 else None), version)
    create_topic(session, "all-b", 2)
    create_topic(session, "all-a")
    create_topic(session, "__consumer_offsets")
    for version in versions(MetadataRequest):
        session.ask("all", MetadataRequest(topics=[] if version == 0 else None), version)
        if version > 0:
            session.ask("none", MetadataRequest(topics=[]), version)


def partitions_of_topics(session: Session) -> None:
    """DescribeTopicPartitions: in the order of names, in pages with a cursor."""
    create_topic(session, "t-b", 3)
    create_topic(session, "t-a", 2)
    create_topic(session, "t-c", 1)
    cases = {
        "two topics": _describe("t-b", "t-a"),
        "an unknown one": _describe("t-b", "t-nowhere"),
        "an invalid name": _describe("a b", "t-a"),
        "an empty name": _describe("", "t-a"),
        "a long name": _describe("x" * 250, "t-a"),
        "one twice": _describe("t-a", "t-a"),
        "one partition": _describe("t-a", "t-b", limit=1),
        "three partitions": _describe("t-a", "t-b", "t-c", limit=3),
        "all partitions": _describe("t-a", "t-b", "t-c", limit=6),
        "no partitions": _describe("t-a", limit=0),
        "fewer than none": _describe("t-a", limit=-1),
        "from a cursor": _describe("t-a", "t-b", "t-c", cursor=Cursor(topic_name="t-b", partition_index=1)),
        "from a cursor in pages": _describe(
            "t-a", "t-b", "t-c", limit=2, cursor=Cursor(topic_name="t-a", partition_index=1)
        ),
        "from a cursor beyond": _describe("t-a", "t-b", cursor=Cursor(topic_name="t-b", partition_index=3)),
        "from a topic that is not": _describe(
            "t-a", "t-c", cursor=Cursor(topic_name="t-b2", partition_index=0)
        ),
        "from after all": _describe("t-a", "t-b", cursor=Cursor(topic_name="t-z", partition_index=0)),
        "from a negative partition": _describe(
            "t-a", "t-b", cursor=Cursor(topic_name="t-b", partition_index=-1)
        ),
    }
    for about, request in cases.items():
        session.ask(about, request, 0)


def _describe(*names: str, limit: int = 2000, cursor: Cursor | None = None) -> DescribeTopicPartitionsRequest:
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)


def partitions_of_all_topics(session: Session) -> None:
    """No names mean all topics."""
    session.ask("none there", DescribeTopicPartitionsRequest(), 0)
    for name in ("every-2", "every-10", "Every-1"):
        create_topic(session, name, 2)
    session.ask("all", DescribeTopicPartitionsRequest(), 0)
    session.ask("in pages", DescribeTopicPartitionsRequest(response_partition_limit=3), 0)


def cluster(session: Session) -> None:
    """DescribeCluster: brokers, controllers, and kinds of endpoints that are not."""
    for version in versions(DescribeClusterRequest):
        for operations in (False, True):
            request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
            session.ask(f"with operations: {operations}", request, version)
    for version in versions(DescribeClusterRequest, since=1):
        for kind in (0, 2, 3):
            session.ask(f"endpoints of kind {kind}", DescribeClusterRequest(endpoint_type=kind), version)
    session.ask("fenced brokers too", DescribeClusterRequest(include_fenced_brokers=True), 2)


def api_versions(session: Session) -> None:
    """ApiVersions: every version, and names of clients that are none."""
    for version in versions(ApiVersionsRequest):
        named = ApiVersionsRequest(client_software_name="answers", client_software_version="1.0")
        session.ask("all APIs", named if version >= 3 else ApiVersionsRequest(), version)
    for name, number in (("", "1"), ("a", ""), ("a b", "1"), ("a", "1/2"), ("-a", "1"), ("a.b-c", "1.0-x")):
        for version in versions(ApiVersionsRequest, since=3):
            request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
            session.ask(f"client {name!r} {number!r}", request, version)
    for version in versions(ApiVersionsRequest, since=3):
        twice = ApiVersionsRequest(client_software_name="b", client_software_version="2")
        session.ask("once more on the same connection", twice, version)


SCENARIOS = (
    topics_by_name,
    topics_by_id,
    topics_created_on_the_way,
    authorized_operations,
    partitions_of_topics,
    cluster,
    api_versions,
)
ALONE = (all_topics, partitions_of_all_topics)
