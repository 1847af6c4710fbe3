"""Short ways to write the requests that many scenarios send, and to prepare topics for them."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.records.builder import NewRecord, build_batch
from headrace.types import ZERO_UUID
from tests.answers.session import Session

#: Records are of November 2023 unless a scenario says otherwise.
T0 = 1_700_000_000_000
UNKNOWN_ID = UUID("00000000-0000-4000-8000-00000000beef")
NAMES_ONLY_UNTIL = {"produce": 12, "fetch": 12}
CONSUMER = -1
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def versions(cls: type[Message], since: int = 0, until: int = 99) -> range:
    """The versions of a message that clients may use, within bounds."""
    highest = cls.VERSION_MAX - 1 if cls.LATEST_UNSTABLE else cls.VERSION_MAX
    return range(max(since, cls.VERSION_MIN), min(until, highest) + 1)


def values(*texts: str, key: str | None = None, timestamp: int = T0) -> list[NewRecord]:
    """Records with these values, a millisecond apart."""
    keyed = None if key is None else key.encode()
    return [NewRecord(timestamp + at, keyed, text.encode()) for at, text in enumerate(texts)]


def batch(*texts: str, **fields: Any) -> bytes:
    """A batch of records with these values."""
    return build_batch(values(*texts), **fields)


def produce(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    topic_id: UUID = ZERO_UUID,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request that appends to one partition, by name and id at once: each version takes what it knows."""
    data = [PartitionProduceData(index=partition, records=records)]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
    )


def fetch_topic(
    topic: str,
    offsets: Mapping[int, int],
    topic_id: UUID = ZERO_UUID,
    max_bytes: int = 1 << 20,
    **fields: Any,
) -> FetchTopic:
    """Partitions of one topic, each from an offset."""
    partitions = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)
        for partition, offset in offsets.items()
    ]
    return FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)


def fetch(*topics: FetchTopic, **fields: Any) -> FetchRequest:
    """A request of a consumer that does not wait."""
    given: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24} | fields
    return FetchRequest(topics=list(topics), **given)


def list_offsets(topic: str, timestamps: Mapping[int, int], **fields: Any) -> ListOffsetsRequest:
    """A consumer's question for an offset in each of the partitions."""
    partitions = [
        ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        for partition, timestamp in timestamps.items()
    ]
    given: dict[str, Any] = {"replica_id": CONSUMER} | fields
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=partitions)], **given)


def creatable(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """One topic to be created."""
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication_factor, configs=settings
    )


def create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    """A request that creates topics."""
    return CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


def metadata(*names: str, **fields: Any) -> MetadataRequest:
    """A question for topics by name that creates none."""
    given: dict[str, Any] = {"allow_auto_topic_creation": False} | fields
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **given)


def create_topic(
    session: Session, name: str, partitions: int = 1, configs: Mapping[str, str | None] | None = None
) -> UUID:
    """Make a topic and wait until all its partitions can be used; nothing of this is written down."""
    created = session.settle(create(creatable(name, partitions, configs=configs)), 7, lambda reply: True)
    result = created.topics[0]
    if result.error_code:
        raise AssertionError(f"{name} was not created: {result}")
    await_topic(session, name, partitions)
    topic_id: UUID = result.topic_id
    return session.named(topic_id)


def await_topic(session: Session, name: str, partitions: int = 1) -> None:
    """Wait until all partitions of a topic have a leader that answers."""
    latest = list_offsets(name, dict.fromkeys(range(partitions), -1))
    session.settle(
        latest,
        1,
        lambda reply: all(not part.error_code for topic in reply.topics for part in topic.partitions),
    )


def await_absence(session: Session, name: str) -> None:
    """Wait until the broker has forgotten a topic."""
    session.settle(metadata(name), 9, lambda reply: reply.topics[0].error_code == 3)


def await_config(session: Session, resource_type: int, resource: str, key: str, value: str | None) -> None:
    """Wait until the broker describes a key with this value."""
    question = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=resource, configuration_keys=[key]
            )
        ]
    )
    session.settle(question, 4, lambda reply: [each.value for each in reply.results[0].configs] == [value])


def new_producer(session: Session) -> int:
    """A producer id of the broker's; nothing of this is written down."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    producer_id: int = session.settle(request, 4, lambda reply: reply.error_code == 0).producer_id
    session.masks.identity("producer", producer_id)
    return producer_id


def append(session: Session, topic: str, *batches: bytes, partition: int = 0) -> None:
    """Append batches, one request each; nothing of this is written down."""
    for each in batches:
        session.settle(
            produce(topic, each, partition=partition),
            7,
            lambda reply: reply.responses[0].partition_responses[0].error_code == 0,
        )


def concatenated(parts: Iterable[bytes]) -> bytes:
    """Several batches in one run of bytes."""
    return b"".join(parts)


def delete_topic(session: Session, name: str) -> None:
    """Delete a topic and wait until the broker has forgotten it; nothing of this is written down."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
    session.settle(request, 6, lambda reply: reply.responses[0].error_code == 0)
    await_absence(session, name)
