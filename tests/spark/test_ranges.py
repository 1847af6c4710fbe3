"""How offsets become pieces of work."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.ranges import OffsetRange, split_ranges
from headrace.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def split(
    *ranges: tuple[TopicPartition, int, int], least: int | None = None, most: int | None = None
) -> list[tuple[TopicPartition, int, int]]:
    found = split_ranges([OffsetRange(*each) for each in ranges], least, most)
    return [(each.partition, each.start, each.end) for each in found]


def test_there_is_one_piece_for_each_partition_that_has_something() -> None:
    assert split((A, 1, 5), (B, 3, 3), (C, 0, 9)) == [(A, 1, 5), (C, 0, 9)]
    assert split((A, 1, 5), (B, 5, 3)) == [(A, 1, 5)]


def test_fewer_pieces_than_there_are_partitions_change_nothing() -> None:
    assert split((A, 0, 5), (B, 0, 5), least=1) == [(A, 0, 5), (B, 0, 5)]
    assert split((A, 0, 5), (B, 0, 5), least=2) == [(A, 0, 5), (B, 0, 5)]


def test_one_partition_is_split_evenly() -> None:
    assert split((A, 1, 5), least=4) == [(A, 1, 2), (A, 2, 3), (A, 3, 4), (A, 4, 5)]
    assert split((A, 0, 10), least=3) == [(A, 0, 3), (A, 3, 6), (A, 6, 10)]


def test_large_partitions_are_split_and_small_ones_are_not() -> None:
    assert split((A, 0, 10000), (B, 0, 100), (C, 0, 1), least=6) == [
        (A, 0, 2500),
        (A, 2500, 5000),
        (A, 5000, 7500),
        (A, 7500, 10000),
        (B, 0, 100),
        (C, 0, 1),
    ]


def test_no_piece_is_empty_where_there_are_few_offsets() -> None:
    assert split((A, 7, 9), least=5) == [(A, 7, 8), (A, 8, 9)]


def test_no_piece_has_more_offsets_than_wanted() -> None:
    assert split((A, 1, 5), most=4) == [(A, 1, 5)]
    assert split((A, 1, 5), (B, 0, 1), most=2) == [(A, 1, 3), (A, 3, 5), (B, 0, 1)]
    assert split((A, 1, 5), most=2, least=4) == [(A, 1, 2), (A, 2, 3), (A, 3, 4), (A, 4, 5)]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5000)), min_size=1, max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 900),
)
def test_every_offset_is_in_exactly_one_piece(
    sizes: list[tuple[int, int]], least: int | None, most: int | None
) -> None:
    ranges = [(TopicPartition("t", n), start, start + size) for n, (start, size) in enumerate(sizes)]
    pieces = split(*ranges, least=least, most=most)
    for partition, start, end in ranges:
        position = start
        for _, piece_start, piece_end in (piece for piece in pieces if piece[0] == partition):
            assert piece_start == position < piece_end
            assert most is None or piece_end - piece_start <= most
            position = piece_end
        assert position == end
