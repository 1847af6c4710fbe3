"""ConsumerGroupHeartbeat: the one request by which members join, stay, change their wishes and leave."""

import logging
from dataclasses import replace
from functools import partial
from typing import Final

from headrace.coordinator.shard import CoordinatorRecord, Decision
from headrace.groups import consumer_records
from headrace.groups.classic_group import ClassicGroup
from headrace.groups.client import GroupClient
from headrace.groups.consumer_changes import MemberChange
from headrace.groups.consumer_conversion import check_upgrade, creation, send_back, upgraded
from headrace.groups.consumer_fencing import Fencing
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    LEAVING_STATIC_EPOCH,
    Assignment,
    ConsumerMember,
)
from headrace.groups.consumer_members import (
    check_epoch,
    check_size,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from headrace.groups.consumer_regexes import RegexChange
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.consumer_steps import Owned, Steps
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_registry import GroupRegistry, not_found
from headrace.groups.topic_hashes import TopicHashes
from headrace.log.partition_metadata import encode_id
from headrace.metadata.ids import random_id
from headrace.metadata.image import MetadataImage
from headrace.ports import Entropy
from headrace.protocol.messages.consumer_group_heartbeat import (
    Assignment as TellableAssignment,
)
from headrace.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

logger: Final = logging.getLogger("headrace.groups")

_NO_TIMEOUT: Final = -1
Reply = ConsumerGroupHeartbeatResponse


class ConsumerHeartbeats:
    """Decides on ConsumerGroupHeartbeat requests that are valid in themselves."""

    __slots__ = ("_configs", "_entropy", "_fencing", "_groups", "_hashes", "_image", "_settings", "_steps")

    def __init__(
        self,
        groups: GroupRegistry,
        steps: Steps,
        fencing: Fencing,
        image: MetadataImage,
        hashes: TopicHashes,
        configs: GroupConfigs,
        settings: ConsumerSettings,
        entropy: Entropy,
    ) -> None:
        self._groups = groups
        self._steps = steps
        self._fencing = fencing
        self._image = image
        self._hashes = hashes
        self._configs = configs
        self._settings = settings
        self._entropy = entropy

    def heartbeat(
        self, client: GroupClient, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> Decision[Reply]:
        """Decide on a request."""
        if request.member_epoch in (LEAVING_EPOCH, LEAVING_STATIC_EPOCH):
            return self._leave(request, now_ms)
        records: list[CoordinatorRecord] = []
        joins = request.member_epoch == JOINING_EPOCH
        group = self._joinable(request.group_id, records) if joins else self._known(request.group_id)
        check_size(group, request.member_id, self._settings.size_max)
        owned = _owned(request)
        before = self._sender(group, request, owned, records)
        after = _with_wishes(before, client, request)
        change = MemberChange(group, before, after, now_ms, records)
        has_other_topics = self._steps.write_wishes(change)
        regex = self._steps.regexes.update(change)
        bumps = has_other_topics or regex is RegexChange.RESOLVED
        epoch = self._steps.update_epoch(change, bumps=bumps)
        target_epoch, target = self._steps.targets.update(change, epoch)
        has_changed = has_other_topics or regex is not RegexChange.NONE
        member = self._steps.step(change, target_epoch, target, owned, has_changed=has_changed)
        self._fencing.timers.begin_session(group.group_id, member.member_id)
        self._steps.decide(change)
        on_done = partial(self._steps.on_done, change) if records else None
        return Decision(records, self._reply(group, before, member, request), on_done=on_done)

    # Groups

    def _known(self, group_id: str) -> ConsumerGroup:
        group = self._groups.find(group_id)
        if group is None:
            raise not_found(f"Consumer group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise not_found(f"Group {group_id} is not a consumer group.")
        return group

    def _joinable(self, group_id: str, records: list[CoordinatorRecord]) -> ConsumerGroup:
        """A group to join: one that exists, a new one, or what a classic group becomes."""
        group = self._groups.find(group_id)
        if group is None:
            return ConsumerGroup(group_id)
        if not isinstance(group, ClassicGroup):
            return self._known(group_id)
        if group.is_empty:
            records += group.tombstones()
            return ConsumerGroup(group_id)
        check_upgrade(group, self._settings)
        made = upgraded(group, self._image, self._hashes)
        send_back(group)
        records += [*group.tombstones(), *creation(made)]
        for member in made.members.values():
            assert member.classic is not None
            self._fencing.timers.begin_session(group_id, member.member_id, member.classic.session_timeout_ms)
        logger.info("group %s becomes a consumer group", group_id)
        return made

    # Members

    def _sender(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        owned: Owned,
        records: list[CoordinatorRecord],
    ) -> ConsumerMember:
        member_id, instance_id = request.member_id, request.instance_id
        joins = request.member_epoch == JOINING_EPOCH
        if not member_id:
            member_id = encode_id(random_id(self._entropy))
        if instance_id is None:
            member = dynamic_member(group, member_id, creates=joins)
        elif joins:
            return joining_static_member(group, member_id, instance_id, records, is_classic=False)
        else:
            member = known_static_member(group, member_id, instance_id)
        check_epoch(member, request.member_epoch, owned)
        return member

    def _leave(self, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Decision[Reply]:
        group = self._groups.find(request.group_id)
        if group is None:
            raise not_found(f"Group {request.group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise not_found(f"Group {request.group_id} is not a consumer group.")
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            member = known_static_member(group, request.member_id, request.instance_id)
        reply = Reply(member_id=request.member_id, member_epoch=request.member_epoch)
        if request.instance_id is not None and request.member_epoch == LEAVING_STATIC_EPOCH:
            logger.info("static member %s leaves group %s for a while", member.member_id, group.group_id)
            return Decision([consumer_records.assignment_write(group.group_id, _away(member))], reply)
        logger.info("member %s leaves group %s", member.member_id, group.group_id)
        return self._fencing.fence(group, [member], reply, now_ms)

    # Replies

    def _reply(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        request: ConsumerGroupHeartbeatRequest,
    ) -> Reply:
        """An assignment is told if it has changed, or if the member says everything about itself anew."""
        reply = Reply(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=self._configs.integer(group.group_id, "consumer.heartbeat.interval.ms"),
        )
        is_full = (
            request.rebalance_timeout_ms != _NO_TIMEOUT
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        if request.member_epoch == JOINING_EPOCH or is_full or before.assigned != member.assigned:
            reply.assignment = _tellable(member.assigned)
        return reply


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    return {each.topic_id: each.partitions for each in request.topic_partitions}


def _with_wishes(
    member: ConsumerMember, client: GroupClient, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    """The member with what a request says; what it does not say stays."""
    says_nothing = (
        request.rack_id is None
        and request.rebalance_timeout_ms == _NO_TIMEOUT
        and request.server_assignor is None
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.instance_id == member.instance_id
    )
    client_id = client.client_id or ""
    is_same_client = (
        member.classic is None and client_id == member.client_id and client.host == member.client_host
    )
    if says_nothing and is_same_client:
        return member
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == _NO_TIMEOUT else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=client_id,
        client_host=client.host,
        classic=None,
    )


def _away(member: ConsumerMember) -> ConsumerMember:
    """A static member that has left for a while. Whoever comes back has its partitions from the beginning,
    so that commits of the old one do not count any more."""
    assigned: Assignment = {
        topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()
    }
    return replace(member, epoch=LEAVING_STATIC_EPOCH, assigned=assigned, revoking={})


def _tellable(assigned: Assignment) -> TellableAssignment:
    return TellableAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
