"""Topics in full, however many partitions they have: a page at a time where the broker has pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from headrace.client.admin.outcomes import UNMENTIONED, Outcomes
from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused, UnsupportedByBroker
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from headrace.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

PAGE_PARTITIONS: Final = 2000
_NO_BROKER: Final = -1
#: Neither reply has a message for the error of a topic.
_REASONS: Final[Mapping[int, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "no topic can have this name",
    ErrorCode.UNKNOWN_SERVER_ERROR: UNMENTIONED,
}


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition; `leader` is None while it has none. What brokers are eligible to lead is None where it
    is not told."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible: tuple[int, ...] | None = None
    eligible_last_known: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic with all of its partitions in order."""

    name: str
    id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def replication_factor(self) -> int:
        """The number of replicas of a partition; the largest, if they differ."""
        return max((len(each.replicas) for each in self.partitions), default=0)


async def describe_topics(
    cluster: Cluster, names: Iterable[str], *, page_partitions: int = PAGE_PARTITIONS
) -> Outcomes[str, TopicDescription]:
    """Describe topics. Those that are not there are refused with UNKNOWN_TOPIC_OR_PARTITION."""
    wanted = sorted(set(names))
    if not wanted:
        return Outcomes({}, {})
    pages = _Pages(wanted)
    try:
        while pages.remaining:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in pages.remaining],
                response_partition_limit=page_partitions,
                cursor=pages.cursor,
            )
            pages.add(await cluster.send_any(request))
    except UnsupportedByBroker:
        return await _describe_by_metadata(cluster, wanted)
    return pages.outcomes()


class _Pages:
    """What pages have told of topics so far; a topic may begin on one page and go on on others."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = wanted
        self.remaining = list(wanted)
        self.cursor: Cursor | None = None
        self._found: dict[str, TopicDescription] = {}
        self._refused: dict[str, BrokerRefused] = {}

    def add(self, page: DescribeTopicPartitionsResponse) -> None:
        before = (len(self.remaining), self.cursor)
        for topic in page.topics:
            name = topic.name or ""
            if topic.error_code != ErrorCode.NONE:
                self._found.pop(name, None)
                self._refused[name] = _refusal(name, topic.error_code)
                continue
            described = _topic(topic)
            begun = self._found.get(name)
            # Deleted and created again between two pages: what the first page said is of another topic.
            if begun is not None and begun.id == described.id:
                described = replace(described, partitions=begun.partitions + described.partitions)
            self._found[name] = described
        self.cursor = page.next_cursor
        self.remaining = self._rest()
        if self.remaining and (len(self.remaining), self.cursor) == before:
            raise BrokerRefused(
                ErrorCode.UNKNOWN_SERVER_ERROR, "the broker sends the same page again", "describing topics"
            )

    def _rest(self) -> list[str]:
        """The topics of the next page: the one that the cursor is at, and all behind it."""
        if self.cursor is None:
            return []
        at = self.cursor.topic_name
        if at in self._refused:
            self.cursor = None
            return [name for name in self.remaining if name > at]
        return [name for name in self.remaining if name >= at]

    def outcomes(self) -> Outcomes[str, TopicDescription]:
        for name in self._wanted:
            if name not in self._found and name not in self._refused:
                self._refused[name] = _refusal(name, ErrorCode.UNKNOWN_SERVER_ERROR)
        return Outcomes(self._found, self._refused)


async def _describe_by_metadata(cluster: Cluster, names: Sequence[str]) -> Outcomes[str, TopicDescription]:
    """As brokers older than 3.8 tell it: everything in one reply."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    reply = await cluster.send_any(request)
    found: dict[str, TopicDescription] = {}
    refused: dict[str, BrokerRefused] = {}
    for topic in reply.topics:
        if topic.error_code == ErrorCode.NONE:
            found[topic.name] = _topic(topic)
        else:
            refused[topic.name] = _refusal(topic.name, topic.error_code)
    return Outcomes(found, refused)


def _refusal(name: str, code: int) -> BrokerRefused:
    return BrokerRefused(code, _REASONS.get(code), f"topic {name!r}")


def _topic(topic: Any) -> TopicDescription:
    """A topic of either reply; they tell the same under the same names."""
    partitions = sorted((_partition(each) for each in topic.partitions), key=lambda each: each.partition)
    return TopicDescription(topic.name, topic.topic_id, topic.is_internal, tuple(partitions))


def _partition(found: Any) -> PartitionDescription:
    return PartitionDescription(
        partition=found.partition_index,
        leader=None if found.leader_id == _NO_BROKER else found.leader_id,
        leader_epoch=found.leader_epoch,
        replicas=tuple(found.replica_nodes),
        in_sync=tuple(found.isr_nodes),
        offline=tuple(found.offline_replicas),
        eligible=_optional(getattr(found, "eligible_leader_replicas", None)),
        eligible_last_known=_optional(getattr(found, "last_known_elr", None)),
    )


def _optional(nodes: list[int] | None) -> tuple[int, ...] | None:
    return None if nodes is None else tuple(nodes)
