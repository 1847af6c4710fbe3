"""Every partition of a subscribed topic has one owner, a subscriber; shares are equal, and little moves."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.groups.assignors.range import RangeAssignor
from headrace.groups.assignors.spec import AssignmentFailed, Assignor, GroupSpec, MemberSpec, Partitions
from headrace.groups.assignors.uniform import UniformAssignor

A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)
ASSIGNORS: tuple[Assignor, ...] = (RangeAssignor(), UniformAssignor())
TOPICS = [UUID(int=number) for number in range(1, 6)]


def group(topics: Mapping[str, set[UUID]], counts: Mapping[UUID, int], **assigned: Partitions) -> GroupSpec:
    members = {name: MemberSpec(frozenset(ids), assigned.get(name, {})) for name, ids in topics.items()}
    return GroupSpec(members, counts)


def sizes(assignment: Mapping[str, Partitions]) -> list[int]:
    return sorted(sum(map(len, partitions.values())) for partitions in assignment.values())


def owners(assignment: Mapping[str, Partitions]) -> dict[tuple[UUID, int], str]:
    found: dict[tuple[UUID, int], str] = {}
    for member_id, partitions in assignment.items():
        for topic_id, indexes in partitions.items():
            assert indexes, "a topic without partitions is left out"
            for index in indexes:
                assert (topic_id, index) not in found
                found[topic_id, index] = member_id
    return found


def check(spec: GroupSpec, assignment: Mapping[str, Partitions]) -> None:
    assert set(assignment) == set(spec.members)
    found = owners(assignment)
    wanted = {topic_id for member in spec.members.values() for topic_id in member.topics}
    assert set(found) == {
        (topic_id, index) for topic_id in wanted for index in range(spec.partition_counts[topic_id])
    }
    for (topic_id, _), member_id in found.items():
        assert topic_id in spec.members[member_id].topics


@st.composite
def specs(draw: st.DrawFn) -> GroupSpec:
    counts = {topic_id: draw(st.integers(1, 12)) for topic_id in TOPICS}
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8, unique=True))
    subscription = st.frozensets(st.sampled_from(TOPICS), min_size=1)
    common = draw(st.none() | subscription)
    members = {}
    for name in names:
        topics = common if common is not None else draw(subscription)
        assigned = draw(
            st.dictionaries(
                st.sampled_from(TOPICS), st.frozensets(st.integers(0, 15), min_size=1), max_size=3
            )
        )
        members[name] = MemberSpec(topics, assigned, draw(st.none() | st.text("xyz", min_size=1)))
    return GroupSpec(members, counts)


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
@settings(max_examples=80, deadline=None)
@given(spec=specs())
def test_every_partition_has_one_subscribed_owner(assignor: Assignor, spec: GroupSpec) -> None:
    check(spec, assignor.assign(spec))


@settings(max_examples=80, deadline=None)
@given(spec=specs())
def test_uniform_shares_of_equal_subscriptions_differ_by_one_at_most(spec: GroupSpec) -> None:
    assignment = UniformAssignor().assign(spec)
    if spec.is_homogeneous:
        assert sizes(assignment)[-1] - sizes(assignment)[0] <= 1


@settings(max_examples=80, deadline=None)
@given(spec=specs())
def test_a_uniform_assignment_stays_once_it_is_made(spec: GroupSpec) -> None:
    first = UniformAssignor().assign(spec)
    members = {name: MemberSpec(member.topics, first[name]) for name, member in spec.members.items()}
    assert UniformAssignor().assign(GroupSpec(members, spec.partition_counts)) == first


@settings(max_examples=80, deadline=None)
@given(spec=specs())
def test_no_single_move_improves_a_uniform_assignment(spec: GroupSpec) -> None:
    assignment = UniformAssignor().assign(spec)
    size = {name: sum(map(len, partitions.values())) for name, partitions in assignment.items()}
    for name, partitions in assignment.items():
        for topic_id in partitions:
            takers = [other for other, member in spec.members.items() if topic_id in member.topics]
            assert size[name] - min(size[taker] for taker in takers) <= 1


def test_a_joining_member_takes_its_share_and_nothing_else_moves() -> None:
    topics = {name: {A} for name in ("one", "two", "three")}
    before = {"one": {A: frozenset({0, 1, 2})}, "two": {A: frozenset({3, 4, 5})}}
    after = UniformAssignor().assign(group(topics, {A: 6}, **before))
    assert sizes(after) == [2, 2, 2]
    assert after["one"][A] < before["one"][A]
    assert after["two"][A] < before["two"][A]


def test_a_leaving_members_partitions_are_shared_and_nothing_else_moves() -> None:
    topics = {"one": {A}, "two": {A}}
    before = {"one": {A: frozenset({0, 1})}, "two": {A: frozenset({2, 3})}}
    after = UniformAssignor().assign(group(topics, {A: 6}, **before))
    assert sizes(after) == [3, 3]
    assert after["one"][A] > before["one"][A]
    assert after["two"][A] > before["two"][A]


def test_ranges_of_topics_of_the_same_size_are_split_at_the_same_places() -> None:
    assignment = RangeAssignor().assign(group({"one": {A, B}, "two": {A, B}}, {A: 3, B: 3}))
    assert assignment == {
        "one": {A: frozenset({0, 1}), B: frozenset({0, 1})},
        "two": {A: frozenset({2}), B: frozenset({2})},
    }


def test_ranges_go_to_static_members_first_in_the_order_of_their_instance_ids() -> None:
    members = {
        "a": MemberSpec(frozenset({A})),
        "b": MemberSpec(frozenset({A}), instance_id="z"),
        "c": MemberSpec(frozenset({A}), instance_id="y"),
    }
    assignment = RangeAssignor().assign(GroupSpec(members, {A: 3}))
    assert assignment == {"c": {A: frozenset({0})}, "b": {A: frozenset({1})}, "a": {A: frozenset({2})}}


def test_mixed_subscriptions_are_balanced_over_topics() -> None:
    topics = {"one": {A, B}, "two": {A, B}, "three": {C}}
    assignment = UniformAssignor().assign(group(topics, {A: 4, B: 4, C: 4}))
    assert sizes(assignment) == [4, 4, 4]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_a_topic_that_is_not_there_is_refused(assignor: Assignor) -> None:
    with pytest.raises(AssignmentFailed, match="does not exist"):
        assignor.assign(group({"one": {A}}, {}))


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda assignor: assignor.name)
def test_a_group_without_members_has_an_empty_assignment(assignor: Assignor) -> None:
    assert assignor.assign(GroupSpec({}, {A: 3})) == {}
