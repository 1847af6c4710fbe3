"""What is built is read back, whatever it is; and what cannot be read says so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ErrorCode
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.errors import MalformedRecords
from headrace.records.reader import read_all, read_records
from headrace.records.spans import iter_keys
from tests.support_records import RawBatch, bad_records, good, record

OPTIONAL_BYTES = st.none() | st.binary(max_size=90) | st.integers(0, 9000).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=80), st.none() | st.binary(max_size=80)), max_size=3)
TIMESTAMPS = st.integers(0, 2**62) | st.integers(1_000, 1_200) | st.just(-1)
NEW_RECORDS = st.lists(
    st.builds(NewRecord, TIMESTAMPS, OPTIONAL_BYTES, OPTIONAL_BYTES, HEADERS), min_size=1, max_size=90
)


def view(data: bytes) -> Batch:
    return Batch(memoryview(data))


@settings(max_examples=150, deadline=None)
@given(NEW_RECORDS, st.sampled_from(Compression), st.integers(0, 2**60))
def test_records_survive(new: list[NewRecord], codec: Compression, base_offset: int) -> None:
    batch = view(build_batch(new, compression=codec, base_offset=base_offset))
    assert batch.crc_is_valid()
    assert batch.max_timestamp == max(-1, *(item.timestamp for item in new))
    assert [tuple(found) for found in read_records(batch)] == [
        (base_offset + index, item.timestamp, item.key, item.value, list(item.headers))
        for index, item in enumerate(new)
    ]
    assert list(iter_keys(batch)) == [
        (index, item.key, item.value is not None) for index, item in enumerate(new)
    ]


@given(st.lists(st.integers(0, 2**31 - 9), min_size=1, max_size=20, unique=True).map(sorted))
def test_given_offsets_are_kept(deltas: list[int]) -> None:
    offsets = [1000 + delta for delta in deltas]
    records = [NewRecord(5, b"k", b"v")] * len(offsets)
    batch = view(build_batch(records, base_offset=1000, offsets=offsets, last_offset=offsets[-1] + 3))
    assert [found.offset for found in read_records(batch)] == offsets
    assert batch.last_offset == offsets[-1] + 3


def test_an_empty_batch_keeps_its_last_offset() -> None:
    batch = view(build_batch([], base_offset=10, last_offset=14, producer_id=3, producer_epoch=0))
    assert (batch.size, batch.count, batch.last_offset) == (61, 0, 14)
    assert list(read_records(batch)) == []
    assert batch.crc_is_valid()


def test_append_time_is_every_record_s_time() -> None:
    batch = view(build_batch([NewRecord(5, None, b"a"), NewRecord(9, None, b"b")], log_append_time=777))
    assert (batch.timestamp_type, batch.base_timestamp, batch.max_timestamp) == (1, 5, 777)
    assert [found.timestamp for found in read_records(batch)] == [777, 777]


def test_more_records_than_two_and_three_bytes_of_offset_hold() -> None:
    batch = view(build_batch([NewRecord(5, None, b"")] * 9000))
    assert [found.offset for found in read_records(batch)] == list(range(9000))


def test_many_batches_read_as_one_sequence() -> None:
    data = good(3).encode() + good(2, attributes=Compression.LZ4).encode()
    assert [found.value for found in read_all(data)] == [b"value"] * 5


def test_header_names_that_are_not_utf8_are_read_with_replacements() -> None:
    raw = RawBatch([record(0, headers=((b"\xff\xfe", b"v"),))])
    assert next(read_records(view(raw.encode()))).headers == [("\ufffd\ufffd", b"v")]


@pytest.mark.parametrize("name", bad_records(0))
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.SNAPPY])
def test_a_malformed_record_is_refused(name: str, codec: Compression) -> None:
    batch = view(RawBatch([bad_records(0)[name]], attributes=codec).encode())
    with pytest.raises(MalformedRecords) as refusal:
        list(read_records(batch))
    assert refusal.value.code == ErrorCode.INVALID_RECORD
    with pytest.raises(MalformedRecords):
        list(iter_keys(batch))


@pytest.mark.parametrize(
    "raw", [good(count=2), good(count=4), good(count=-1), good(payload=b"".join(good().records) + b"\x00")]
)
def test_a_wrong_count_is_refused(raw: RawBatch) -> None:
    with pytest.raises(MalformedRecords):
        list(read_records(view(raw.encode())))


def test_good_records_before_a_bad_one_are_still_read() -> None:
    records = read_records(view(RawBatch([record(0), b"\x01\x00"]).encode()))
    assert next(records).value == b"value"
    with pytest.raises(MalformedRecords):
        next(records)
