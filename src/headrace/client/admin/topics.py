"""Topics: listing, describing, creating, growing and deleting them."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from headrace.client.admin.outcomes import Answer, Answers, Outcomes, request_ms, settle
from headrace.client.cluster import Cluster
from headrace.errors import ErrorCode
from headrace.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from headrace.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.metadata import MetadataRequest

K = TypeVar("K", bound=Hashable)

#: As many partitions or replicas as the cluster gives to a topic that does not say.
CLUSTER_DEFAULT: Final = -1
_RETRIED: Final = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED})


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in short."""

    name: str
    id: UUID
    is_internal: bool
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created.

    `assignments` gives the brokers of each partition, the preferred leader first; numbers of partitions and
    replicas are then left alone."""

    name: str
    partitions: int = CLUSTER_DEFAULT
    replication_factor: int = CLUSTER_DEFAULT
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it was created, or would be. Fields are None where the client may not see them."""

    name: str
    id: UUID
    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, str | None] | None


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """How many partitions a topic is to have, and the brokers of each one that is new."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


async def list_topics(cluster: Cluster, *, internal: bool = False) -> list[TopicListing]:
    """All topics that the client may see, by name; those of the brokers' own only if `internal`."""
    reply = await cluster.send_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    found = [
        TopicListing(
            name=topic.name,
            id=topic.topic_id,
            is_internal=topic.is_internal,
            partitions=len(topic.partitions),
            replication_factor=max((len(each.replica_nodes) for each in topic.partitions), default=0),
        )
        for topic in reply.topics
        if topic.error_code == ErrorCode.NONE and (internal or not topic.is_internal)
    ]
    return sorted(found, key=lambda topic: topic.name)


async def create_topics(
    cluster: Cluster,
    topics: Iterable[NewTopic],
    *,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Outcomes[str, CreatedTopic]:
    """Create topics; with `validate_only` only find out what would come of it."""
    patience = cluster.patience(timeout_ms)

    async def ask(wanted: Mapping[str, NewTopic]) -> Answers[str, CreatedTopic]:
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in wanted.values()],
            timeout_ms=request_ms(cluster.config, patience),
            validate_only=validate_only,
        )
        reply = await cluster.send_controller(request, patience=patience)
        items = {
            each.name: Answer(each.error_code, each.error_message, _created(each)) for each in reply.topics
        }
        return Answers(items, reply.throttle_time_ms)

    wanted = list(topics)
    by_name = {topic.name: topic for topic in wanted}
    if len(by_name) < len(wanted):
        raise ValueError("a topic is to be created twice in one call")
    return await settle(by_name, ask, patience=patience, retried=_RETRIED, where=_topic)


async def add_partitions(
    cluster: Cluster,
    topics: Mapping[str, MorePartitions],
    *,
    validate_only: bool = False,
    timeout_ms: int | None = None,
) -> Outcomes[str, None]:
    """Give topics more partitions. Keys move to other partitions by that, and old records stay."""
    patience = cluster.patience(timeout_ms)

    async def ask(wanted: Mapping[str, MorePartitions]) -> Answers[str, None]:
        request = CreatePartitionsRequest(
            topics=[_grown(name, more) for name, more in wanted.items()],
            timeout_ms=request_ms(cluster.config, patience),
            validate_only=validate_only,
        )
        reply = await cluster.send_controller(request, patience=patience)
        items = {each.name: Answer(each.error_code, each.error_message, None) for each in reply.results}
        return Answers(items, reply.throttle_time_ms)

    return await settle(topics, ask, patience=patience, retried=_RETRIED, where=_topic)


async def delete_topics(
    cluster: Cluster, names: Iterable[str], *, timeout_ms: int | None = None
) -> Outcomes[str, None]:
    """Delete topics by their names, with all of their records."""
    states = {name: DeleteTopicState(name=name) for name in names}
    return await _delete(cluster, states, timeout_ms, _topic)


async def delete_topics_by_id(
    cluster: Cluster, ids: Iterable[UUID], *, timeout_ms: int | None = None
) -> Outcomes[UUID, None]:
    """Delete topics by their ids: never one that was created later under the same name."""
    states = {topic_id: DeleteTopicState(topic_id=topic_id) for topic_id in ids}
    return await _delete(cluster, states, timeout_ms, lambda topic_id: f"topic id {topic_id}")


async def _delete(
    cluster: Cluster,
    states: Mapping[K, DeleteTopicState],
    timeout_ms: int | None,
    where: Callable[[K], str],
) -> Outcomes[K, None]:
    patience = cluster.patience(timeout_ms)

    async def ask(wanted: Mapping[K, DeleteTopicState]) -> Answers[K, None]:
        names = [state.name for state in wanted.values() if state.name is not None]
        request = DeleteTopicsRequest(
            topics=list(wanted.values()), topic_names=names, timeout_ms=request_ms(cluster.config, patience)
        )
        reply = await cluster.send_controller(request, patience=patience)
        answers = {each.name: Answer(each.error_code, each.error_message, None) for each in reply.responses}
        by_id = {each.topic_id: Answer(each.error_code, each.error_message, None) for each in reply.responses}
        items = {
            key: answer
            for key, state in wanted.items()
            if (answer := by_id.get(state.topic_id) if state.name is None else answers.get(state.name))
        }
        return Answers(items, reply.throttle_time_ms)

    return await settle(states, ask, patience=patience, retried=_RETRIED, where=where)


def _topic(name: str) -> str:
    return f"topic {name!r}"


def _creatable(topic: NewTopic) -> CreatableTopic:
    is_assigned = bool(topic.assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=CLUSTER_DEFAULT if is_assigned else topic.partitions,
        replication_factor=CLUSTER_DEFAULT if is_assigned else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in sorted(topic.assignments.items())
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic:
    is_told = result.num_partitions >= 0 and result.topic_config_error_code == ErrorCode.NONE
    return CreatedTopic(
        name=result.name,
        id=result.topic_id,
        partitions=result.num_partitions if is_told else None,
        replication_factor=result.replication_factor if is_told else None,
        configs={each.name: each.value for each in result.configs or ()} if is_told else None,
    )


def _grown(name: str, more: MorePartitions) -> CreatePartitionsTopic:
    assignments = None
    if more.assignments is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in more.assignments]
    return CreatePartitionsTopic(name=name, count=more.total, assignments=assignments)
