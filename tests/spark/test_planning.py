"""Ranges of a stream against what the cluster holds."""

from uuid import UUID

import pytest

from headrace.client.errors import TopicRecreated
from headrace.spark.errors import DataLost
from headrace.spark.losses import Losses
from headrace.spark.offsets import Offsets
from headrace.spark.planning import Held, new_partitions, readable_part, starts_of, stream_ranges
from headrace.spark.ranges import OffsetRange
from headrace.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
OLD, NEW = UUID(int=1), UUID(int=2)
STRICT, LENIENT = Losses(is_fatal=True), Losses(is_fatal=False)


def test_a_range_within_what_is_held_is_read_as_it_is() -> None:
    assert readable_part(OffsetRange(A, 5, 9), Held(5, 9), STRICT) == OffsetRange(A, 5, 9)


@pytest.mark.parametrize(
    ("start", "end", "held", "left", "said"),
    [
        (2, 9, Held(5, 9), (5, 9), "offsets 2 to 5 have been deleted; the partition holds offsets 5 to 9"),
        (2, 4, Held(5, 9), (4, 4), "offsets 2 to 4 have been deleted"),
        (5, 12, Held(5, 9), (5, 9), "up to 12 are wanted, but the partition ends at 9"),
        (11, 12, Held(5, 9), (11, 11), "up to 12 are wanted"),
        (9, 7, Held(0, 7), (7, 7), "gone back from offset 9 to 7"),
    ],
)
def test_what_is_gone_fails_or_is_left_out(
    start: int, end: int, held: Held, left: tuple[int, int], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DataLost, match=f"a-0: .*{said}.*failOnDataLoss"):
        readable_part(OffsetRange(A, start, end), held, STRICT)
    assert readable_part(OffsetRange(A, start, end), held, LENIENT) == OffsetRange(A, *left)
    assert said in caplog.text


def test_a_new_partition_is_read_from_its_beginning() -> None:
    ranges = stream_ranges(Offsets({A: 3}), Offsets({A: 5, B: 4}), {A: Held(0, 5), B: Held(0, 9)}, {}, STRICT)
    assert ranges == [OffsetRange(A, 3, 5), OffsetRange(B, 0, 4)]


def test_a_new_partition_that_has_lost_its_beginning_is_a_loss() -> None:
    start, end, held = Offsets({}), Offsets({B: 9}), {B: Held(4, 9)}
    with pytest.raises(DataLost, match="b-0: new, but it begins at offset 4"):
        stream_ranges(start, end, held, {}, STRICT)
    assert stream_ranges(start, end, held, {}, LENIENT) == [OffsetRange(B, 4, 9)]


def test_partitions_that_are_gone_are_a_loss() -> None:
    for start, end in ((Offsets({A: 3, B: 1}), Offsets({A: 5})), (Offsets({A: 3}), Offsets({A: 5, B: 1}))):
        with pytest.raises(DataLost, match="b-0: no longer exists"):
            stream_ranges(start, end, {A: Held(0, 5)}, {}, STRICT)
        assert stream_ranges(start, end, {A: Held(0, 5)}, {}, LENIENT) == [OffsetRange(A, 3, 5)]


def test_a_topic_that_was_recreated_since_the_batch_was_planned_is_not_read_in_its_place() -> None:
    start, end = Offsets({A: 3}, {"a": OLD}), Offsets({A: 5}, {"a": OLD})
    with pytest.raises(TopicRecreated, match=r"'a'.*created again"):
        stream_ranges(start, end, {A: Held(0, 5)}, {"a": NEW}, STRICT)
    assert stream_ranges(start, end, {A: Held(0, 5)}, {"a": NEW}, LENIENT) == []


def test_a_recreated_topic_is_read_from_its_beginning_where_losses_do_not_matter() -> None:
    start, end = Offsets({A: 300}, {"a": OLD}), Offsets({A: 5}, {"a": NEW})
    assert stream_ranges(start, end, {A: Held(0, 5)}, {"a": NEW}, LENIENT) == [OffsetRange(A, 0, 5)]


def test_a_start_without_ids_is_taken_for_the_same_topic() -> None:
    start, end = Offsets({A: 3}), Offsets({A: 5}, {"a": NEW})
    assert stream_ranges(start, end, {A: Held(0, 5)}, {"a": NEW}, STRICT) == [OffsetRange(A, 3, 5)]


def test_starts_are_known_for_new_and_recreated_partitions_as_well() -> None:
    start, end = Offsets({A: 300}, {"a": OLD}), Offsets({A: 5, B: 9}, {"a": NEW, "b": NEW})
    assert new_partitions(start, end) == {A, B}
    assert starts_of(start, end, {A: 0, B: 2}) == {A: 0, B: 2}
    assert starts_of(start, end, {A: 0}) == {A: 0}
    assert starts_of(Offsets({A: 3}, {"a": NEW}), end, {B: 2}) == {A: 3, B: 2}
