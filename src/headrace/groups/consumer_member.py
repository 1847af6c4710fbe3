"""A member of a consumer group: what it wants, what it has, and how far it is on the way to its target.

Members are values: a change makes a new one, which becomes the group's when its records are replayed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, TypeAlias
from uuid import UUID

from headrace.protocol.disk_records.consumer_groups import ClassicMemberMetadata

Assignment: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic id, each with the epoch at which the member got it. A topic with none is left out."""

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1
#: A static member that has left for a while: its place is kept.
LEAVING_STATIC_EPOCH: Final = -2


class MemberState(IntEnum):
    """How far a member is; values are those of the log."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has been asked to give partitions back, and has not yet said that it has."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not yet given back."""
    UNKNOWN = 127


@dataclass(slots=True, frozen=True)
class ConsumerMember:
    """One member. `classic` is there for members that speak the classic protocol to this group."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    assignor: str | None = None
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None

    def moved_to(
        self, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment
    ) -> "ConsumerMember":
        """The member at an epoch, remembering the one before."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that it shall have at an epoch, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch
