"""Promises of compaction, one by one: what stays, what goes, and in what form."""

import errno
from dataclasses import replace

import pytest

from headrace.log.cleaner_plan import SegmentToClean, group_segments
from headrace.log.log_errors import CorruptLog
from headrace.log.segment import Segment
from headrace.log.settings import LogSettings
from headrace.records.batch import Batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType
from headrace.testing.memory_disk import MemoryDisk
from tests.support_cleaner import (
    DIRECTORY,
    NOW_MS,
    RETENTION_MS,
    SETTINGS,
    ScriptedLog,
    batches_on_disk,
    survivors_on_disk,
)

PRODUCER = 5


@pytest.fixture
def log() -> ScriptedLog:
    return ScriptedLog(MemoryDisk())


def values(log: ScriptedLog) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {each.offset: (each.key, each.value) for each in survivors_on_disk(log.disk, log.directory)}


def batch_at(log: ScriptedLog, offset: int) -> Batch | None:
    return next((each for each in batches_on_disk(log.disk) if each.base_offset == offset), None)


def test_the_last_value_of_each_key_stays_at_its_offset(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")])
    log.append([(b"c", b"1"), (b"a", b"3")])
    log.roll()
    result = log.compact()
    assert values(log) == {1: (b"b", b"1"), 3: (b"c", b"1"), 4: (b"a", b"3")}
    assert result.next_dirty_offset == 5


def test_the_active_segment_is_neither_read_nor_changed(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")])
    log.roll()
    log.append([(b"a", b"2")])
    log.compact()
    assert values(log) == {0: (b"a", b"1"), 1: (b"a", b"2")}


def test_values_that_were_compacted_before_go_when_a_dirty_one_supersedes_them(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"b", b"1")])
    log.roll()
    first = log.compact()
    log.append([(b"a", b"2"), (b"x", b"y")])
    log.roll()
    log.compact(first.next_dirty_offset)
    assert values(log) == {1: (b"b", b"1"), 2: (b"a", b"2"), 3: (b"x", b"y")}


def test_records_without_a_key_go(log: ScriptedLog) -> None:
    log.append([(None, b"1"), (b"a", b"1")])
    log.roll()
    assert log.compact().stats.keyless_records == 1
    assert values(log) == {1: (b"a", b"1")}


def test_a_tombstone_stays_for_delete_retention_ms_after_it_was_first_cleaned(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"a", None), (b"b", b"1")])
    log.roll()
    log.compact(0, NOW_MS)
    assert values(log) == {1: (b"a", None), 2: (b"b", b"1")}
    batch = batch_at(log, 0)
    assert batch is not None
    assert batch.delete_horizon_ms == NOW_MS + RETENTION_MS
    log.compact(3, NOW_MS + RETENTION_MS - 1)
    assert 1 in values(log)
    log.compact(3, NOW_MS + RETENTION_MS)
    assert values(log) == {2: (b"b", b"1")}


def test_a_delete_horizon_leaves_the_timestamps_as_they_were(log: ScriptedLog) -> None:
    log.append([(b"a", None), (b"b", b"1")], timestamp=NOW_MS - 10**9)
    before = survivors_on_disk(log.disk)
    log.roll()
    log.compact()
    assert survivors_on_disk(log.disk) == before


def test_a_producers_last_batch_stays_empty_to_keep_its_sequence(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"b", b"1")], producer_id=PRODUCER)
    log.append([(b"a", b"2"), (b"b", b"2")])
    log.roll()
    log.compact()
    batch = batch_at(log, 0)
    assert batch is not None
    assert (batch.count, batch.last_offset, batch.producer_id, batch.last_sequence) == (0, 1, PRODUCER, 1)
    assert batch.leader_epoch == 7
    assert batch.max_timestamp == NOW_MS + 1
    assert batch.crc_is_valid()


def test_an_earlier_batch_of_a_producer_goes(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER)
    log.append([(b"a", b"2")], producer_id=PRODUCER)
    log.roll()
    log.compact()
    assert [batch.base_offset for batch in batches_on_disk(log.disk)] == [1]


def test_the_batch_of_a_producer_that_is_forgotten_goes(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER)
    log.append([(b"a", b"2")])
    log.roll()
    log.last_records.clear()
    log.compact()
    assert [batch.base_offset for batch in batches_on_disk(log.disk)] == [1]


def test_the_last_offset_of_the_cleaned_range_is_never_lost(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")])
    log.append([(None, b"no key")])
    log.roll()
    log.compact()
    assert [(batch.base_offset, batch.count) for batch in batches_on_disk(log.disk)] == [(0, 1), (1, 0)]


def test_aborted_data_goes_and_does_not_supersede(log: ScriptedLog) -> None:
    log.append([(b"a", b"good")])
    log.append([(b"a", b"aborted")], producer_id=PRODUCER, transactional=True)
    log.end(PRODUCER, ControlType.ABORT)
    log.roll()
    log.compact()
    assert values(log) == {0: (b"a", b"good")}


def test_data_aborted_by_a_marker_in_the_active_segment_goes(log: ScriptedLog) -> None:
    log.append([(b"a", b"aborted")], producer_id=PRODUCER, transactional=True)
    log.append([(b"b", b"1")])
    log.roll()
    log.end(PRODUCER, ControlType.ABORT)
    log.compact()
    assert values(log) == {1: (b"b", b"1")}


def test_nothing_of_an_open_transaction_or_beyond_is_touched(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")])
    log.roll()
    log.append([(b"a", b"2")])
    log.append([(b"a", b"3")], producer_id=PRODUCER, transactional=True)
    log.append([(b"a", b"4")])
    log.roll()
    plan = log.plan()
    assert plan.end_offset == 1
    log.compact()
    assert len(values(log)) == 4


def test_a_marker_stays_until_its_data_is_gone_and_then_for_delete_retention_ms(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER, transactional=True)
    log.end(PRODUCER, ControlType.COMMIT)
    log.append([(b"b", b"1")], producer_id=PRODUCER + 1)
    log.roll()
    log.last_records.clear()

    def marker_horizon() -> int | None:
        batch = batch_at(log, 1)
        assert batch is not None
        assert batch.count == 1
        return batch.delete_horizon_ms

    log.compact(0, NOW_MS)
    assert marker_horizon() is None
    log.append([(b"a", b"2")])
    log.roll()
    # The data goes in this round, after the walk has passed it: the marker is dealt with in the next.
    log.compact(3, NOW_MS + 1)
    assert marker_horizon() is None
    log.compact(4, NOW_MS + 2)
    assert marker_horizon() == NOW_MS + 2 + RETENTION_MS
    log.compact(4, NOW_MS + 1 + RETENTION_MS)
    assert marker_horizon() is not None
    log.compact(4, NOW_MS + 2 + RETENTION_MS)
    assert batch_at(log, 1) is None


def test_the_transaction_index_of_a_cleaned_segment_lists_what_it_still_decides(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER, transactional=True)
    log.append([(b"b", b"1")])
    log.end(PRODUCER, ControlType.ABORT)
    log.roll()
    log.compact()
    assert list(log.segments[0].transaction_index) == [log.aborted[0]]
    log.last_records.clear()
    # The emptied batch is no longer needed for its producer, so it goes; its marker's entry a round later.
    log.compact(3)
    assert batch_at(log, 0) is None
    log.compact(3)
    assert list(log.segments[0].transaction_index) == []


def test_a_transaction_that_spans_segments_keeps_its_entry_with_its_marker(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER, transactional=True)
    log.append([(b"big", bytes(400))])
    log.roll()
    log.append([(b"big2", bytes(400))])
    log.end(PRODUCER, ControlType.ABORT)
    log.roll()
    log.settings = replace(SETTINGS, segment_bytes=600)
    result = log.compact()
    assert [group.replaces for group in result.groups] == [(0,), (2,)]
    assert [list(segment.transaction_index) for segment in log.segments[:2]] == [[], [log.aborted[0]]]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_batch_keeps_its_codec_and_its_fields(log: ScriptedLog, compression: Compression) -> None:
    log.append([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")], producer_id=PRODUCER, compression=compression)
    log.append([(b"a", b"2"), (b"c", b"2")])
    log.roll()
    log.compact()
    batch = batch_at(log, 0)
    assert batch is not None
    assert batch.compression is compression
    assert (batch.count, batch.last_offset, batch.last_sequence) == (1, 2, 2)
    assert (batch.leader_epoch, batch.producer_id, batch.producer_epoch) == (7, PRODUCER, 0)


def test_log_append_time_is_kept(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"b", b"1")], append_time=NOW_MS + 77)
    log.append([(b"a", b"2")])
    log.roll()
    log.compact()
    batch = batch_at(log, 0)
    assert batch is not None
    assert batch.timestamp_type == 1
    assert batch.max_timestamp == NOW_MS + 77


def test_a_batch_of_which_everything_stays_is_copied_byte_for_byte(log: ScriptedLog) -> None:
    log.append([(b"a", b"1"), (b"b", b"2")], compression=Compression.ZSTD)
    log.roll()
    before = [bytes(batch.data) for batch in batches_on_disk(log.disk)]
    log.compact()
    assert [bytes(batch.data) for batch in batches_on_disk(log.disk)] == before


def test_a_full_map_cleans_up_to_where_it_filled_and_later_rounds_do_the_rest(log: ScriptedLog) -> None:
    for _ in range(2):
        log.append([(b"key-%d" % number, b"v") for number in range(30)])
    log.roll()
    dirty, rounds = 0, 0
    while dirty < 60:
        before = dirty
        dirty = log.compact(dirty, dedupe_bytes=1_200).next_dirty_offset
        assert dirty > before
        rounds += 1
    assert rounds > 3
    assert [each.offset for each in survivors_on_disk(log.disk)] == list(range(30, 60))


def test_neighbours_are_cleaned_into_one_segment_within_its_limits(log: ScriptedLog) -> None:
    for number in range(6):
        log.append([(b"key-%d" % number, bytes(200))])
        log.roll()
    log.settings = replace(SETTINGS, segment_bytes=900)
    result = log.compact()
    assert [group.replaces for group in result.groups] == [(0, 1, 2), (3, 4, 5)]
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert len(survivors_on_disk(log.disk)) == 6


def test_grouping_minds_sizes_indexes_and_the_range_of_offsets() -> None:
    def segment(base: int, size: int = 10, index: int = 8, time_index: int = 12) -> SegmentToClean:
        return SegmentToClean(base, size, index, time_index)

    def bases(segments: list[SegmentToClean], end: int, **limits: int) -> list[list[int]]:
        groups = group_segments(segments, LogSettings(**limits), end)  # type: ignore[arg-type]
        return [[each.base_offset for each in group] for group in groups]

    three = [segment(0), segment(10), segment(20)]
    assert bases(three, 30) == [[0, 10, 20]]
    assert bases(three, 30, segment_bytes=20) == [[0, 10], [20]]
    assert bases(three, 30, segment_bytes=5) == [[0], [10], [20]]
    assert bases(three, 30, segment_index_bytes=24) == [[0, 10], [20]]
    assert bases(three, 30, segment_index_bytes=12) == [[0], [10], [20]]
    far = [segment(0), segment(2**31 - 1), segment(2**31)]
    assert bases(far, 2**31 + 1) == [[0, 2**31 - 1], [2**31]]
    assert bases([segment(0), segment(2**31 - 10)], 2**31 + 1) == [[0], [2**31 - 10]]
    assert bases([segment(0), segment(2**31 - 10, size=0)], 2**31 + 1) == [[0, 2**31 - 10]]
    assert bases([], 0) == []


def test_a_flipped_bit_is_reported_with_file_and_position_and_nothing_is_swapped(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")])
    position = log.segments[0].size
    log.append([(b"b", b"1")])
    log.roll()
    assert isinstance(log.disk, MemoryDisk)
    log.disk.flip_bit(f"{DIRECTORY}/00000000000000000000.log", position + 65)
    with pytest.raises(CorruptLog, match=rf"0\.log is corrupt at position {position}"):
        log.compact()
    assert not [name for name in log.disk.list_directory(DIRECTORY) if name.endswith(".swap")]


def test_leftovers_of_an_interrupted_round_are_written_over(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")], producer_id=PRODUCER, transactional=True)
    log.end(PRODUCER, ControlType.ABORT)
    log.append([(b"a", b"2")])
    log.roll()
    plan = log.plan()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        path = f"{DIRECTORY}/00000000000000000000{suffix}.cleaned"
        log.disk.open(path, create=True).append(b"torn" * 100)
    log.clean(plan)
    log.compact()
    assert values(log) == {2: (b"a", b"2")}
    log.segments[0].sanity_check()


def test_an_error_of_the_medium_comes_through(log: ScriptedLog) -> None:
    log.append([(b"a", b"1")])
    log.roll()
    plan = log.plan()
    assert isinstance(log.disk, MemoryDisk)
    log.disk.fail(errno.ENOSPC, when=lambda operation: operation.path.endswith(".log.cleaned"))
    with pytest.raises(OSError, match="No space"):
        log.clean(plan)


def test_indexes_of_a_cleaned_segment_are_those_of_appending_its_batches(log: ScriptedLog) -> None:
    for number in range(50):
        log.append([(b"key-%d" % (number % 20), bytes(40))], timestamp=NOW_MS + number)
    log.roll()
    log.compact()
    again = Segment.create(log.disk, "/logs", 0, SETTINGS, NOW_MS)
    for batch in batches_on_disk(log.disk):
        again.append(batch.last_offset, batch.data)
    again.close()
    for suffix in (".index", ".timeindex"):
        name = f"00000000000000000000{suffix}"
        content = log.disk.read(f"{DIRECTORY}/{name}")
        assert content == log.disk.read(f"/logs/{name}")
        assert len(content) > 12
