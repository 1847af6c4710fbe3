"""Everything a client can see of a cluster of one node, and what differs between two such views.

Read through confluent-kafka, and by single requests where that client has none.
The records of internal topics are left out: their coordinators write there when they please.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from compat.support_raw import PATIENCE_S, ask
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)

DYNAMIC_SOURCES = {2, 3}
BROKER_RESOURCE = 4
#: How long the client waits for as many records as it may return at once.
CONSUME_S = 0.05


class RecordSeen(NamedTuple):
    """A record as it was consumed."""

    offset: int
    timestamp_type: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """Both ends of a partition, what is between them, and who wrote to it."""

    start: int
    end: int
    uncommitted: tuple[RecordSeen, ...]
    committed: tuple[RecordSeen, ...]
    producers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """A topic's identity, its whole configuration with sources, and its partitions."""

    topic_id: str
    configs: dict[str, tuple[str | None, int]]
    partitions: dict[int, PartitionSeen]


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What there is."""

    cluster_id: str
    topics: dict[str, TopicSeen]
    internal_topics: dict[str, int]
    broker_configs: dict[str, tuple[str | None, int]]
    default_configs: dict[str, tuple[str | None, int]]


def see(address: str) -> ClusterSeen:
    """Look at everything."""
    admin = AdminClient({"bootstrap.servers": address})
    listed = admin.list_topics(timeout=PATIENCE_S).topics
    counts = {name: len(topic.partitions) for name, topic in listed.items()}
    visible = {name: count for name, count in counts.items() if not name.startswith("__")}
    cluster = admin.describe_cluster().result(PATIENCE_S)
    broker = _configs(admin, ResourceType.BROKER, "1")
    return ClusterSeen(
        cluster_id=cluster.cluster_id,
        topics=_topics(address, admin, visible),
        internal_topics={name: count for name, count in counts.items() if name.startswith("__")},
        broker_configs={name: each for name, each in broker.items() if each[1] in DYNAMIC_SOURCES},
        default_configs=_default_configs(address),
    )


def read_all(
    address: str, partitions: list[tuple[str, int]], isolation: str
) -> dict[tuple[str, int], tuple[RecordSeen, ...]]:
    """Every record of these partitions, from the first to the last that this isolation level may see."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
            "fetch.wait.max.ms": 20,
        }
    )
    seen: dict[tuple[str, int], list[RecordSeen]] = {each: [] for each in partitions}
    unfinished = set(partitions)
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for topic, index in partitions])
        deadline = time.monotonic() + PATIENCE_S
        while unfinished:
            assert time.monotonic() < deadline, f"the end of {sorted(unfinished)} did not come"
            for message in consumer.consume(1000, CONSUME_S):
                place = (message.topic(), message.partition())
                error = message.error()
                if error is None:
                    seen[place].append(_record(message))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    unfinished.discard(place)
    finally:
        consumer.close()
    return {place: tuple(records) for place, records in seen.items()}


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Each place where two views differ, as a line for a reader."""
    if before == after:
        return
    if is_dataclass(before) and type(before) is type(after):
        for field in fields(before):
            name = field.name
            yield from differences(getattr(before, name), getattr(after, name), f"{path}.{name}")
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from differences(before.get(key), after.get(key), f"{path}[{key}]")
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    else:
        yield f"{path}: {_short(before)} became {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} of [{', '.join(map(repr, value[:2]))} ... {value[-1:]!r}]"
    return repr(value)[:300]


def _topics(address: str, admin: AdminClient, counts: dict[str, int]) -> dict[str, TopicSeen]:
    if not counts:
        return {}
    places = [(topic, index) for topic, count in counts.items() for index in range(count)]
    uncommitted = read_all(address, places, "read_uncommitted")
    committed = read_all(address, places, "read_committed")
    ends = _watermarks(address, places)
    producers = _producers(address, counts)
    described = admin.describe_topics(TopicCollection(list(counts)))
    return {
        topic: TopicSeen(
            topic_id=str(described[topic].result(PATIENCE_S).topic_id),
            configs=_configs(admin, ResourceType.TOPIC, topic),
            partitions={
                index: PartitionSeen(
                    *ends[topic, index],
                    uncommitted=uncommitted[topic, index],
                    committed=committed[topic, index],
                    producers=producers[topic, index],
                )
                for index in range(count)
            },
        )
        for topic, count in counts.items()
    }


def _configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, tuple[str | None, int]]:
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return {key: (entry.value, int(entry.source)) for key, entry in entries.items()}


def _default_configs(address: str) -> dict[str, tuple[str | None, int]]:
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name="", configuration_keys=None
    )
    reply = ask(address, DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse)
    (result,) = reply.results
    assert result.error_code == 0, result
    return {each.name: (each.value, each.config_source) for each in result.configs}


def _watermarks(address: str, places: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "not-used"})
    try:
        return {
            (topic, index): consumer.get_watermark_offsets(TopicPartition(topic, index), PATIENCE_S)
            for topic, index in places
        }
    finally:
        consumer.close()


def _producers(address: str, counts: dict[str, int]) -> dict[tuple[str, int], tuple[tuple[int, ...], ...]]:
    wanted = [TopicRequest(name=topic, partition_indexes=list(range(n))) for topic, n in counts.items()]
    reply = ask(address, DescribeProducersRequest(topics=wanted), 0, DescribeProducersResponse)
    found = {(topic.name, each.partition_index): each for topic in reply.topics for each in topic.partitions}
    assert all(each.error_code == 0 for each in found.values())
    return {place: tuple(sorted(map(_state, each.active_producers))) for place, each in found.items()}


def _state(producer: ProducerState) -> tuple[int, ...]:
    return (
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
    )


def _record(message: Any) -> RecordSeen:
    kind, time = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return RecordSeen(message.offset(), kind, time, message.key(), message.value(), headers)
