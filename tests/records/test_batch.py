"""The view over a batch and the walk over many of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ErrorCode
from headrace.records.batch import Batch, batches, increment_sequence, stamp_offset_and_epoch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.errors import CorruptBatch
from tests.support_records import good


def view(data: bytes) -> Batch:
    return Batch(memoryview(data))


def test_every_header_field_is_decoded() -> None:
    data = build_batch(
        [NewRecord(1000, b"k", b"v"), NewRecord(1500, None, None), NewRecord(900, b"", b"")],
        base_offset=77,
        compression=Compression.ZSTD,
        producer_id=2**40,
        producer_epoch=5,
        base_sequence=41,
        transactional=True,
        leader_epoch=9,
    )
    batch = view(data)
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.count) == (77, 79, 80, 3)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (1000, 1500, 0)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (2**40, 5, 41)
    assert (batch.last_sequence, batch.leader_epoch, batch.magic) == (43, 9, 2)
    assert batch.compression is Compression.ZSTD
    assert batch.is_transactional
    assert batch.has_producer_id
    assert not batch.is_control
    assert batch.delete_horizon_ms is None
    assert batch.size == len(data)
    assert bytes(batch.data) == data
    assert bytes(batch.payload) == data[61:]
    assert batch.crc_is_valid()


def test_a_delete_horizon_is_carried_by_the_base_timestamp() -> None:
    batch = view(build_batch([NewRecord(1000, b"k", None)], delete_horizon_ms=5000))
    assert (batch.has_delete_horizon, batch.delete_horizon_ms, batch.base_timestamp) == (True, 5000, 5000)
    assert batch.max_timestamp == 1000


def test_sequences_wrap_after_the_largest_int() -> None:
    batch = view(good(3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2).encode())
    assert batch.last_sequence == 0
    assert view(good(3).encode()).last_sequence == -1
    assert increment_sequence(2**31 - 1, 1) == 0


@given(st.integers(0, 10_000), st.integers(0, 7))
def test_a_flipped_bit_behind_the_checksum_is_noticed(position: int, bit: int) -> None:
    data = bytearray(good(5).encode())
    data[21 + position % (len(data) - 21)] ^= 1 << bit
    assert not view(bytes(data)).crc_is_valid()


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CorruptBatch, match="compression type id: 6"):
        _ = view(good(attributes=6).encode()).compression


def test_stamping_leaves_the_checksum_alone() -> None:
    data = bytearray(b"junk" + good().encode())
    stamp_offset_and_epoch(data, 4, 2**40, 12)
    batch = Batch(memoryview(data), 4)
    assert (batch.base_offset, batch.leader_epoch, batch.crc_is_valid()) == (2**40, 12, True)


def test_batches_come_in_order_with_their_positions() -> None:
    parts = [good(n).encode() for n in (1, 4, 2)]
    joined = b"xx" + b"".join(parts) + b"yy"
    found = list(batches(joined, 2, len(joined) - 2))
    assert [batch.count for batch in found] == [1, 4, 2]
    assert [bytes(batch.data) for batch in found] == parts
    assert found[1].position == 2 + len(parts[0])


@given(st.integers(0, 400))
def test_a_torn_last_batch_is_left_out(cut: int) -> None:
    whole, torn = good(2).encode(), good(3).encode()
    cut = cut % len(torn)
    assert [batch.count for batch in batches(whole + torn[:cut])] == [2]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (good(size=-5).encode(), "impossible size 7"),
        (good(size=48).encode(), "impossible size 60"),
        (good(size=3).encode()[:14], "impossible size 15"),
        (good(magic=1).encode(), "magic 1"),
        (good(magic=9).encode(), "magic 9"),
        (bytes(200), "impossible size 12"),
    ],
)
def test_an_impossible_batch_is_refused_with_its_position(data: bytes, said: str) -> None:
    first = good().encode()
    with pytest.raises(CorruptBatch, match=f"position {len(first)} has {said}") as refusal:
        list(batches(first + data))
    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE
