"""The shortest check of all: what it vouches for, the scan vouches for; what is usual, it vouches for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.records.builder import NewRecord, build_batch
from headrace.records.scan import scan
from headrace.records.walk import lone_is_plain

SIZES = st.none() | st.sampled_from([0, 1, 55, 56, 57, 62, 63, 64, 127, 128, 8180, 8185, 8192, 9000])
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h"]), st.none() | st.just(b"abc")), max_size=1)


def payload(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> bytes:
    return build_batch([NewRecord(1_700_000_000_000, key, value, tuple(headers))])[61:]


@given(
    SIZES,
    SIZES,
    HEADERS,
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2),
    st.integers(-2, 2),
    st.booleans(),
)
def test_what_it_vouches_for_is_one_sound_record_without_deltas(
    key_size: int | None,
    value_size: int | None,
    headers: list[tuple[str, bytes | None]],
    changes: list[tuple[int, int]],
    extra: int,
    keys_required: bool,
) -> None:
    key = None if key_size is None else bytes(key_size)
    value = None if value_size is None else bytes(value_size)
    data = bytearray(payload(key, value, headers))
    for place, byte in changes:
        data[place % len(data)] = byte
    changed = bytes(data + bytes(max(0, extra)))[: len(data) + extra]
    if lone_is_plain(changed, keys_required=keys_required):
        assert scan(changed, 1, keys_required=keys_required) == (0, 0)


@pytest.mark.parametrize("value", [None, b"", b"value", bytes(62), bytes(64), bytes(8000)])
@pytest.mark.parametrize("key", [None, b"", b"key", bytes(63)])
def test_usual_records_are_vouched_for(key: bytes | None, value: bytes | None) -> None:
    data = payload(key, value, [])
    assert lone_is_plain(data, keys_required=False)
    assert lone_is_plain(data, keys_required=True) == (key is not None)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x80", b"\x80\x80\x80", bytes(12)])
def test_fragments_are_not(data: bytes) -> None:
    assert not lone_is_plain(data, keys_required=False)
