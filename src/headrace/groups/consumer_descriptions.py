"""Consumer groups as ConsumerGroupDescribe tells them."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC: Final = 0
_CONSUMER: Final = 1


def described(group: ConsumerGroup, assignor: str, image: MetadataImage) -> DescribedGroup:
    """A group with all its members."""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor,
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    held: dict[UUID, list[int]] = {}
    # What a member is giving back is still its own.
    for assignment in (member.assigned, member.revoking):
        for topic_id, partitions in assignment.items():
            held.setdefault(topic_id, []).extend(sorted(partitions))
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(held, image),
        target_assignment=_assignment(group.target(member.member_id), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], image: MetadataImage) -> Assignment:
    """Topics that are gone are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id, topic_name=image.topics_by_id[topic_id].name, partitions=sorted(indexes)
            )
            for topic_id, indexes in partitions.items()
            if topic_id in image.topics_by_id
        ]
    )
