"""Where replicas of new partitions go."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.metadata.placement import PlacementRefused, Placer
from headrace.metadata.registrations import BrokerState
from headrace.testing.entropy import SeededEntropy


def broker(broker_id: int, rack: str | None = None, *, fenced: bool = False) -> BrokerState:
    return BrokerState(
        broker_id, broker_id, UUID(int=broker_id), {}, {}, rack, fenced, False, False, (), None
    )


def test_leaders_and_replicas_are_spread_evenly() -> None:
    placer = Placer([broker(number) for number in range(5)], SeededEntropy(3))
    placed = [placer.place(3) for _ in range(100)]
    leaders = Counter(replicas[0] for replicas in placed)
    everywhere = Counter(replica for replicas in placed for replica in replicas)
    assert set(leaders.values()) == {20}
    assert set(everywhere.values()) == {60}


def test_replicas_go_to_different_racks_first() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    placer = Placer([broker(number, rack) for number, rack in racks.items()], SeededEntropy(1))
    for _ in range(50):
        assert {racks[replica] for replica in placer.place(3)} == {"a", "b", "c"}


def test_a_fenced_broker_never_leads_first_and_is_used_last() -> None:
    placer = Placer([broker(0), broker(1), broker(2, fenced=True)], SeededEntropy())
    for _ in range(20):
        assert 2 not in placer.place(2)
    placer = Placer([broker(0), broker(1), broker(2, fenced=True)], SeededEntropy())
    assert all(placer.place(3)[0] != 2 for _ in range(20))


def test_one_broker_takes_everything() -> None:
    placer = Placer([broker(7)], SeededEntropy())
    assert {placer.place(1) for _ in range(50)} == {(7,)}


@pytest.mark.parametrize(
    ("brokers", "factor", "reason"),
    [
        ([broker(1)], 0, "must be positive"),
        ([broker(1)], 2, "only 1 broker"),
        ([broker(1, fenced=True)], 1, "All brokers are currently fenced"),
        ([], 1, "All brokers are currently fenced"),
    ],
)
def test_what_cannot_be_placed_is_refused(brokers: list[BrokerState], factor: int, reason: str) -> None:
    with pytest.raises(PlacementRefused, match=reason):
        Placer(brokers, SeededEntropy()).place(factor)


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8),
    fenced=st.sets(st.integers(0, 7)),
    data=st.data(),
)
def test_every_placement_has_distinct_replicas_and_an_unfenced_leader(
    racks: list[str | None], fenced: set[int], data: st.DataObject
) -> None:
    brokers = [broker(number, rack, fenced=number in fenced) for number, rack in enumerate(racks)]
    unfenced = {each.id for each in brokers if not each.fenced}
    if not unfenced:
        return
    factor = data.draw(st.integers(1, len(brokers)))
    placer = Placer(brokers, SeededEntropy(data.draw(st.integers(0, 1000))))
    for _ in range(12):
        replicas = placer.place(factor)
        assert len(set(replicas)) == factor
        assert replicas[0] in unfenced
