"""Deleting records: their leaders are asked, and asked again when they have moved."""

import asyncio
from typing import Any

from headrace.client.admin.records import UP_TO_THE_END, delete_records
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from headrace.types import TopicPartition
from tests.support_client_admin import ScriptedCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LEADERS = {"t": {0: 1, 1: 2}}


def deleted(request: Any) -> Message:
    """Every partition begins where it was asked to."""
    return _reply(request, ErrorCode.NONE)


def moved(request: Any) -> Message:
    return _reply(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _reply(request: Any, code: int) -> Message:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=each.partition_index, low_watermark=each.offset, error_code=code
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    scripted = ScriptedCluster(deleted, deleted, leaders=LEADERS)
    outcomes = asyncio.run(delete_records(scripted.cluster, {T0: 5, T1: UP_TO_THE_END}))
    assert outcomes.all() == {T0: 5, T1: -1}
    assert [whom for whom, _ in scripted.sent] == [1, 2]


def test_a_leader_that_has_moved_is_looked_for_again() -> None:
    scripted = ScriptedCluster(moved, deleted, leaders=LEADERS)
    assert asyncio.run(delete_records(scripted.cluster, {T0: 5})).all() == {T0: 5}
    assert scripted.marked_stale == ["t"]


def test_partitions_that_are_not_there_are_refused_and_the_others_done() -> None:
    scripted = ScriptedCluster(deleted, leaders=LEADERS)
    nowhere, beyond = TopicPartition("nope", 0), TopicPartition("t", 9)
    outcomes = asyncio.run(delete_records(scripted.cluster, {T0: 5, nowhere: 1, beyond: 1}))
    assert outcomes.done == {T0: 5}
    assert "no topic 'nope'" in str(outcomes.refused[nowhere])
    assert "the topic has 2 partitions" in str(outcomes.refused[beyond])
