"""Batches with fewer records keep offsets, producer and last offset, and gain a horizon when told to."""

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.filter import empty_batch, filter_batch
from headrace.records.reader import read_records

RECORDS = st.lists(
    st.builds(
        NewRecord,
        st.integers(1_000, 1_000_000),
        st.none() | st.binary(max_size=70),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=80,
)


def view(data: bytes) -> Batch:
    return Batch(memoryview(data))


@settings(max_examples=100)
@given(
    RECORDS,
    st.sets(st.integers(0, 79)),
    st.sampled_from(Compression),
    st.none() | st.integers(1, 2**41),
    st.none() | st.integers(1, 2**41),
)
def test_kept_records_stay_what_they_were(
    records: list[NewRecord],
    kept: set[int],
    codec: Compression,
    append_time: int | None,
    horizon: int | None,
) -> None:
    before = view(
        build_batch(
            records,
            base_offset=500,
            compression=codec,
            log_append_time=append_time,
            producer_id=7,
            producer_epoch=1,
            base_sequence=20,
            transactional=True,
            leader_epoch=3,
        )
    )
    expected = [found for found in read_records(before) if found.offset - 500 in kept]
    filtered = filter_batch(before, kept.__contains__, delete_horizon_ms=horizon)
    assert bool(filtered) == bool(expected)
    if filtered:
        after = view(filtered)
        assert after.crc_is_valid()
        assert list(read_records(after)) == expected
        assert (after.base_offset, after.last_offset) == (500, before.last_offset)
        assert (after.producer_id, after.producer_epoch, after.last_sequence) == (7, 1, before.last_sequence)
        assert (after.compression, after.timestamp_type) == (codec, before.timestamp_type)
        assert after.max_timestamp == max(found.timestamp for found in expected)
        assert after.delete_horizon_ms == horizon
        assert after.base_timestamp == (expected[0].timestamp if horizon is None else horizon)


def test_a_horizon_once_set_stays() -> None:
    batch = view(build_batch([NewRecord(5, b"a", None), NewRecord(6, b"b", None)], delete_horizon_ms=900))
    after = view(filter_batch(batch, lambda delta: delta == 1))
    assert after.delete_horizon_ms == 900
    assert [found.timestamp for found in read_records(after)] == [6]


def test_an_empty_batch_remembers_its_producer() -> None:
    before = view(
        build_batch(
            [NewRecord(5, b"a", b"x"), NewRecord(8, b"b", b"y")],
            base_offset=40,
            compression=Compression.LZ4,
            producer_id=7,
            producer_epoch=1,
            base_sequence=20,
            leader_epoch=3,
            delete_horizon_ms=900,
        )
    )
    after = view(empty_batch(before))
    assert (after.size, after.count, after.compression) == (61, 0, Compression.NONE)
    assert (after.base_offset, after.last_offset, after.leader_epoch) == (40, 41, 3)
    assert (after.producer_id, after.producer_epoch, after.last_sequence) == (7, 1, 21)
    assert (after.base_timestamp, after.max_timestamp, after.has_delete_horizon) == (-1, 8, False)
    assert after.crc_is_valid()
