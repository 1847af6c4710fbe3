"""Places of batches appended last are kept in memory: they are those that a walk over the file finds."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.log.segment import RECENT_MAX, Segment
from headrace.testing.memory_disk import MemoryDisk
from tests.support_segment import NOW, build, new_segment, reopened


def places(segment: Segment, end: int) -> list[object]:
    return [segment.translate(offset) for offset in range(end + 2)]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=2 * RECENT_MAX),
    st.integers(0, 200),
    st.lists(st.integers(1, 4), max_size=3),
)
def test_places_are_those_of_a_segment_that_was_opened_again(
    counts: list[int], cut: int, following: list[int]
) -> None:
    disk = MemoryDisk()
    segment = new_segment(disk)
    end = 0
    for count in counts:
        segment.append(end + count - 1, build(end, count))
        end += count
    assert places(segment, end) == places(reopened(disk), end)
    segment.truncate_to(cut, NOW)
    end = segment.next_offset()
    for count in following:
        segment.append(end + count - 1, build(end, count))
        end += count
    assert places(segment, end) == places(reopened(disk), end)
