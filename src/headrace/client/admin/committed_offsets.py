"""Offsets that groups have committed: reading, setting and deleting them without being a member."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.client.admin.groups import group_name
from headrace.client.admin.outcomes import Answer, Answers, Outcomes, settle
from headrace.client.admin.per_topic import by_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused
from headrace.errors import ErrorCode
from headrace.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
)
from headrace.types import NO_LEADER_EPOCH, TopicPartition

#: The last versions in which topics go by their names; a group's offsets outlive topics and their ids.
_NAMED_FETCH: Final = 9
_NAMED_COMMIT: Final = 9
#: The first version in which a request names groups in a list.
_LISTED_FETCH: Final = 8
_COMMIT_RETRIED: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})
_NONE: Final[frozenset[ErrorCode]] = frozenset()


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a group goes on reading, and what it noted there."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""


async def committed_offsets(
    cluster: Cluster,
    group: str,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
    timeout_ms: int | None = None,
) -> Mapping[TopicPartition, CommittedOffset | None]:
    """What a group has committed for partitions, None where that is nothing; for all it has, if not told.

    With `require_stable` offsets of transactions that are not over yet are waited for. A group that does not
    exist has committed nothing."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=sorted(numbers))
            for name, numbers in by_topic(dict.fromkeys(partitions)).items()
        ]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=require_stable
    )
    patience = cluster.patience(timeout_ms)
    while True:
        reply = await cluster.send_coordinator(
            group, request, patience=patience, min_version=_LISTED_FETCH, max_version=_NAMED_FETCH
        )
        (found,) = reply.groups
        _check(found.error_code, group_name(group))
        unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT in {
            each.error_code for topic in found.topics for each in topic.partitions
        }
        if not unstable or patience.is_over:
            break
        await patience.pause()
    return {
        TopicPartition(topic.name, each.partition_index): _committed(group, topic.name, each)
        for topic in found.topics
        for each in topic.partitions
    }


async def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int | CommittedOffset],
    *,
    timeout_ms: int | None = None,
) -> Outcomes[TopicPartition, None]:
    """Set where a group goes on reading. It must have no members; if there is no such group, it is made."""
    patience = cluster.patience(timeout_ms)
    wanted = {
        partition: offset if isinstance(offset, CommittedOffset) else CommittedOffset(offset)
        for partition, offset in offsets.items()
    }

    async def ask(pending: Mapping[TopicPartition, CommittedOffset]) -> Answers[TopicPartition, None]:
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=each.offset,
                            committed_leader_epoch=each.leader_epoch,
                            committed_metadata=each.metadata,
                        )
                        for partition, each in numbered.items()
                    ],
                )
                for name, numbered in by_topic(pending).items()
            ],
        )
        reply = await cluster.send_coordinator(group, request, patience=patience, max_version=_NAMED_COMMIT)
        return Answers(_answers(reply))

    return await settle(
        wanted,
        ask,
        patience=patience,
        retried=_COMMIT_RETRIED,
        where=lambda partition: f"offset of {group_name(group)} for {partition}",
    )


async def delete_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
) -> Outcomes[TopicPartition, None]:
    """Forget where a group was in partitions of topics that none of its members reads."""
    patience = cluster.patience(timeout_ms)

    async def ask(pending: Mapping[TopicPartition, None]) -> Answers[TopicPartition, None]:
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in numbers],
                )
                for name, numbers in by_topic(pending).items()
            ],
        )
        reply = await cluster.send_coordinator(group, request, patience=patience)
        _check(reply.error_code, group_name(group))
        return Answers(_answers(reply))

    return await settle(
        dict.fromkeys(partitions),
        ask,
        patience=patience,
        retried=_NONE,
        where=lambda partition: f"offset of {group_name(group)} for {partition}",
    )


def _answers(reply: Any) -> dict[TopicPartition, Answer[None]]:
    return {
        TopicPartition(topic.name, each.partition_index): Answer(each.error_code, None, None)
        for topic in reply.topics
        for each in topic.partitions
    }


def _committed(group: str, topic: str, found: OffsetFetchResponsePartitions) -> CommittedOffset | None:
    _check(found.error_code, f"offset of {group_name(group)} for {topic}-{found.partition_index}")
    if found.committed_offset < 0:
        return None
    return CommittedOffset(found.committed_offset, found.committed_leader_epoch, found.metadata or "")


def _check(code: int, where: str) -> None:
    if code != ErrorCode.NONE:
        raise BrokerRefused(code, None, where)
