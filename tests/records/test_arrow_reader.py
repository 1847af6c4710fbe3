"""What the columnar reader returns is what the per-record reader returns, and what it refuses it names."""

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ErrorCode, KafkaError
from headrace.records.arrow_reader import ColumnsTooLarge, read_columns, schema, stream_columns
from headrace.records.batch import HEADER_SIZE, Batch, batches
from headrace.records.builder import BatchFields, NewRecord, assemble, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.records.errors import CorruptBatch, MalformedRecords
from headrace.records.reader import read_records
from headrace.records.varint import encode_varint

Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

optional_bytes = st.none() | st.binary(max_size=40) | st.binary(min_size=60, max_size=200)
headers = st.lists(st.tuples(st.text(max_size=12), optional_bytes), max_size=5)
timestamps = st.integers(0, 2**40) | st.just(-1) | st.integers(-(2**62), 2**62)
new_records = st.lists(
    st.tuples(timestamps, optional_bytes, optional_bytes, headers | st.just([])), min_size=1, max_size=40
)


@st.composite
def fetched(draw: st.DrawFn) -> bytes:
    """A few batches as a fetch returns them: codecs mixed, offsets with gaps, some times set on append."""
    out = []
    offset = draw(st.integers(0, 2**40))
    for records in draw(st.lists(new_records, min_size=1, max_size=6)):
        gaps = draw(st.lists(st.integers(1, 200), min_size=len(records), max_size=len(records)))
        offsets = [offset + sum(gaps[: index + 1]) for index in range(len(records))]
        append_time = draw(st.none() | st.integers(0, 2**41))
        horizon = draw(st.none() | st.integers(0, 2**41))
        out.append(
            build_batch(
                records,
                base_offset=offset,
                offsets=offsets,
                compression=draw(st.sampled_from(Compression)),
                log_append_time=append_time,
                delete_horizon_ms=horizon,
            )
        )
        offset = offsets[-1] + 1
    return b"".join(out)


def rows_one_by_one(found: Iterable[Batch]) -> list[Row]:
    return [
        (record.offset, record.timestamp, batch.timestamp_type, record.key, record.value, record.headers)
        for batch in found
        for record in read_records(batch)
    ]


def rows_of(columns: pa.RecordBatch) -> list[Row]:
    columns.validate(full=True)
    plain = columns.set_column(1, "timestamp", columns["timestamp"].cast(pa.int64())).to_pylist()
    return [_row(entry) for entry in plain]


def _row(entry: dict[str, Any]) -> Row:
    pairs = [(header["key"], header["value"]) for header in entry["headers"]]
    return (
        entry["offset"],
        entry["timestamp"],
        entry["timestamp_type"],
        entry["key"],
        entry["value"],
        pairs,
    )


def numbered(count: int, size: int = 10, **fields: Any) -> bytes:
    records = [NewRecord(1000 + index, b"k%d" % index, b"v" * size) for index in range(count)]
    return build_batch(records, **fields)


@settings(max_examples=100, deadline=None)
@given(fetched(), st.booleans())
def test_columns_hold_what_the_per_record_reader_finds(buffer: bytes, views: bool) -> None:
    columns = read_columns(buffer, views=views)
    assert columns.schema == schema(views=views)
    assert rows_of(columns) == rows_one_by_one(batches(buffer))


@settings(max_examples=25, deadline=None)
@given(fetched(), st.data())
def test_records_below_the_start_offset_are_left_out(buffer: bytes, data: st.DataObject) -> None:
    rows = rows_one_by_one(batches(buffer))
    start = data.draw(st.sampled_from([row[0] for row in rows] + [rows[-1][0] + 1, rows[0][0] - 1]))
    assert rows_of(read_columns(buffer, start_offset=start)) == [row for row in rows if row[0] >= start]


@settings(max_examples=25, deadline=None)
@given(fetched(), st.integers(1, 2000))
def test_a_stream_has_the_same_records(buffer: bytes, bytes_max: int) -> None:
    rows = [row for piece in stream_columns(buffer, bytes_max=bytes_max) for row in rows_of(piece)]
    assert rows == rows_one_by_one(batches(buffer))


def test_a_stream_starts_a_new_piece_when_the_next_batch_would_not_fit() -> None:
    buffer = b"".join(numbered(10, base_offset=10 * index) for index in range(4))
    size = len(buffer) // 4
    for bytes_max, counts in ((1, [10] * 4), (2 * size, [20, 20]), (3 * size, [30, 10]), (4 * size, [40])):
        assert [piece.num_rows for piece in stream_columns(buffer, bytes_max=bytes_max)] == counts


@pytest.mark.parametrize("size", [0, 1, 10, 50, 51, 63, 64, 100, 8000, 9000])
@pytest.mark.parametrize("count", [1, 31, 32, 300])
def test_records_of_equal_length_are_all_found(count: int, size: int) -> None:
    buffer = numbered(count, size)
    assert rows_of(read_columns(buffer)) == rows_one_by_one(batches(buffer))


@pytest.mark.parametrize("counts", [[3] * 400, [1, 50, 2, 7] * 60, [300, *[1] * 200], [1] * 128])
def test_many_batches_of_various_counts_are_all_found(counts: list[int]) -> None:
    buffer = b"".join(
        numbered(count, size=index % 150, base_offset=1000 * index) for index, count in enumerate(counts)
    )
    assert rows_of(read_columns(buffer)) == rows_one_by_one(batches(buffer))


def test_regular_records_with_odd_ones_between_are_all_found() -> None:
    records = [NewRecord(5, None, b"x" * (30 if index % 37 else 3 * index)) for index in range(2000)]
    buffer = build_batch(records)
    assert rows_of(read_columns(buffer)) == rows_one_by_one(batches(buffer))


def test_a_long_list_of_headers_beside_short_ones_is_read() -> None:
    many = [(f"name-{index}", b"%d" % index if index % 3 else None) for index in range(3000)]
    records = [(1, b"k", b"v", many if index == 7 else many[: index % 4]) for index in range(100)]
    buffer = build_batch(records, compression=Compression.ZSTD)
    assert rows_of(read_columns(buffer)) == rows_one_by_one(batches(buffer))


def test_a_header_key_that_is_no_utf8_is_replaced_like_in_the_per_record_reader() -> None:
    buffer = bytearray(build_batch([(1, None, None, [("abc", b"\xff"), ("ok", None)])] * 3))
    position = buffer.index(b"abc")
    buffer[position + 1] = 0xFF
    rows = rows_of(read_columns(buffer, check_crcs=False))
    assert rows == rows_one_by_one(batches(buffer))
    assert rows[0][5] == [("a\ufffdc", b"\xff"), ("ok", None)]


def test_no_batch_at_all_gives_no_rows_but_the_columns() -> None:
    for views in (False, True):
        columns = read_columns(b"", views=views)
        assert columns.num_rows == 0
        assert columns.schema == schema(views=views)
    assert list(stream_columns(b"")) == []


def test_an_incomplete_batch_at_the_end_is_left_out() -> None:
    whole = numbered(5)
    assert read_columns(whole + numbered(5, base_offset=5)[:-1]).num_rows == 5


def test_empty_and_control_batches_are_passed_over() -> None:
    marker = build_end_transaction_marker(
        ControlType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=5, base_offset=2
    )
    emptied = build_batch([], base_offset=3, last_offset=9)
    buffer = numbered(2) + marker + emptied + numbered(2, base_offset=10)
    assert read_columns(buffer)["offset"].to_pylist() == [0, 1, 10, 11]


def test_batches_can_be_handed_in_from_several_buffers_and_in_any_order() -> None:
    first, second = numbered(3), numbered(3, base_offset=3)
    both = list(batches(first + second))
    backwards = [both[1], both[0]]
    assert read_columns(backwards)["offset"].to_pylist() == [3, 4, 5, 0, 1, 2]
    assert read_columns(backwards, start_offset=1)["offset"].to_pylist() == [3, 4, 5, 1, 2]
    apart = [*batches(second), *batches(first)]
    assert read_columns(apart)["offset"].to_pylist() == [3, 4, 5, 0, 1, 2]


def test_a_predicate_leaves_batches_out() -> None:
    buffer = numbered(2) + numbered(2, base_offset=2) + numbered(2, base_offset=4)
    columns = read_columns(buffer, skip=lambda batch: batch.base_offset == 2)
    assert columns["offset"].to_pylist() == [0, 1, 4, 5]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_is_read(kind: Any) -> None:
    buffer = numbered(40) + numbered(3, base_offset=40)
    assert read_columns(kind(buffer))["offset"].to_pylist() == list(range(43))
    inside = memoryview(b"x" + buffer)[1:]
    assert read_columns(inside)["offset"].to_pylist() == list(range(43))


def test_views_leave_long_values_in_the_fetched_bytes() -> None:
    buffer = bytearray(numbered(1, size=100))
    value = read_columns(buffer, views=True)["value"]
    buffer[buffer.index(b"vvvv") + 50] = ord("w")
    assert value[0].as_py() == b"v" * 50 + b"w" + b"v" * 49


def test_copies_do_not_follow_the_fetched_bytes() -> None:
    buffer = bytearray(numbered(1, size=100))
    value = read_columns(buffer)["value"]
    buffer[buffer.index(b"vvvv") + 50] = ord("w")
    assert value[0].as_py() == b"v" * 100


def test_a_wrong_checksum_is_refused_unless_told_otherwise() -> None:
    buffer = bytearray(numbered(3) + numbered(3, base_offset=3))
    buffer[-2] ^= 1
    with pytest.raises(CorruptBatch, match="offset 3 ") as refused:
        read_columns(buffer)
    assert refused.value.code == ErrorCode.CORRUPT_MESSAGE
    assert read_columns(buffer, check_crcs=False).num_rows == 6


def test_a_refusal_names_batch_and_record() -> None:
    records = b"".join(encode_varint(7) + b"\x00\x00" + encode_varint(i) + b"\x01\x02v\x00" for i in range(4))
    assert len(records) == 32
    broken = bytearray(records)
    broken[8 * 2 + 5] = 0x06  # The value of record 2 would now reach into the next record.
    batch = numbered(2) + _with_payload(bytes(broken), 4, base_offset=77)
    with pytest.raises(MalformedRecords, match=r"offset 77 .*record 2 "):
        read_columns(batch)


def _with_payload(payload: bytes, count: int, base_offset: int = 0) -> bytes:
    return assemble(BatchFields(base_offset, count - 1, 0, 0, 0, 0, -1, -1, -1, count), payload)


GOOD = encode_varint(7) + b"\x00\x00\x00\x01\x02v\x00"


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (b"", 1),
        (GOOD, 2),
        (GOOD, -1),
        (GOOD, 2**31 - 1),
        (GOOD + GOOD, 1),
        (GOOD + b"\x00" * 7, 1),
        (GOOD[:-1], 1),
        (encode_varint(8) + GOOD[1:], 1),
        (encode_varint(-1) + GOOD[1:], 1),
        (encode_varint(2**31 - 1) + GOOD[1:], 1),
        (b"\xff" * 12, 1),
        (encode_varint(12) + b"\x00" + b"\xff" * 11, 1),
        (encode_varint(12) + b"\x00\x00" + b"\xff" * 10, 1),
        (encode_varint(7) + b"\x00\x00\x00" + encode_varint(50) + b"v\x00", 1),
        (encode_varint(7) + b"\x00\x00\x00\x01\x02v" + encode_varint(-1), 1),
        (encode_varint(7) + b"\x00\x00\x00\x01\x02v" + encode_varint(1), 1),
        (encode_varint(9) + b"\x00\x00\x00\x01\x02v\x02" + encode_varint(-1) + b"\x00", 1),
        (encode_varint(9) + b"\x00\x00\x00\x01\x02v\x02" + encode_varint(0) + encode_varint(1), 1),
        (encode_varint(10) + b"\x00\x00\x00\x01\x02v\x02" + encode_varint(0) + b"\x00\x00", 1),
        (encode_varint(11) + b"\x00\x00\x00\x01\x02v\x04" + encode_varint(1) + b"x\x00\x00", 1),
    ],
)
@pytest.mark.parametrize("copies", [1, 20, 200])
def test_malformed_records_are_refused(payload: bytes, count: int, copies: int) -> None:
    buffer = numbered(3) * copies + _with_payload(payload, count, base_offset=99) + numbered(40)
    with pytest.raises(MalformedRecords, match="offset 99 "):
        read_columns(buffer)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_payload_that_does_not_decompress_is_refused_with_its_offset(codec: Compression) -> None:
    buffer = bytearray(numbered(3, base_offset=31, compression=codec))
    buffer[HEADER_SIZE:] = b"\x00" * (len(buffer) - HEADER_SIZE)
    with pytest.raises(KafkaError, match="offset 31 "):
        read_columns(buffer, check_crcs=False)


def assert_same_as_one_by_one(mutated: bytearray) -> None:
    try:
        rows = rows_of(read_columns(mutated, check_crcs=False))
    except KafkaError:
        with pytest.raises(KafkaError):
            rows_one_by_one(batch for batch in batches(mutated) if not batch.is_control)
        return
    expected = rows_one_by_one(batch for batch in batches(mutated) if not batch.is_control)
    assert [_wrapped(row) for row in rows] == [_wrapped(row) for row in expected]


@settings(max_examples=40, deadline=None)
@given(fetched(), st.data())
def test_mutated_bytes_give_a_typed_error_or_what_the_per_record_reader_finds(
    buffer: bytes, data: st.DataObject
) -> None:
    mutated = bytearray(buffer)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(mutated) - 1))] = data.draw(st.integers(0, 255))
    assert_same_as_one_by_one(mutated)


@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_mutations_of_headers_and_fields_never_give_foreign_bytes(seed: int) -> None:
    chance = random.Random(seed)
    lists: list[list[tuple[str, bytes | None]]] = [[], [("a", b"1")], [("b", None), ("cc", b"2")]]
    records = [
        (index, b"k" * (index % 3), None if index % 5 else b"v", lists[index % 3]) for index in range(9)
    ]
    buffer = build_batch(records) + build_batch(records[:2], base_offset=9)
    for _ in range(800):
        mutated = bytearray(buffer)
        for _ in range(chance.randint(1, 3)):
            mutated[chance.randrange(HEADER_SIZE - 4, len(buffer))] = chance.randrange(256)
        assert_same_as_one_by_one(mutated)


def _wrapped(row: Row) -> Row:
    """Offsets and timestamps beyond 64 bits wrap in columns, as they do in Kafka's clients."""
    return (row[0] % 2**64, row[1] % 2**64, *row[2:])


def test_more_than_fits_into_one_record_batch_is_refused_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.records.arrow_reader.ARENA_BYTES_MAX", 300)
    with pytest.raises(ColumnsTooLarge, match="stream"):
        read_columns(numbered(10) + numbered(10, base_offset=10))
    assert read_columns(numbered(10)).num_rows == 10
