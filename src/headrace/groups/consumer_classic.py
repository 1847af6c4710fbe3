"""Members of consumer groups that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup
are translated into what the group does anyway. No reply waits for other members."""

import logging
from dataclasses import replace
from typing import Final

from headrace.coordinator.shard import CoordinatorRecord, Decision
from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.groups.classic_group import CONSUMER_PROTOCOL, NO_MEMBER_ID
from headrace.groups.classic_member import JoinFuture, SyncFuture, answer
from headrace.groups.classic_rebalance import Outcome, nothing
from headrace.groups.client import GroupClient
from headrace.groups.consumer_changes import MemberChange
from headrace.groups.consumer_fencing import Fencing
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.consumer_member import ConsumerMember, MemberState
from headrace.groups.consumer_members import (
    check_instance,
    check_size,
    dynamic_member,
    joining_static_member,
    known_static_member,
)
from headrace.groups.consumer_regexes import RegexChange
from headrace.groups.consumer_settings import ConsumerSettings
from headrace.groups.consumer_steps import Owned, Steps
from headrace.groups.embedded_protocol import by_topic_id, read_subscription, write_assignment
from headrace.groups.group import Group
from headrace.log.partition_metadata import encode_id
from headrace.metadata.ids import random_id
from headrace.metadata.image import MetadataImage
from headrace.ports import Entropy
from headrace.protocol.disk_records.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from headrace.protocol.disk_records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.errors import ProtocolError
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")

#: From here on, a member is told its id before it is taken in.
_KNOWN_ID_SINCE: Final = 4
_NO_TIMEOUT: Final = -1


class ClassicRequests:
    """Decides on requests of the classic protocol to consumer groups."""

    __slots__ = ("_entropy", "_fencing", "_image", "_settings", "_steps", "_timers")

    def __init__(
        self,
        steps: Steps,
        fencing: Fencing,
        image: MetadataImage,
        settings: ConsumerSettings,
        entropy: Entropy,
    ) -> None:
        self._steps = steps
        self._fencing = fencing
        self._timers = fencing.timers
        self._image = image
        self._settings = settings
        self._entropy = entropy

    # JoinGroup

    def join(
        self, group: Group, client: GroupClient, request: JoinGroupRequest, future: JoinFuture, now_ms: int
    ) -> Outcome:
        """Become or stay a member; the reply goes to the future when everything is written."""
        assert isinstance(group, ConsumerGroup)
        member_id = request.member_id or encode_id(random_id(self._entropy))
        self._check_join(group, request, member_id)
        is_new = request.member_id == NO_MEMBER_ID
        if is_new and request.group_instance_id is None and client.version >= _KNOWN_ID_SINCE:
            answer(future, JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
            return nothing()
        records: list[CoordinatorRecord] = []
        if request.group_instance_id is None:
            before = dynamic_member(group, member_id, creates=True)
        elif is_new:
            before = joining_static_member(
                group, member_id, request.group_instance_id, records, is_classic=True
            )
        else:
            before = known_static_member(group, member_id, request.group_instance_id)
        subscription = _subscription(request)
        after = _with_wishes(before, client, request, subscription)
        change = MemberChange(group, before, after, now_ms, records)
        return self._join_as(change, request, subscription, future)

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
        if not self._settings.admits_classic_members:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the "
                "group migration is disabled.",
            )
        check_size(group, member_id, self._settings.size_max)
        names = [protocol.name for protocol in request.protocols]
        if request.protocol_type != CONSUMER_PROTOCOL or not _share_a_protocol(group, names):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported."
            )

    def _join_as(
        self,
        change: MemberChange,
        request: JoinGroupRequest,
        subscription: ConsumerProtocolSubscription,
        future: JoinFuture,
    ) -> Outcome:
        group, steps = change.group, self._steps
        replaced = group.static_member(request.group_instance_id)
        downgrades = replaced is not None and self._fencing.ends_as_classic_with(group, replaced)
        has_changed = steps.write_wishes(change)
        has_changed |= steps.regexes.update(change) is not RegexChange.NONE
        epoch = steps.update_epoch(change, bumps=has_changed)
        owned = by_topic_id(
            ((each.topic, each.partitions) for each in subscription.owned_partitions), self._image
        )
        if downgrades:
            return self._join_and_downgrade(change, epoch, owned, future, has_changed=has_changed)
        target_epoch, target = steps.targets.update(change, epoch)
        member = steps.step(change, target_epoch, target, owned, has_changed=has_changed)
        steps.decide(change)
        reply = _joined(member)

        def on_done(error: BaseException | None) -> None:
            steps.on_done(change, error)
            if error is None:
                self._timers.note_joined(
                    group.group_id,
                    member.member_id,
                    request.session_timeout_ms,
                    request.rebalance_timeout_ms,
                )
                answer(future, reply)

        return Decision(change.records, None, on_done=on_done)

    def _join_and_downgrade(
        self,
        change: MemberChange,
        epoch: int,
        owned: Owned,
        future: JoinFuture,
        *,
        has_changed: bool,
    ) -> Outcome:
        """The last member of the consumer protocol has come back as a classic one."""
        group = change.group
        rebalances = group.target_epoch < epoch
        if not rebalances:
            target = group.lasting_target(change.after)
            self._steps.step(change, group.target_epoch, target, owned, has_changed=has_changed)
        downgrade = self._fencing.downgrade(
            group, (), change.after, change.records, change.now_ms, rebalances=rebalances
        )
        reply = _joined(change.after)

        def on_done(error: BaseException | None) -> None:
            self._steps.on_done(change, error)
            downgrade()
            if error is None:
                answer(future, reply)

        return Decision(change.records, None, on_done=on_done)

    # SyncGroup

    def sync(
        self, group: Group, client: GroupClient, request: SyncGroupRequest, future: SyncFuture, now_ms: int
    ) -> Outcome:
        """Tell a member what it has."""
        assert isinstance(group, ConsumerGroup)
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        _check_protocol(member, classic, request)
        if group.target_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.expect_join(group.group_id, member)
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} "
                "should rejoin to catch up.",
            )
        metadata = classic.supported_protocols[0].metadata
        reply = SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(member.assigned, self._image, metadata),
        )

        def on_done(error: BaseException | None) -> None:
            if error is None:
                self._timers.note_synced(group.group_id, member.member_id, classic.session_timeout_ms)
                answer(future, reply)

        return Decision((), None, on_done=on_done)

    # Heartbeat and LeaveGroup

    def heartbeat(self, group: Group, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        """A member is alive; it has to join again where it could take a step."""
        assert isinstance(group, ConsumerGroup)
        member, classic = _classic_member(group, request.member_id, request.group_instance_id)
        _check_generation(member, request.generation_id)
        self._timers.begin_session(group.group_id, member.member_id, classic.session_timeout_ms)
        joins_again = (
            member.epoch < group.target_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.awaits_others(member))
        )
        if not joins_again:
            return Decision((), HeartbeatResponse())
        self._timers.expect_join(group.group_id, member)
        return Decision((), HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def leave(self, group: Group, members: list[MemberIdentity], now_ms: int) -> Decision[LeaveGroupResponse]:
        """Take out every member that is named rightly, whichever protocol it speaks."""
        assert isinstance(group, ConsumerGroup)
        leaving: dict[str, ConsumerMember] = {}
        responses = []
        for identity in members:
            response = MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id
            )
            responses.append(response)
            try:
                member = _named(group, identity)
            except KafkaError as error:
                response.error_code = error.code
                continue
            leaving[member.member_id] = member
            logger.info(
                "member %s leaves group %s; client reason: %s",
                member.member_id,
                group.group_id,
                identity.reason or "not provided",
            )
        reply = LeaveGroupResponse(members=responses)
        return self._fencing.fence(group, list(leaving.values()), reply, now_ms)


def _named(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id)
    known = group.static_member(instance_id)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    # An administrator removes static members by their instance ids alone.
    if identity.member_id != NO_MEMBER_ID:
        check_instance(known, identity.member_id, instance_id)
    return known


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMemberMetadata]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        known = group.static_member(instance_id)
        if known is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        check_instance(known, member_id, instance_id)
        member = known
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
        )
    return member, member.classic


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} of "
            f"member {member.member_id}.",
        )


def _check_protocol(
    member: ConsumerMember, classic: ClassicMemberMetadata, request: SyncGroupRequest
) -> None:
    name = classic.supported_protocols[0].name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol_name not in (None, name):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member.member_id} has joined with {CONSUMER_PROTOCOL} and {name}, not with "
            f"{request.protocol_type} and {request.protocol_name}.",
        )


def _share_a_protocol(group: ConsumerGroup, names: list[str]) -> bool:
    """Whether there is a protocol that all classic members have, and somebody with these names too."""
    known = [
        {each.name for each in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return any(all(name in each for each in known) for name in names)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise HeadraceError(f"the subscription of a member can't be read: {error}") from error


def _with_wishes(
    member: ConsumerMember,
    client: GroupClient,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    timeout_ms, instance_id = request.rebalance_timeout_ms, request.group_instance_id
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == _NO_TIMEOUT else timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=client.client_id or "",
        client_host=client.host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=bytes(each.metadata)) for each in request.protocols
            ],
        ),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    assert member.classic is not None
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=member.classic.supported_protocols[0].name,
    )
