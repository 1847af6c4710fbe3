"""Deleting the oldest records of partitions."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from headrace.client.admin.outcomes import Answer, Answers, Outcomes, request_ms, settle
from headrace.client.admin.per_topic import by_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import NoLeader, UnknownTopics
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode
from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.types import TopicPartition

#: Stands for the end of a partition: everything that is in it is deleted.
UP_TO_THE_END: Final = -1
_STALE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_RETRIED: Final = _STALE | {ErrorCode.REQUEST_TIMED_OUT}


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
) -> Outcomes[TopicPartition, int]:
    """Delete the records below an offset of each partition; what begins each of them from then on."""
    patience = cluster.patience(timeout_ms)

    async def ask_leader(
        node_id: int, wanted: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, Answer[int]]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=partition, offset=offset)
                        for partition, offset in offsets.items()
                    ],
                )
                for topic, offsets in by_topic(wanted).items()
            ],
            timeout_ms=request_ms(cluster.config, patience),
        )
        reply = await cluster.send(node_id, request, timeout_ms=request_ms(cluster.config, patience))
        return {
            TopicPartition(topic.name, each.partition_index): Answer(
                each.error_code, None, each.low_watermark
            )
            for topic in reply.topics
            for each in topic.partitions
        }

    async def ask(wanted: Mapping[TopicPartition, int]) -> Answers[TopicPartition, int]:
        leaders, answers = await _leaders(cluster, wanted, patience)
        replies = await asyncio.gather(*(ask_leader(node, each) for node, each in leaders.items()))
        for reply in replies:
            answers |= reply
        for partition, answer in answers.items():
            if answer.code in _STALE:
                cluster.stale(partition.topic)
        return Answers(answers)

    return await settle(before, ask, patience=patience, retried=_RETRIED, where=str)


async def _leaders(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], patience: Patience
) -> tuple[dict[int, dict[TopicPartition, int]], dict[TopicPartition, Answer[int]]]:
    """What to ask each leader, and what is known without asking."""
    found: dict[int, dict[TopicPartition, int]] = {}
    answers: dict[TopicPartition, Answer[int]] = {}
    for topic, offsets in by_topic(wanted).items():
        numbers, reason = await _partitions(cluster, topic, patience)
        for number, offset in offsets.items():
            partition = TopicPartition(topic, number)
            if number not in numbers:
                answers[partition] = _unknown(reason)
                continue
            try:
                leader = await cluster.leader(topic, number, patience=patience)
            except NoLeader as error:
                answers[partition] = Answer(ErrorCode.LEADER_NOT_AVAILABLE, str(error), 0, is_final=True)
            else:
                found.setdefault(leader.node_id, {})[partition] = offset
    return found, answers


async def _partitions(cluster: Cluster, topic: str, patience: Patience) -> tuple[Collection[int], str]:
    """The partitions of a topic, and why there are no others."""
    try:
        partitions = (await cluster.topics([topic], patience=patience))[topic].partitions
    except UnknownTopics as error:
        return (), str(error)
    return partitions.keys(), f"the topic has {len(partitions)} partitions"


def _unknown(reason: str) -> Answer[int]:
    return Answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason, 0, is_final=True)
