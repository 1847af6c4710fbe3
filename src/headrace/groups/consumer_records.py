"""Consumer groups as records of `__consumer_offsets`, in the form that Kafka 4.3 writes, and back."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord
from headrace.groups.assignors.spec import Partitions
from headrace.groups.consumer_member import Assignment, ConsumerMember, MemberState
from headrace.protocol.disk_records.consumer_groups import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)

_STATES: Final = {state.value: state for state in MemberState}


def member_write(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The record that writes what a member wants."""
    return CoordinatorRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=member.classic,
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """The record that takes a member away."""
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def epoch_write(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The record that gives a group a new epoch."""
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that deletes a group."""
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id))


def subscription_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that deletes what releases before 4.1 wrote about a group's topics."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def target_write(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """The record that writes what a member shall have."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
                for topic_id in sorted(partitions)
            ]
        ),
    )


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """The record that deletes what a member shall have."""
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def target_epoch_write(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """The record that says which epoch of the group its targets are for, and when they were worked out."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def target_epoch_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that deletes the epoch of a group's targets."""
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id))


def assignment_write(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """The record that writes what a member has."""
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_with_epochs(member.assigned),
            partitions_pending_revocation=_with_epochs(member.revoking),
        ),
    )


def assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """The record that deletes what a member has."""
    return CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def regex_write(
    group_id: str, regex: str, topics: Iterable[str], version: int, timestamp_ms: int
) -> CoordinatorRecord:
    """The record that writes which topics an expression stood for at a version of the metadata."""
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms),
    )


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """The record that deletes an expression that nobody uses any more."""
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


def member_with_wishes(member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    """A member with what a record says it wants."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def member_with_assignment(
    member: ConsumerMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerMember:
    """A member with what a record says it has."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=_from_record(value.assigned_partitions, value.member_epoch),
        revoking=_from_record(value.partitions_pending_revocation, value.member_epoch),
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """What a record says a member shall have."""
    return {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}


def _with_epochs(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(assignment[topic_id]),
            assignment_epochs=[assignment[topic_id][index] for index in sorted(assignment[topic_id])],
        )
        for topic_id in sorted(assignment)
    ]


def _from_record(found: list[TopicPartitions], member_epoch: int) -> dict[UUID, dict[int, int]]:
    """Releases that did not note since when a partition is assigned meant the member's own epoch."""
    result: dict[UUID, dict[int, int]] = {}
    for each in found:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [max(member_epoch, 0)] * len(each.partitions)
        result[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return result
