"""Who a request to a consumer group comes from: a member that is known, one that is new, or a static one that
comes back under another id. Whoever is none of these is refused."""

import logging
from dataclasses import replace
from typing import Final

from headrace.coordinator.shard import CoordinatorRecord
from headrace.errors import ErrorCode, KafkaError
from headrace.groups import consumer_records
from headrace.groups.consumer_fencing import removal
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import (
    JOINING_EPOCH,
    LEAVING_STATIC_EPOCH,
    Assignment,
    ConsumerMember,
)
from headrace.groups.consumer_steps import Owned

logger: Final = logging.getLogger("headrace.groups")


def check_size(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse somebody new if the group is full."""
    if len(group.members) >= size_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Refuse a member at another epoch. The one before is let pass if its reply may have been lost."""
    if epoch in (JOINING_EPOCH, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _has_only(owned, member.assigned):
        return
    order = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {order} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
    )


def _has_only(owned: Owned, assigned: Assignment) -> bool:
    return owned is not None and all(
        topic_id in assigned and all(partition in assigned[topic_id] for partition in partitions)
        for topic_id, partitions in owned.items()
    )


def dynamic_member(group: ConsumerGroup, member_id: str, *, creates: bool) -> ConsumerMember:
    """A member without an instance id, new if need be and allowed."""
    found = group.members.get(member_id)
    if found is None and creates:
        logger.info("member %s joins consumer group %s", member_id, group.group_id)
        return ConsumerMember(member_id)
    return group.member(member_id)


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The member that has an instance id, under the id that it says."""
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    check_instance(known, member_id, instance_id)
    return known


def check_instance(known: ConsumerMember, member_id: str, instance_id: str) -> None:
    """Refuse a member whose instance id is somebody else's now."""
    if known.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{known.member_id}.",
        )


def joining_static_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    records: list[CoordinatorRecord],
    *,
    is_classic: bool,
) -> ConsumerMember:
    """A static member that joins; one that comes back gets the place that was kept."""
    known = group.static_member(instance_id)
    if known is None:
        return dynamic_member(group, member_id, creates=True)
    if not is_classic and known.classic is None and known.epoch != LEAVING_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {known.member_id} member.",
        )
    logger.info(
        "static member %s of group %s is back as %s in place of %s",
        instance_id,
        group.group_id,
        member_id,
        known.member_id,
    )
    group_id = group.group_id
    member = replace(known, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    records += [
        *removal(group_id, known.member_id),
        consumer_records.member_write(group_id, member),
        consumer_records.target_write(group_id, member_id, group.target(known.member_id)),
        consumer_records.assignment_write(group_id, member),
    ]
    return member
