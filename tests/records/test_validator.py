"""What the validator does to batches it takes: mostly nothing; else timestamps, codec, and nothing more."""

import tracemalloc
from dataclasses import replace

import pytest

from headrace.errors import ErrorCode
from headrace.records.batch import Batch
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.records.reader import read_records
from headrace.records.rules import LOG_APPEND_TIME, Origin, RecordsRefused, ValidationRules
from headrace.records.validator import validate
from headrace.types import TopicPartition
from tests.support_records import NOW, RawBatch, good, record

RULES = ValidationRules(TopicPartition("topic", 0), max_message_bytes=1_048_588)
APPEND_TIME = replace(RULES, timestamp_type=LOG_APPEND_TIME)
RECORDS = [NewRecord(NOW + n // 20, b"key-%d" % n, b"value" * (n % 30), [("h", b"x")]) for n in range(200)]


@pytest.mark.parametrize("codec", Compression)
def test_a_good_batch_is_kept_byte_for_byte(codec: Compression) -> None:
    data = build_batch(RECORDS, compression=codec)
    buffer = bytearray(data)
    validated = validate(buffer, RULES, NOW)
    assert buffer == data
    assert validated.buffer.obj is buffer
    assert (validated.rebuilt, validated.count) == (False, 200)
    assert (validated.max_timestamp, validated.append_time) == (NOW + 9, -1)


def test_a_wrong_maximum_is_corrected_with_its_checksum() -> None:
    validated = validate(bytearray(good(max_timestamp=NOW + 500).encode()), RULES, NOW)
    assert validated.max_timestamp == NOW
    batch = Batch(validated.buffer)
    assert (batch.max_timestamp, batch.crc_is_valid()) == (NOW, True)
    assert validated.batch.crc == batch.crc


@pytest.mark.parametrize("codec", Compression)
def test_append_time_changes_the_header_and_not_the_records(codec: Compression) -> None:
    data = build_batch(
        RECORDS, compression=codec, transactional=True, producer_id=1, producer_epoch=0, base_sequence=0
    )
    validated = validate(bytearray(data), APPEND_TIME, NOW + 777)
    batch = Batch(validated.buffer)
    assert (validated.max_timestamp, validated.append_time) == (NOW + 777, NOW + 777)
    assert (batch.timestamp_type, batch.max_timestamp, batch.base_timestamp) == (1, NOW + 777, NOW)
    assert batch.is_transactional
    assert batch.compression is codec
    assert batch.crc_is_valid()
    assert bytes(batch.payload) == data[61:]


def test_an_append_time_topic_does_not_care_about_timestamps() -> None:
    far = RawBatch([record(0, timestamp_delta=10**12), record(1, timestamp_delta=-(10**12))])
    assert validate(bytearray(far.encode()), APPEND_TIME, NOW).max_timestamp == NOW


def test_a_create_time_topic_clears_the_mark_of_append_time() -> None:
    validated = validate(bytearray(good(attributes=8, max_timestamp=NOW + 5).encode()), RULES, NOW)
    batch = Batch(validated.buffer)
    assert (batch.timestamp_type, batch.max_timestamp, batch.crc_is_valid()) == (0, NOW + 5, True)


def test_records_without_timestamps_are_taken() -> None:
    data = good(base_timestamp=-1, max_timestamp=-1).encode()
    validated = validate(bytearray(data), replace(RULES, before_max_ms=1000), NOW)
    assert validated.max_timestamp == -1
    assert bytes(validated.buffer) == data


def test_timestamps_that_overflow_are_judged_as_64_bit_words() -> None:
    overflowing = RawBatch([record(0, timestamp_delta=2**63 - 1)])
    with pytest.raises(RecordsRefused) as refusal:
        validate(bytearray(overflowing.encode()), RULES, NOW)
    assert refusal.value.code == ErrorCode.INVALID_TIMESTAMP
    assert f"Timestamp {NOW - 1 - 2**63} of" in refusal.value.record_errors[0].message


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", Compression)
def test_the_topic_s_codec_is_applied(source: Compression, target: Compression) -> None:
    data = build_batch(
        RECORDS, compression=source, producer_id=4, producer_epoch=2, base_sequence=8, transactional=True
    )
    validated = validate(bytearray(data), replace(RULES, compression=target), NOW)
    batch = Batch(validated.buffer)
    assert validated.rebuilt == (source != target)
    assert (batch.compression, batch.crc_is_valid(), batch.is_transactional) == (target, True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4, 2, 8)
    assert (batch.max_timestamp, validated.max_timestamp) == (NOW + 9, NOW + 9)
    assert list(read_records(batch)) == list(read_records(Batch(memoryview(data))))
    validated.buffer[:8] = bytes(8)


def test_a_batch_compressed_anew_takes_the_append_time() -> None:
    rules = replace(APPEND_TIME, compression=Compression.LZ4)
    batch = validate(bytearray(build_batch(RECORDS)), rules, NOW + 9999).batch
    assert (batch.timestamp_type, batch.max_timestamp, batch.crc_is_valid()) == (1, NOW + 9999, True)


def test_a_level_makes_a_difference() -> None:
    data = build_batch(RECORDS)
    sizes = [
        validate(bytearray(data), replace(RULES, compression=Compression.ZSTD, level=level), NOW).batch.size
        for level in (-50, 19)
    ]
    assert sizes[0] > sizes[1]


def test_offset_deltas_are_put_right_when_a_batch_is_compressed_anew() -> None:
    skewed = RawBatch([record(5), record(5, headers=((b"h", None),)), record(0)], attributes=Compression.GZIP)
    batch = validate(bytearray(skewed.encode()), replace(RULES, compression=Compression.ZSTD), NOW).batch
    assert [found.offset for found in read_records(batch)] == [0, 1, 2]
    assert (batch.last_offset_delta, batch.count) == (2, 3)


def test_a_batch_that_grew_beyond_the_bound_is_refused() -> None:
    data = build_batch(RECORDS, compression=Compression.ZSTD)
    rules = replace(RULES, compression=Compression.NONE, max_message_bytes=len(data))
    with pytest.raises(RecordsRefused) as refusal:
        validate(bytearray(data), rules, NOW)
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_no_bound_means_no_bound() -> None:
    assert validate(bytearray(good().encode()), replace(RULES, max_message_bytes=None), NOW).count == 3


@pytest.mark.parametrize("compression", [None, Compression.ZSTD])
def test_a_coordinator_writes_control_batches_as_they_are(compression: Compression | None) -> None:
    data = build_end_transaction_marker(
        ControlType.COMMIT, producer_id=3, producer_epoch=1, coordinator_epoch=4, timestamp=NOW
    )
    rules = replace(RULES, origin=Origin.COORDINATOR, compression=compression)
    validated = validate(bytearray(data), rules, NOW)
    assert bytes(validated.buffer) == data
    assert not validated.rebuilt


def test_bytes_of_an_incomplete_second_batch_are_left_out() -> None:
    data = good().encode()
    for tail in (b"\x00" * 11, good(9).encode()[:60]):
        assert bytes(validate(bytearray(data + tail), RULES, NOW).buffer) == data


def test_a_buffer_that_cannot_be_written_to_is_copied() -> None:
    data = good().encode()
    validated = validate(data, APPEND_TIME, NOW + 1)
    assert not validated.buffer.readonly
    assert data == good().encode()


def test_a_view_into_a_larger_frame_is_changed_in_place() -> None:
    frame = bytearray(b"frame" + good().encode() + b"rest")
    validated = validate(memoryview(frame)[5:-4], APPEND_TIME, NOW + 1)
    assert bytes(validated.buffer) == bytes(frame[5:-4])
    assert Batch(memoryview(frame), 5).timestamp_type == 1


def test_zstd_is_taken_from_produce_v7_on() -> None:
    data = good(attributes=Compression.ZSTD).encode()
    assert validate(bytearray(data), RULES, NOW, produce_version=7).count == 3


def test_a_bomb_is_refused_within_bounded_memory() -> None:
    bomb = build_batch([NewRecord(NOW, None, bytes(32 << 20))], compression=Compression.GZIP)
    rules = replace(RULES, decompressed_max=1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(RecordsRefused) as refusal:
            validate(bytearray(bomb), rules, NOW)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_a_large_batch_costs_no_object_per_record() -> None:
    data = bytearray(build_batch([NewRecord(NOW, None, bytes(100))] * 9000))
    validate(data, RULES, NOW)
    tracemalloc.start()
    try:
        validate(data, RULES, NOW)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(data) + 9000 * 8
