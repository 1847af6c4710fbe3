"""A classic group: its members, its generation, and the state it is in. It decides nothing by itself."""

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any, Final

from headrace.coordinator.placement import java_hash
from headrace.coordinator.shard import CoordinatorRecord
from headrace.errors import ErrorCode, HeadraceError, KafkaError
from headrace.groups.classic_member import ClassicMember
from headrace.groups.group import AgeBase, Committer, GroupKind, PartitionCheck
from headrace.groups.records import group_record, group_tombstone, persisted_group
from headrace.groups.subscriptions import subscribed_topics
from headrace.protocol.disk_records.offsets import GroupMetadataValue
from headrace.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from headrace.protocol.messages.list_groups import ListedGroup

CONSUMER_PROTOCOL: Final = "consumer"
NO_MEMBER_ID: Final = ""


class ClassicState(Enum):
    """Where a group is between two generations; values are what clients are told."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState

#: From which states each state is reached.
COMES_FROM: Final = {
    EMPTY: frozenset({PREPARING}),
    PREPARING: frozenset({STABLE, COMPLETING, EMPTY}),
    COMPLETING: frozenset({PREPARING}),
    STABLE: frozenset({COMPLETING}),
    DEAD: frozenset({STABLE, PREPARING, COMPLETING, EMPTY, DEAD}),
}
_HAS_MEMBERS: Final = frozenset({STABLE, PREPARING, COMPLETING})


class ClassicGroup:
    """A group whose members join, are told an assignment by one of them, and heartbeat."""

    __slots__ = (
        "awaiting_join_count",
        "generation",
        "group_id",
        "has_new_member",
        "leader",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol",
        "protocol_type",
        "state_now",
        "state_since_ms",
        "static_members",
        "supporters",
        "topics",
        "written",
    )

    def __init__(self, group_id: str, now_ms: int | None) -> None:
        self.group_id = group_id
        self.state_now = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_joins: set[str] = set()
        self.pending_syncs: set[str] = set()
        self.awaiting_join_count = 0
        self.supporters: dict[str, int] = {}
        self.topics: frozenset[str] | None = None
        """What members subscribe to, as far as it can be told."""
        self.has_new_member = False
        self.written: GroupMetadataValue | None = None
        """What the log says about the group."""

    # What all groups have

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CLASSIC

    @property
    def is_empty(self) -> bool:
        return self.state_now is EMPTY

    @property
    def state_name(self) -> str:
        return self.state_now.value

    @property
    def is_simple(self) -> bool:
        """Whether it is there for its offsets alone."""
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL

    @property
    def may_expire(self) -> bool:
        return True

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Members of the present generation may commit, and anybody may if there are no members."""
        member_id, instance_id, generation, _, is_transactional = committer
        if self.state_now is DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation < 0 and self.state_now is EMPTY:
            return None
        if generation >= 0 or member_id != NO_MEMBER_ID or instance_id is not None:
            self.check_member(member_id, instance_id)
            if generation != self.generation:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional and self.state_now is not EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if not is_transactional and self.state_now is COMPLETING:
            # It knows the generation, so it has joined; it has to be told its assignment first.
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may ask for offsets."""
        self._require_alive()

    def check_offset_deletion(self) -> None:
        """Offsets of live groups go only if it can be told which of them are wanted."""
        self._require_alive()
        if self.state_now in _HAS_MEMBERS and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_deletion(self) -> None:
        """Only a group without members goes."""
        self._require_alive()
        if self.state_now in _HAS_MEMBERS:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def _require_alive(self) -> None:
        if self.state_now is DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def is_subscribed_to(self, topic: str) -> bool:
        """If it can't be told, consumers are taken to want everything."""
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    def age_base(self) -> AgeBase | None:
        """Offsets of a group without members grow old from the day on which it lost the last one."""
        if self.protocol_type is None:
            return lambda offset: offset.commit_timestamp
        if self.state_now is EMPTY:
            since_ms = self.state_since_ms
            return lambda offset: offset.commit_timestamp if since_ms is None else since_ms
        if self.uses_consumer_protocol and self.topics is not None and self.state_now is STABLE:
            return lambda offset: offset.commit_timestamp
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_tombstone(self.group_id)]

    def listed(self) -> ListedGroup:
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type or "",
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def is_in_states(self, states: Collection[str]) -> bool:
        return self.state_name.lower() in states

    def state(self) -> Any:
        """Between two generations the log still has the former one."""
        if self.state_now in (STABLE, EMPTY) and self.written is not None:
            return persisted_group(group_record(self))
        return None if self.written is None else persisted_group(self.written)

    # Members

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse whoever is no member, or was replaced by another process with its instance id."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def add(self, member: ClassicMember) -> None:
        """Take a member in. The first one decides the type of protocol, and leads."""
        if member.instance_id is not None:
            if member.instance_id in self.static_members:
                raise HeadraceError(f"{member.instance_id} is a member of group {self.group_id} already")
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_support(member, 1)
        self.awaiting_join_count += member.awaiting_join is not None
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Forget a member, or one that was about to become one. If it led, another one does."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_support(member, -1)
            self.awaiting_join_count -= member.awaiting_join is not None
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(
        self, instance_id: str, old_id: str, new_id: str
    ) -> tuple[ClassicMember, ClassicMember]:
        """Give a static member another member id; the old member, whose requests may wait, and the new."""
        old = self.members.pop(old_id)
        new = ClassicMember(
            new_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocol_type,
            old.protocols,
            old.assignment,
        )
        self.awaiting_join_count -= old.awaiting_join is not None
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return old, new

    def update_protocols(self, member: ClassicMember, protocols: list[JoinGroupRequestProtocol]) -> None:
        self._count_support(member, -1)
        member.protocols = protocols
        self._count_support(member, 1)

    def _count_support(self, member: ClassicMember, change: int) -> None:
        # A member that names a protocol twice supports it once.
        for name in {protocol.name for protocol in member.protocols}:
            self.supporters[name] = self.supporters.get(name, 0) + change

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.awaiting_join_count and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member may take."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """See to it that a member that has joined leads; false if none has."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader = member.member_id
                return True
        return False

    # Protocols

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether somebody with these protocols fits in."""
        if self.state_now is EMPTY:
            return protocol_type != "" and any(True for _ in names)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supporters.get(name, 0) == size for name in names
        )

    def select_protocol(self) -> str:
        """The protocol that most members like best of those that all have."""
        size = len(self.members)
        candidates = {name for name, count in self.supporters.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(_in_java_order(votes), key=votes.__getitem__)

    # States

    @property
    def can_rebalance(self) -> bool:
        return self.state_now in COMES_FROM[PREPARING]

    def move_to(self, state: ClassicState, now_ms: int) -> None:
        """Enter another state."""
        if self.state_now not in COMES_FROM[state]:
            raise HeadraceError(
                f"group {self.group_id} cannot go from {self.state_now.value} to {state.value}"
            )
        self.previous_state, self.state_now = self.state_now, state
        self.state_since_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        """Count up, and settle what follows from who the members are now."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.topics = subscribed_topics(self)
        self.move_to(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_syncs.clear()

    def joined_members(self) -> list[JoinGroupResponseMember]:
        """The members as the leader is told."""
        protocol = self.protocol or ""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(protocol),
            )
            for member in self.members.values()
        ]


def _in_java_order(names: Collection[str]) -> list[str]:
    """Names as a hash map of Java lists them: it decides who wins where votes are even."""
    capacity = 16
    while len(names) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = java_hash(name) & 0xFFFFFFFF
        return (code ^ code >> 16) & (capacity - 1)

    return sorted(names, key=bucket)
