"""One step of a member towards its target, case by case: from state, epoch and partitions to the next."""

from typing import NamedTuple
from uuid import UUID

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.groups.consumer_member import Assignment, ConsumerMember, MemberState
from headrace.groups.consumer_reconciliation import Target, reconcile

TOPIC, OTHER = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def at(epoch: int, *partitions: int, topic: UUID = TOPIC) -> Assignment:
    return {topic: dict.fromkeys(partitions, epoch)} if partitions else {}


class Case(NamedTuple):
    """A member at epoch 10, on its way to epoch 11 unless said otherwise."""

    state: MemberState
    assigned: Assignment
    revoking: Assignment
    target: set[int]
    owned: set[int] | None
    taken: set[int]
    expected: tuple[MemberState, int, Assignment, Assignment]
    epoch: int = 11
    has_changed: bool = False
    is_subscribed: bool = True


CASES = {
    "nothing to do": Case(STABLE, at(9, 1), {}, {1}, None, {1}, (STABLE, 10, at(9, 1), {}), epoch=10),
    "a new epoch alone": Case(STABLE, at(9, 1), {}, {1}, None, {1}, (STABLE, 11, at(9, 1), {})),
    "more that is free": Case(
        STABLE, at(9, 1), {}, {1, 2}, None, {1}, (STABLE, 11, {TOPIC: {1: 9, 2: 11}}, {})
    ),
    "more that others have": Case(STABLE, at(9, 1), {}, {1, 2}, None, {1, 2}, (UNRELEASED, 11, at(9, 1), {})),
    "some to give back": Case(
        STABLE, at(9, 1, 2), {}, {1}, None, {1, 2}, (UNREVOKED, 10, at(9, 1), at(9, 2))
    ),
    "gave back already": Case(STABLE, at(9, 1, 2), {}, {1}, {1}, {1, 2}, (STABLE, 11, at(9, 1), {})),
    "giving back comes before getting": Case(
        STABLE, at(9, 1), {}, {2}, {1}, {1}, (UNREVOKED, 10, {}, at(9, 1))
    ),
    "still has it": Case(
        UNREVOKED, at(9, 1), at(9, 2), {1}, {1, 2}, {1, 2}, (UNREVOKED, 10, at(9, 1), at(9, 2))
    ),
    "does not say": Case(
        UNREVOKED, at(9, 1), at(9, 2), {1}, None, {1, 2}, (UNREVOKED, 10, at(9, 1), at(9, 2))
    ),
    "has given back": Case(UNREVOKED, at(9, 1), at(9, 2), {1}, {1}, {1, 2}, (STABLE, 11, at(9, 1), {})),
    "gets back what it has just given": Case(
        UNREVOKED, at(9, 1), at(9, 2), {1, 2}, {1}, {1, 2}, (STABLE, 11, {TOPIC: {1: 9, 2: 11}}, {})
    ),
    "others have let go": Case(
        UNRELEASED, at(9, 1), {}, {1, 2}, None, {1}, (STABLE, 10, {TOPIC: {1: 9, 2: 10}}, {}), epoch=10
    ),
    "others have not": Case(
        UNRELEASED, at(9, 1), {}, {1, 2}, None, {1, 2}, (UNRELEASED, 10, at(9, 1), {}), epoch=10
    ),
    "a new target while waiting": Case(
        UNRELEASED, at(9, 1), {}, {2}, None, {1, 2}, (UNREVOKED, 10, {}, at(9, 1))
    ),
    "a topic that was dropped": Case(
        STABLE, at(9, 1), {}, {1}, {1}, {1}, (UNREVOKED, 10, {}, at(9, 1)), 10, True, False
    ),
    "a topic that was dropped and let go": Case(
        STABLE, at(9, 1), {}, {1}, set(), {1}, (STABLE, 10, {}, {}), 10, True, False
    ),
    "a dropped topic is not assigned": Case(
        STABLE, {}, {}, {1}, None, set(), (STABLE, 11, {}, {}), 11, False, False
    ),
    "an unknown state is left by whoever has nothing": Case(
        UNKNOWN, {}, {}, {1}, set(), set(), (STABLE, 11, at(11, 1), {})
    ),
}


def target_of(case: Case) -> Target:
    owned = None if case.owned is None else {TOPIC: case.owned} if case.owned else {}
    return Target(
        case.epoch,
        {TOPIC: frozenset(case.target)} if case.target else {},
        {TOPIC} if case.is_subscribed else {OTHER},
        case.has_changed,
        owned,
        lambda topic_id, partition: partition in case.taken,
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_member_takes_a_step(case: Case) -> None:
    member = ConsumerMember(
        "member", epoch=10, state=case.state, assigned=case.assigned, revoking=case.revoking
    )
    stepped = reconcile(member, target_of(case))
    assert (stepped.state, stepped.epoch, stepped.assigned, stepped.revoking) == case.expected


@pytest.mark.parametrize("owned", [None, {TOPIC: [1]}])
def test_a_member_in_an_unknown_state_begins_anew(owned: dict[UUID, list[int]] | None) -> None:
    member = ConsumerMember("member", epoch=10, state=UNKNOWN)
    target = Target(11, {}, {TOPIC}, False, owned, lambda topic_id, partition: False)
    with pytest.raises(KafkaError) as caught:
        reconcile(member, target)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH
