"""Arrays whose count takes more than a byte, in every place that a field can be in."""

from uuid import UUID

import pytest

from headrace.protocol.codec import decode, decode_prefix, encode
from headrace.protocol.disk_records.cluster_metadata import PartitionChangeRecord
from headrace.protocol.disk_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from headrace.protocol.message import Message
from headrace.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

COUNTS = [0, 1, 15, 16, 17, 126, 127, 128, 300, 20_000]


def messages(count: int) -> list[tuple[Message, int]]:
    """Numbers in a plain array, in nullable ones, and in nullable tagged ones."""
    numbers = list(range(count))
    partition = ReassignablePartition(partition_index=1, replicas=numbers)
    topic = TopicPartitions(topic_id=UUID(int=1), partitions=numbers, assignment_epochs=numbers)
    return [
        (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[partition])]), 0),
        (ConsumerGroupCurrentMemberAssignmentValue(assigned_partitions=[topic, topic]), 0),
        (PartitionChangeRecord(isr=numbers, replicas=numbers), 0),
    ]


@pytest.mark.parametrize("count", COUNTS)
def test_an_array_of_any_length_is_read_as_it_was_written(count: int) -> None:
    for message, version in messages(count):
        data = encode(message, version)
        assert decode(type(message), version, data) == message
        assert decode_prefix(type(message), version, data) == (message, len(data))


@pytest.mark.parametrize("numbers", [None, []])
def test_null_is_not_empty(numbers: list[int] | None) -> None:
    record = PartitionChangeRecord(isr=numbers)
    assert decode(PartitionChangeRecord, 0, encode(record, 0)).isr == numbers
