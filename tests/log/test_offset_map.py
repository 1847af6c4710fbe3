"""Promises of the map compaction decides by: the last offset of each key, within its budget of bytes."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.offset_map import ABSENT, OffsetMap, OffsetMapTooSmall, SettledOffsets, long_name

KEYS = st.one_of(st.binary(max_size=4), st.binary(min_size=30, max_size=36))


@given(st.lists(KEYS, max_size=60), st.sampled_from([1_000, 3_000, 20_000, 1_000_000]))
def test_the_last_offset_of_each_key_is_found_until_the_map_is_full(keys: list[bytes], budget: int) -> None:
    offsets = OffsetMap(budget)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        if not offsets.put(offset, key):
            break
        model[key] = offset
        assert offsets.last_offset == offset
    assert {key: offsets.get(key) for key in model} == model
    assert all(offsets.get(key) == ABSENT for key in keys if key not in model)
    assert all(offsets.get(key + b"!") == model.get(key + b"!", ABSENT) for key in keys)


def test_recent_entries_settle_and_are_still_found_with_their_last_offset() -> None:
    offsets = OffsetMap(60_000)
    entries = int(offsets.capacity * 0.8)
    for offset in range(entries):
        assert offsets.put(offset, b"key-%d" % offset)
    for offset in range(entries, entries + 10):
        assert offsets.put(offset, b"key-%d" % (offset - entries))
    assert [offsets.get(b"key-%d" % number) for number in range(10)] == list(range(entries, entries + 10))
    assert [offsets.get(b"key-%d" % number) for number in range(10, entries)] == list(range(10, entries))
    assert offsets.get(b"key-%d" % entries) == ABSENT


def test_a_full_map_says_so_and_keeps_what_it_has() -> None:
    offsets = OffsetMap(60_000)
    count = 0
    while offsets.put(count, b"key-%d" % count):
        count += 1
    assert count >= offsets.capacity * 0.7
    assert offsets.last_offset == count - 1
    assert [offsets.get(b"key-%d" % number) for number in range(count)] == list(range(count))
    assert 0.7 <= offsets.utilisation <= 1.1


def test_a_map_stays_within_its_budget_of_memory() -> None:
    budget = 2_000_000
    tracemalloc.start()
    try:
        offsets = OffsetMap(budget)
        count = 0
        while offsets.put(count, b"%032d" % count):
            count += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= budget
    # Kafka's map takes 24 bytes a key; ours may not be much worse.
    assert count > budget / 60


def test_a_budget_too_small_for_one_key_names_the_setting_to_raise() -> None:
    with pytest.raises(OffsetMapTooSmall, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(100)


def test_a_budget_for_one_key_is_enough_to_get_on() -> None:
    offsets = OffsetMap(250)
    assert offsets.put(7, b"a")
    assert not offsets.put(8, b"b")
    assert offsets.get(b"a") == 7


def test_a_long_key_is_never_taken_for_a_short_one() -> None:
    long = b"x" * 33
    assert len(long_name(long)) > 32
    offsets = OffsetMap(10_000)
    offsets.put(1, long)
    assert offsets.get(long_name(long)[:32]) == ABSENT
    assert offsets.get(long) == 1


def test_a_table_filled_to_its_last_slot_still_ends_its_searches() -> None:
    table = SettledOffsets(2 * (32 * 24 + 1), load_factor=1.0)
    assert table.capacity == 63
    table.put((b"%d" % number, number) for number in range(63))
    assert [table.get(b"%d" % number) for number in range(63)] == list(range(63))
    assert table.get(b"63") == ABSENT
    assert table.size == 63
