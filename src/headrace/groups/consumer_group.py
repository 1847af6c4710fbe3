"""A consumer group: members with epochs, the assignment they shall get to, and who has which partition now.

Only records change it (`consumer_replay.py`). What follows from its members (who has a partition, how many
want a topic) is kept in step with them."""

from collections import Counter
from collections.abc import Collection, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord
from headrace.errors import ErrorCode, KafkaError
from headrace.groups import consumer_records
from headrace.groups.assignors.spec import Partitions
from headrace.groups.consumer_member import Assignment, ConsumerMember
from headrace.groups.group import AgeBase, Committer, GroupKind, PartitionCheck
from headrace.protocol.messages.list_groups import ListedGroup

PROTOCOL_TYPE: Final = "consumer"
#: Members of consumer groups know their epoch from this version of OffsetCommit on.
_COMMIT_VERSION_MIN: Final = 9
_NO_PARTITIONS: Final[Partitions] = {}


class ConsumerGroupState(Enum):
    """The state of a group; values are what clients are told."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ResolvedRegex(NamedTuple):
    """The topics that an expression stood for, at a version of the metadata and a time."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    """The state of one group, as its records add up to it."""

    __slots__ = (
        "_owners",
        "_regex_counts",
        "_topic_counts",
        "epoch",
        "group_id",
        "has_subscription_metadata",
        "is_refresh_due",
        "members",
        "metadata_hash",
        "regexes",
        "static_members",
        "target_epoch",
        "target_timestamp_ms",
        "targets",
    )

    kind: Final = GroupKind.CONSUMER

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        #: Member ids by instance ids.
        self.static_members: dict[str, str] = {}
        self.target_epoch = 1
        #: When the targets were worked out; 0 if that is not known.
        self.target_timestamp_ms = 0
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        #: Whether the log has what releases before 4.1 wrote about the group's topics.
        self.has_subscription_metadata = False
        #: Whether the metadata of its topics may have changed since its hash was worked out.
        self.is_refresh_due = True
        self._topic_counts: Counter[str] = Counter()
        self._regex_counts: Counter[str] = Counter()
        self._owners: dict[UUID, dict[int, int]] = {}

    # What it is

    @property
    def state_now(self) -> ConsumerGroupState:
        """How far its members are with the assignment."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """The state as clients are told."""
        return self.state_now.value

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def member(self, member_id: str) -> ConsumerMember:
        """A member; UNKNOWN_MEMBER_ID if there is none."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has an instance id, if there is one."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target(self, member_id: str) -> Partitions:
        """What a member shall have."""
        return self.targets.get(member_id, _NO_PARTITIONS)

    def is_owned(self, topic_id: UUID, partition: int) -> bool:
        """Whether a member has a partition, or is giving it back."""
        return partition in self._owners.get(topic_id, ())

    @property
    def topic_counts(self) -> Mapping[str, int]:
        """How many members name each topic."""
        return self._topic_counts

    @property
    def regex_counts(self) -> Mapping[str, int]:
        """How many members are subscribed to each expression."""
        return self._regex_counts

    def regex_count(self, regex: str) -> int:
        """How many members are subscribed to an expression."""
        return self._regex_counts[regex]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member is subscribed to. An unresolved expression stands for none."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def lasting_target(self, member: ConsumerMember) -> Partitions:
        """What a member shall have by the present targets. A static one takes over what its instance had."""
        if member.instance_id is None:
            return self.target(member.member_id)
        known = self.static_members.get(member.instance_id)
        return _NO_PARTITIONS if known is None else self.target(known)

    def awaits_others(self, member: ConsumerMember) -> bool:
        """Whether somebody else still has what a member is waiting for."""
        return any(
            partition not in member.assigned.get(topic_id, ()) and self.is_owned(topic_id, partition)
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    @property
    def classic_members(self) -> int:
        """How many members speak the classic protocol."""
        return sum(member.classic is not None for member in self.members.values())

    # Changes, by replay alone

    def put_member(self, member: ConsumerMember) -> None:
        """A member is new, or has changed."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._discount(old)
        self.members[member.member_id] = member
        self._topic_counts.update(member.topics)
        if member.regex:
            self._regex_counts[member.regex] += 1
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._own(member.assigned, member.epoch)
        self._own(member.revoking, member.epoch)

    def remove_member(self, member_id: str) -> None:
        """A member is gone."""
        old = self.members.pop(member_id, None)
        if old is None:
            return
        self._discount(old)
        if old.instance_id is not None and self.static_members.get(old.instance_id) == member_id:
            del self.static_members[old.instance_id]

    def _discount(self, member: ConsumerMember) -> None:
        _take_away(self._topic_counts, member.topics)
        if member.regex:
            _take_away(self._regex_counts, (member.regex,))
        self._disown(member.assigned, member.epoch)
        self._disown(member.revoking, member.epoch)

    def _own(self, assignment: Assignment, epoch: int) -> None:
        """In a compacted log a former owner may come after the present one: the later epoch holds."""
        for topic_id, partitions in assignment.items():
            owners = self._owners.setdefault(topic_id, {})
            for partition in partitions:
                owners[partition] = max(epoch, owners.get(partition, epoch))

    def _disown(self, assignment: Assignment, epoch: int) -> None:
        for topic_id, partitions in assignment.items():
            owners = self._owners.get(topic_id, {})
            for partition in partitions:
                if owners.get(partition) == epoch:
                    del owners[partition]
            if not owners:
                self._owners.pop(topic_id, None)

    # Offsets and administration

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Members commit with their epoch, or with an older one for what they had at that epoch already."""
        member_id, instance_id, epoch, version, is_transactional = committer
        if epoch < 0 and not self.members:
            return None
        if is_transactional and epoch == -1 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        is_classic = member.classic is not None
        if not is_transactional and not is_classic and version < _COMMIT_VERSION_MIN:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            name = "generation id" if is_classic else "member epoch"
            raise _stale(
                is_classic, f"Received {name} {epoch} is newer than current member epoch {member.epoch}."
            )
        return partial(_check_partition, member, epoch)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Members fetch with their epoch; whoever does not say who it is may fetch anything."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            is_classic = member.classic is not None
            name = "generation id" if is_classic else "member epoch"
            raise _stale(
                is_classic,
                f"The received {name} {member_epoch} does not match the expected member epoch "
                f"{member.epoch}.",
            )

    def check_offset_deletion(self) -> None:
        """Which offsets are wanted is known, so the others may go."""

    def check_deletion(self) -> None:
        """Only a group without members goes."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member is subscribed to a topic."""
        return topic in self._topic_counts or any(topic in each.topics for each in self.regexes.values())

    def age_base(self) -> AgeBase | None:
        """Offsets of topics that nobody is subscribed to grow old from their commit on."""
        return lambda offset: offset.commit_timestamp

    @property
    def may_expire(self) -> bool:
        """Whether the group goes when its last offset has expired."""
        return True

    def tombstones(self, member_ids: Collection[str] | None = None) -> list[CoordinatorRecord]:
        """The records that delete the group, with these members or those that it has."""
        group_id = self.group_id
        ids = self.members if member_ids is None else member_ids
        return [
            *(consumer_records.assignment_tombstone(group_id, each) for each in ids),
            *(consumer_records.target_tombstone(group_id, each) for each in ids),
            consumer_records.target_epoch_tombstone(group_id),
            *(consumer_records.member_tombstone(group_id, each) for each in ids),
            *(consumer_records.regex_tombstone(group_id, each) for each in self.regexes),
            consumer_records.subscription_metadata_tombstone(group_id),
            consumer_records.epoch_tombstone(group_id),
        ]

    def listed(self) -> ListedGroup:
        """The group as ListGroups tells it."""
        return ListedGroup(
            group_id=self.group_id,
            protocol_type=PROTOCOL_TYPE,
            group_state=self.state_name,
            group_type=self.kind.value,
        )

    def is_in_states(self, states: Collection[str]) -> bool:
        """Whether its state is one of these, in lower case."""
        return self.state_name.lower() in states

    def state(self) -> Any:
        """What the log says about the group, as a plain value."""
        return (
            self.epoch,
            self.metadata_hash,
            dict(self.members),
            self.target_epoch,
            self.target_timestamp_ms,
            {member_id: dict(target) for member_id, target in self.targets.items()},
            dict(self.regexes),
            self.has_subscription_metadata,
        )


def _take_away(counts: Counter[str], names: Collection[str]) -> None:
    for name in names:
        counts[name] -= 1
        if counts[name] <= 0:
            del counts[name]


def _check_partition(member: ConsumerMember, epoch: int, topic: str, topic_id: UUID, partition: int) -> None:
    """A commit with an older epoch counts for what the member has had since then."""
    since = member.assigned.get(topic_id, {}).get(partition)
    if since is None:
        since = member.revoking.get(topic_id, {}).get(partition)
    is_classic = member.classic is not None
    if since is None:
        raise _stale(
            is_classic, f"Partition {topic}-{partition} is not assigned or pending revocation for member."
        )
    if epoch < since:
        name = "generation id" if is_classic else "member epoch"
        raise _stale(
            is_classic,
            f"Received {name} {epoch} is older than assignment epoch {since} for partition "
            f"{topic}-{partition}.",
        )


def _stale(is_classic: bool, message: str) -> KafkaError:
    return KafkaError(ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH, message)
