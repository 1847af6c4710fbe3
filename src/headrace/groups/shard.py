"""The groups and offsets of one partition of `__consumer_offsets`: routes records and requests to their part.

Kinds of groups besides the classic one join in through `OtherKinds`: their records are replayed, and their
groups asked, by whoever is named there."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from headrace.coordinator.shard import CoordinatorRecord, Decision, ShardContext
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.classic_group import DEAD, STABLE, ClassicGroup
from headrace.groups.classic_join import Joins
from headrace.groups.classic_member import JoinFuture, SyncFuture
from headrace.groups.classic_presence import Presence
from headrace.groups.classic_rebalance import Outcome, Rebalances, nothing
from headrace.groups.classic_replay import replayed_group
from headrace.groups.classic_replies import answer_join, answer_sync, refuse_sync
from headrace.groups.classic_sync import Syncs
from headrace.groups.client import GroupClient
from headrace.groups.consumer_groups import ConsumerGroups
from headrace.groups.consumer_replay import ConsumerReplay
from headrace.groups.group import Group, GroupKind
from headrace.groups.group_configs import GroupConfigs
from headrace.groups.group_counters import GroupCounters
from headrace.groups.group_registry import GroupRegistry
from headrace.groups.offset_commits import OffsetCommits
from headrace.groups.offset_expiry import DeletedTopic, expired_offsets, orphaned_offsets
from headrace.groups.offset_fetches import OffsetFetches
from headrace.groups.offsets import Offsets
from headrace.groups.settings import GroupSettings
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage
from headrace.ports import Entropy
from headrace.protocol.disk_records.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from headrace.protocol.message import Message
from headrace.protocol.messages.delete_groups import DeletableGroupResult
from headrace.protocol.messages.describe_groups import DescribedGroup
from headrace.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from headrace.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from headrace.protocol.messages.list_groups import ListedGroup
from headrace.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

logger: Final = logging.getLogger("headrace.groups")

_EXPIRY_KEY: Final = "expiry"
_NOT_FOUND_SINCE: Final = 6

#: It is given the record's offset, its key and its value or None.
Replayer: TypeAlias = Callable[[int, Any, Any], None]


@dataclass(slots=True)
class OtherKinds:
    """Where other kinds of groups come in: replayers by the class of a record's key, and what happens when
    a member speaks the classic protocol to a group of another kind."""

    replayers: dict[type[Message], Replayer] = field(default_factory=dict)
    on_loaded: list[Callable[[MetadataImage], None]] = field(default_factory=list)
    on_metadata: list[Callable[[MetadataImage, MetadataDelta], None]] = field(default_factory=list)
    join: Callable[[Group, GroupClient, JoinGroupRequest, JoinFuture, int], Outcome] | None = None
    sync: Callable[[Group, GroupClient, SyncGroupRequest, SyncFuture, int], Outcome] | None = None
    heartbeat: Callable[[Group, HeartbeatRequest, int], Decision[HeartbeatResponse]] | None = None
    leave: Callable[[Group, list[MemberIdentity], int], Decision[LeaveGroupResponse]] | None = None


class GroupShard:
    """The state machine of one partition: `coordinator.shard.Shard` for groups."""

    __slots__ = (
        "_image",
        "_joins",
        "_presence",
        "_replayers",
        "_syncs",
        "_timers",
        "commits",
        "configs",
        "consumers",
        "fetches",
        "groups",
        "offsets",
        "other_kinds",
        "partition",
        "rebalances",
        "settings",
    )

    def __init__(
        self,
        context: ShardContext,
        settings: GroupSettings,
        entropy: Entropy,
        counters: GroupCounters,
        configs: GroupConfigs,
    ) -> None:
        self.partition = context.partition
        self.configs = configs
        self.settings = settings
        self.groups = GroupRegistry()
        self.offsets = Offsets()
        self.rebalances = Rebalances(self.groups, context.timers, settings, counters)
        self.commits = OffsetCommits(self.rebalances, self.offsets, context.image)
        self.consumers = ConsumerGroups(self.rebalances, context.image, configs, settings.consumer, entropy)
        self.other_kinds = OtherKinds(
            replayers=dict(ConsumerReplay(self.groups).replayers()),
            on_loaded=[self.consumers.on_loaded],
            on_metadata=[self.consumers.on_metadata],
            join=self.consumers.classic.join,
            sync=self.consumers.classic.sync,
            heartbeat=self.consumers.classic.heartbeat,
            leave=self.consumers.classic.leave,
        )
        self.fetches = OffsetFetches(self.groups, self.offsets)
        self._joins = Joins(self.rebalances, entropy)
        self._syncs = Syncs(self.rebalances)
        self._presence = Presence(self.rebalances)
        self._timers = context.timers
        self._image = context.image

    # Records

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, key: Message, value: Message | None
    ) -> None:
        """Take over a record of any kind."""
        if type(key) is OffsetCommitKey:
            self._replay_offset(offset, producer_id, key, cast("OffsetCommitValue | None", value))
        elif type(key) is GroupMetadataKey:
            self._replay_group(key.group, value)
        elif type(key) is LegacyOffsetCommitKey:
            self._replay_legacy_offset(offset, producer_id, key, value)
        else:
            replayer = self.other_kinds.replayers.get(type(key))
            if replayer is None:
                # Groups of this kind can't be served here; the record stays in the log.
                logger.debug("a record with %s is passed over", type(key).__name__)
            else:
                replayer(offset, key, value)

    def _replay_offset(
        self, offset: int, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue | None
    ) -> None:
        group_id = key.group
        if value is not None and self.groups.find(group_id) is None:
            self.groups.new_classic(group_id, value.commit_timestamp)
        self.offsets.replay(offset, producer_id, group_id, key.topic, key.partition, value)

    def _replay_legacy_offset(
        self, offset: int, producer_id: int, key: LegacyOffsetCommitKey, value: Message | None
    ) -> None:
        """Offsets of releases long gone."""
        assert value is None or isinstance(value, LegacyOffsetCommitValue)
        modern = None
        if value is not None:
            modern = OffsetCommitValue(
                offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
            )
        new_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
        self._replay_offset(offset, producer_id, new_key, modern)

    def _replay_group(self, group_id: str, value: Message | None) -> None:
        if value is None:
            self.groups.remove(group_id)
            return
        assert isinstance(value, GroupMetadataValue)
        self.groups.put(replayed_group(group_id, value))

    def replay_end_transaction_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The offsets of a transaction count, or are forgotten."""
        self.offsets.end_transaction(producer_id, committed)

    def state(self) -> Any:
        """Groups and offsets as the log has them."""
        groups = {group.group_id: group.state() for group in self.groups}
        return {key: state for key, state in groups.items() if state is not None}, self.offsets.state()

    # Its life

    def on_loaded(self, image: MetadataImage) -> None:
        """Members have a session from now on, whatever happened before."""
        for group in self.groups:
            if isinstance(group, ClassicGroup):
                self._wake(group)
        for listener in self.other_kinds.on_loaded:
            listener(image)
        self._schedule_expiry()

    def _wake(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            self.rebalances.put_off(group, member, member.session_timeout_ms)
        if len(group.members) > self.settings.size_max:
            self.rebalances.prepare(group, "it has more members than it may have", group.state_since_ms or 0)

    def on_new_metadata_image(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Other kinds of groups follow topics; offsets of deleted ones are taken away by the coordinator."""
        for listener in self.other_kinds.on_metadata:
            listener(image, delta)

    def on_unloaded(self) -> None:
        """Whoever waits has to look for the coordinator again."""
        for group in self.groups:
            if not isinstance(group, ClassicGroup):
                continue
            for member_id, member in group.members.items():
                code = ErrorCode.NOT_COORDINATOR
                answer_join(group, member, JoinGroupResponse(member_id=member_id, error_code=code))
                answer_sync(member, SyncGroupResponse(error_code=code))
            group.move_to(DEAD, group.state_since_ms or 0)

    # Classic members

    def join(
        self, client: GroupClient, request: JoinGroupRequest, future: JoinFuture, now_ms: int
    ) -> Outcome:
        """JoinGroup; the reply goes to the future."""
        group = self.groups.find(request.group_id)
        conversion: list[CoordinatorRecord] = []
        if group is not None and not isinstance(group, ClassicGroup):
            if not group.is_empty or group.kind is GroupKind.SHARE:
                return self._join_other(group, client, request, future, now_ms)
            conversion = group.tombstones()
            self.groups.remove(request.group_id)
        return self._joins.join(client, request, future, now_ms, conversion)

    def _join_other(
        self, group: Group, client: GroupClient, request: JoinGroupRequest, future: JoinFuture, now_ms: int
    ) -> Outcome:
        if group.kind is GroupKind.CONSUMER and self.other_kinds.join is not None:
            return self.other_kinds.join(group, client, request, future, now_ms)
        future.set_result(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return nothing()

    def sync(
        self, client: GroupClient, request: SyncGroupRequest, future: SyncFuture, now_ms: int
    ) -> Outcome:
        """SyncGroup; the reply goes to the future."""
        group = self.groups.find(request.group_id)
        if group is not None and not group.is_empty:
            if isinstance(group, ClassicGroup):
                return self._syncs.sync(group, request, future, now_ms)
            if group.kind is GroupKind.CONSUMER and self.other_kinds.sync is not None:
                return self.other_kinds.sync(group, client, request, future, now_ms)
        refuse_sync(future, ErrorCode.UNKNOWN_MEMBER_ID)
        return nothing()

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Decision[HeartbeatResponse]:
        """Heartbeat of a member that speaks the classic protocol."""
        group = self.groups.find(request.group_id)
        if isinstance(group, ClassicGroup):
            return self._presence.heartbeat(group, request)
        if group is not None and group.kind is GroupKind.CONSUMER and self.other_kinds.heartbeat is not None:
            return self.other_kinds.heartbeat(group, request, now_ms)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")

    def leave(
        self, group_id: str, members: list[MemberIdentity], now_ms: int
    ) -> Decision[LeaveGroupResponse]:
        """LeaveGroup of members that speak the classic protocol."""
        group = self.groups.find(group_id)
        if isinstance(group, ClassicGroup):
            return self._presence.leave(group, members, now_ms)
        if group is not None and group.kind is GroupKind.CONSUMER and self.other_kinds.leave is not None:
            return self.other_kinds.leave(group, members, now_ms)
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")

    # Administration

    def list_groups(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """The groups in these states and of these types; none named stands for all."""
        wanted_states = {state.lower().strip() for state in states}
        wanted_types = {kind.lower() for kind in types}
        return [
            group.listed()
            for group in self.groups
            if (not states or group.is_in_states(wanted_states))
            and (not types or group.kind.value in wanted_types)
        ]

    def describe(self, group_ids: Collection[str], version: int) -> list[DescribedGroup]:
        """Classic groups in detail; one that does not exist is dead."""
        return [self._described(group_id, version) for group_id in group_ids]

    def _described(self, group_id: str, version: int) -> DescribedGroup:
        try:
            group = self.groups.classic(group_id)
        except KafkaError as error:
            missing = DescribedGroup(group_id=group_id, group_state=DEAD.value)
            if version >= _NOT_FOUND_SINCE:
                missing.error_code, missing.error_message = error.code, error.message
            return missing
        protocol = group.protocol if group.state_now is STABLE else None
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=[member.described(protocol) for member in group.members.values()],
        )

    def delete_groups(self, group_ids: Collection[str]) -> Decision[list[DeletableGroupResult]]:
        """Take groups without members away, with their offsets."""
        records: list[CoordinatorRecord] = []
        results = []
        for group_id in group_ids:
            result = DeletableGroupResult(group_id=group_id)
            results.append(result)
            try:
                group = self.groups.get(group_id)
                group.check_deletion()
            except KafkaError as error:
                result.error_code = error.code
                continue
            offsets = self.commits.delete_all(group_id)
            self.rebalances.counters.offset_deletions += len(offsets)
            records += [*offsets, *group.tombstones()]
        return Decision(records, results)

    def on_topics_deleted(self, topics: Collection[DeletedTopic]) -> Decision[None]:
        """Take away the offsets of topics that are gone."""
        return Decision(orphaned_offsets(self.offsets, topics), None, is_atomic=False)

    # Expiry

    def _schedule_expiry(self) -> None:
        self._timers.schedule(_EXPIRY_KEY, self.settings.retention_check_interval_ms, self._on_expiry_due)

    def _on_expiry_due(self, now_ms: int) -> Decision[None]:
        self._schedule_expiry()
        return self.expire(now_ms)

    def expire(self, now_ms: int) -> Decision[None]:
        """Take away what has grown too old: offsets, and groups that have lost their last one."""
        records: list[CoordinatorRecord] = []
        for group in self.groups:
            if not group.may_expire:
                continue
            expired = expired_offsets(group, self.offsets, self.settings.retention_ms, now_ms)
            self.rebalances.counters.offset_expirations += len(expired.records)
            records += expired.records
            if expired.is_all and group.is_empty:
                records += group.tombstones()
        if records:
            logger.info("%d records are written for offsets and groups that have expired", len(records))
        return Decision(records, None, is_atomic=False)
