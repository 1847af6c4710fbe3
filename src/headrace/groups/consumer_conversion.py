"""Groups that change the protocol while they have members: classic ones become consumer groups and back."""

import logging
from collections.abc import Collection
from typing import Final

from headrace.coordinator.shard import CoordinatorRecord
from headrace.errors import ErrorCode, KafkaError
from headrace.groups import consumer_records
from headrace.groups.classic_group import CONSUMER_PROTOCOL, STABLE, ClassicGroup
from headrace.groups.classic_member import ClassicMember
from headrace.groups.classic_replies import answer_join, answer_sync
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.embedded_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
    write_assignment,
)
from headrace.groups.group_registry import not_found
from headrace.groups.records import group_record, group_write
from headrace.groups.topic_hashes import TopicHashes
from headrace.metadata.image import MetadataImage
from headrace.protocol.disk_records.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from headrace.protocol.errors import ProtocolError
from headrace.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from headrace.protocol.messages.sync_group import SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")


# From the classic protocol


def check_upgrade(group: ClassicGroup, settings: ConsumerSettings) -> None:
    """Refuse that a group with members becomes a consumer group."""
    if not settings.can_upgrade:
        reason = "online upgrade is disabled"
    elif not group.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(group.members) > settings.size_max:
        reason = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise _no_upgrade(group, reason)


def upgraded(group: ClassicGroup, image: MetadataImage, hashes: TopicHashes) -> ConsumerGroup:
    """The consumer group that a classic one becomes: everybody keeps what it has."""
    made = ConsumerGroup(group.group_id)
    made.epoch = made.target_epoch = group.generation
    protocol = group.select_protocol() if group.protocol is None else group.protocol
    try:
        for member in group.members.values():
            converted = _converted(group, member, protocol, image)
            made.put_member(converted)
            made.targets[member.member_id] = {
                topic_id: frozenset(partitions) for topic_id, partitions in converted.assigned.items()
            }
    except ProtocolError as error:
        logger.warning("group %s can't become a consumer group: %s", group.group_id, error)
        raise _no_upgrade(group, "the embedded consumer protocol is malformed") from error
    made.metadata_hash = hashes.of(made.topic_counts)
    return made


def _converted(
    group: ClassicGroup, member: ClassicMember, protocol: str, image: MetadataImage
) -> ConsumerMember:
    assigned = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _no_upgrade(
                group,
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
                "default assignor before re-attempting the upgrade",
            )
        assigned = by_topic_id(
            ((each.topic, each.partitions) for each in assignment.assigned_partitions), image
        )
    subscription = read_subscription(member.metadata(protocol))
    return ConsumerMember(
        member.member_id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        assigned={
            topic_id: dict.fromkeys(sorted(partitions), group.generation)
            for topic_id, partitions in assigned.items()
            if partitions
        },
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=bytes(each.metadata)) for each in member.protocols
            ],
        ),
    )


def send_back(group: ClassicGroup) -> None:
    """Whoever waits for this group's next generation is to join again: there will be another rebalance."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        answer_join(group, member, JoinGroupResponse(member_id=member.member_id, error_code=code))
        answer_sync(member, SyncGroupResponse(error_code=code))


def creation(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """The records that write a whole group."""
    group_id, members = group.group_id, group.members.values()
    return [
        *(consumer_records.member_write(group_id, member) for member in members),
        consumer_records.epoch_write(group_id, group.epoch, group.metadata_hash),
        *(
            consumer_records.target_write(group_id, member_id, group.target(member_id))
            for member_id in group.members
        ),
        consumer_records.target_epoch_write(group_id, group.target_epoch, group.target_timestamp_ms),
        *(consumer_records.assignment_write(group_id, member) for member in members),
    ]


# To the classic protocol


def downgraded(
    group: ConsumerGroup,
    leaving: Collection[str],
    joining: ConsumerMember | None,
    image: MetadataImage,
    now_ms: int,
) -> ClassicGroup:
    """The classic group that a consumer group becomes without some members, and with a static member in
    place of the one that had its instance id."""
    made = ClassicGroup(group.group_id, now_ms)
    made.state_now = STABLE
    made.generation = group.epoch
    made.protocol_type = CONSUMER_PROTOCOL
    targets = {}
    for member_id, member in group.members.items():
        is_replaced = joining is not None and member.instance_id == joining.instance_id
        if is_replaced or member_id in leaving:
            continue
        made.add(_classic_member(member))
        targets[member_id] = group.target(member_id)
    if joining is not None:
        made.add(_classic_member(joining))
        targets[joining.member_id] = group.lasting_target(joining)
    made.protocol = made.select_protocol()
    try:
        for each in made.members.values():
            each.assignment = write_assignment(targets[each.member_id], image, each.metadata(made.protocol))
    except ProtocolError as error:
        logger.warning("group %s can't become a classic group: %s", group.group_id, error)
        raise not_found(f"Cannot downgrade the classic group {group.group_id}: {error}.") from error
    return made


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        CONSUMER_PROTOCOL,
        [
            JoinGroupRequestProtocol(name=each.name, metadata=each.metadata)
            for each in member.classic.supported_protocols
        ],
    )


def replacement(
    group: ConsumerGroup, made: ClassicGroup, joining: ConsumerMember | None
) -> list[CoordinatorRecord]:
    """The records that delete a consumer group and write the classic one. A member that has just replaced
    another one is in the log in its place."""
    replaced = None if joining is None else group.static_member(joining.instance_id)
    ids = [
        joining.member_id if joining is not None and member is replaced else member_id
        for member_id, member in group.members.items()
    ]
    return [*group.tombstones(ids), group_write(group.group_id, group_record(made))]


def _no_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    logger.info("%s", text)
    return not_found(text)
