"""What all kinds of groups have in common: offsets are committed to them, and they are listed and deleted."""

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from headrace.coordinator.shard import CoordinatorRecord
from headrace.groups.offsets import CommittedOffset
from headrace.protocol.messages.list_groups import ListedGroup


class GroupKind(Enum):
    """The protocol that a group's members speak; values are what ListGroups says."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """Who commits offsets, and in which version of which API."""

    member_id: str
    instance_id: str | None
    generation: int
    """The generation of a classic group's member, or the epoch of a consumer group's."""
    version: int
    is_transactional: bool = False


#: Refuses the commit for one partition (topic name, topic id, partition) with a `KafkaError`.
PartitionCheck: TypeAlias = Callable[[str, UUID, int], None]
#: The time that an offset's age counts from.
AgeBase: TypeAlias = Callable[[CommittedOffset], int]


class Group(Protocol):
    """A group of any kind. What refuses does so with a `KafkaError`."""

    group_id: str

    @property
    def kind(self) -> GroupKind: ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def state_name(self) -> str:
        """The state as clients are told."""

    def check_commit(self, committer: Committer) -> PartitionCheck | None:
        """Refuse a commit of offsets; else what is to be checked for each partition, if anything."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch of offsets. GROUP_ID_NOT_FOUND stands for a group that has none."""

    def check_offset_deletion(self) -> None:
        """Refuse the deletion of offsets."""

    def check_deletion(self) -> None:
        """Refuse the deletion of the group."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members may still want the offsets of a topic."""

    def age_base(self) -> AgeBase | None:
        """From when on offsets grow old; None if they do not at present."""

    @property
    def may_expire(self) -> bool:
        """Whether the group goes when its last offset has expired."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group."""

    def listed(self) -> ListedGroup:
        """The group as ListGroups tells it."""

    def is_in_states(self, states: Collection[str]) -> bool:
        """Whether its state is one of these, in lower case."""

    def state(self) -> Any:
        """What the log says about the group, as a plain value; None if it says nothing."""
