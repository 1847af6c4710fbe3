"""How much a batch takes, and how long a small one is put off."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.admission import Patience, limited
from headrace.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_a_limit_is_shared_by_how_much_each_partition_has() -> None:
    assert limited({A: 0, B: 0}, {A: 900, B: 100}, 100) == {A: 90, B: 10}
    assert limited({A: 500, B: 7}, {A: 900, B: 7}, 100) == {A: 600, B: 7}


def test_a_limit_above_what_there_is_takes_all() -> None:
    assert limited({A: 0, B: 5}, {A: 10, B: 6}, 1000) == {A: 10, B: 6}


def test_no_partition_starves() -> None:
    assert limited({A: 0, B: 0}, {A: 1_000_000, B: 1}, 10) == {A: 9, B: 1}


def test_a_partition_without_a_start_is_left_for_later() -> None:
    assert limited({A: 0}, {A: 10, B: 10}, 5) == {A: 5}


def test_nothing_new_stays_nothing_new() -> None:
    assert limited({A: 10}, {A: 10}, 5) == {A: 10}
    assert limited({}, {}, 5) == {}


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=8), st.integers(1, 10**7))
def test_a_limited_batch_makes_progress_and_stays_within_bounds(
    pairs: list[tuple[int, int]], limit: int
) -> None:
    starts = {TopicPartition("t", n): start for n, (start, _) in enumerate(pairs)}
    ends = {TopicPartition("t", n): start + size for n, (start, size) in enumerate(pairs)}
    found = limited(starts, ends, limit)
    assert found.keys() == ends.keys()
    for partition, end in ends.items():
        assert starts[partition] <= found[partition] <= end
        assert found[partition] > starts[partition] or end == starts[partition]
    # Each partition may be rounded up to one offset, so as not to starve.
    assert sum(found[partition] - starts[partition] for partition in found) <= limit + len(pairs)


def test_the_first_batch_never_waits() -> None:
    assert not Patience(100, 1_000).waits({A: 0}, {A: 1}, 0)


def test_a_small_batch_waits_until_there_is_enough() -> None:
    patience = Patience(100, 60_000)
    assert not patience.waits({A: 0}, {A: 1}, 0)
    assert patience.waits({A: 1}, {A: 100}, 10)
    assert not patience.waits({A: 1}, {A: 101}, 20)


def test_a_small_batch_waits_no_longer_than_it_may() -> None:
    patience = Patience(100, 1_000)
    assert not patience.waits({A: 0}, {A: 1}, 0)
    assert patience.waits({A: 1}, {A: 2}, 999)
    assert not patience.waits({A: 1}, {A: 2}, 1_000)
    assert patience.waits({A: 2}, {A: 3}, 1_999)


def test_offsets_of_new_partitions_count() -> None:
    patience = Patience(5, 60_000, last_ms=0)
    assert patience.waits({A: 10}, {A: 10, B: 4}, 1)
    assert not patience.waits({A: 10}, {A: 10, B: 5}, 2)
