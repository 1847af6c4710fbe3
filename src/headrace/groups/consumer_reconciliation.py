"""One step of a member towards its target: first it gives back, then it gets what others have given back.

A partition is handed on only once its former owner has let go (promise 21): as long as a member reports that
it owns a partition it shall give back, it stays at its epoch, and nobody else gets the partition."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias
from uuid import UUID

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.assignors.spec import Partitions
from headrace.groups.consumer_member import Assignment, ConsumerMember, MemberState

#: Whether any member has a partition, or is giving it back.
IsOwned: TypeAlias = Callable[[UUID, int], bool]

_NOTHING: Final[Assignment] = {}


@dataclass(slots=True, frozen=True)
class Target:
    """Where a member shall get to. `owned` is what it says it has, None if it did not say.

    `topic_ids` are the topics it is subscribed to: what it has of others goes, whatever the target says."""

    epoch: int
    partitions: Partitions
    topic_ids: Collection[UUID]
    has_subscription_changed: bool
    owned: Mapping[UUID, Collection[int]] | None
    is_owned: IsOwned


def reconcile(member: ConsumerMember, target: Target) -> ConsumerMember:
    """The member after one step, or the same member if there is none to take."""
    if member.state is MemberState.STABLE:
        if member.epoch != target.epoch:
            return _next_step(member, member.epoch, target)
        return _without_dropped_topics(member, target) if target.has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if not _still_owns(member.revoking, target):
            return _next_step(member, member.epoch, target)
        return _without_dropped_topics(member, target) if target.has_subscription_changed else member
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _next_step(member, member.epoch, target)
    if target.owned is None or target.owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions "
            "and rejoin.",
        )
    return _next_step(member, target.epoch, target)


def _still_owns(revoking: Assignment, target: Target) -> bool:
    """Whether the member has not let go of all these yet. One that does not say what it has, has them."""
    if target.owned is None:
        return True
    return any(
        partition in revoking.get(topic_id, ())
        for topic_id, partitions in target.owned.items()
        for partition in partitions
    )


def _without_dropped_topics(member: ConsumerMember, target: Target) -> ConsumerMember:
    """Take back what the member has of topics that it is not subscribed to any more."""
    dropped = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id not in target.topic_ids
    }
    if not dropped:
        return member
    assigned = {
        topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in dropped
    }
    revoking = {topic_id: dict(partitions) for topic_id, partitions in member.revoking.items()}
    for topic_id, partitions in dropped.items():
        revoking.setdefault(topic_id, {}).update(partitions)
    if _still_owns(revoking, target):
        return member.moved_to(member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=assigned)


def _next_step(member: ConsumerMember, epoch: int, target: Target) -> ConsumerMember:
    """Give back what is not in the target; or else take what is free of it and be at its epoch."""
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    has_unreleased = False
    wanted: dict[UUID, list[int]] = {}
    for topic_id in {*target.partitions, *member.assigned}:
        aim = target.partitions.get(topic_id, frozenset()) if topic_id in target.topic_ids else frozenset()
        present = member.assigned.get(topic_id, {})
        for partition, since in present.items():
            (kept if partition in aim else revoking).setdefault(topic_id, {})[partition] = since
        own_revoking = member.revoking.get(topic_id, {})
        for partition in aim:
            if partition in present:
                continue
            if partition not in own_revoking and target.is_owned(topic_id, partition):
                has_unreleased = True
            else:
                wanted.setdefault(topic_id, []).append(partition)
    if revoking and _still_owns(revoking, target):
        return member.moved_to(epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    for topic_id, partitions in wanted.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, target.epoch))
    state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
    return member.moved_to(target.epoch, state, kept, _NOTHING)
