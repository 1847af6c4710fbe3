"""What an assignor is given, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias
from uuid import UUID

from headrace.errors import HeadraceError

Partitions: TypeAlias = Mapping[UUID, frozenset[int]]
"""Partitions by topic id. A topic with none is left out."""


class AssignmentFailed(HeadraceError):
    """There is no assignment for what was given."""


@dataclass(slots=True, frozen=True)
class MemberSpec:
    """A member: what it is subscribed to, and what it has in the target assignment so far."""

    topics: frozenset[UUID]
    assigned: Partitions = field(default_factory=dict)
    instance_id: str | None = None


@dataclass(slots=True, frozen=True)
class GroupSpec:
    """A group: its members by id, in an order that stays, and the partition counts of all their topics."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[UUID, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members are subscribed to the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions, None)
        return first is None or all(member.topics == first.topics for member in subscriptions)

    def partition_count(self, topic_id: UUID) -> int:
        """How many partitions a topic has."""
        count = self.partition_counts.get(topic_id)
        if count is None:
            raise AssignmentFailed(f"Members are subscribed to topic {topic_id}, which does not exist")
        return count


class Assignor(Protocol):
    """Gives every partition of the subscribed topics to one member."""

    @property
    def name(self) -> str:
        """What members and configurations call it."""

    def assign(self, spec: GroupSpec) -> dict[str, Partitions]:
        """The partitions of each member."""
