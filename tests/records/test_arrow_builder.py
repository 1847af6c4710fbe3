"""Batches built from columns are, byte for byte, those built from the same records one by one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.records.arrow_builder import build_batches
from headrace.records.arrow_headers import HEADERS
from headrace.records.arrow_input import UnusableColumns
from headrace.records.arrow_reader import read_columns
from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.reader import read_records

optional_bytes = st.none() | st.binary(max_size=30) | st.binary(min_size=60, max_size=300)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=4)
timestamps = st.integers(0, 2**41) | st.just(-1) | st.integers(0, 2**63 - 1) | st.integers(1000, 1100)
records_lists = st.lists(
    st.builds(NewRecord, timestamps, optional_bytes, optional_bytes, headers | st.just([])),
    min_size=1,
    max_size=60,
)


def columns_of(records: list[NewRecord]) -> pa.RecordBatch:
    lists = [[{"key": name, "value": value} for name, value in record.headers] for record in records]
    return pa.RecordBatch.from_pydict(
        {
            "timestamp": pa.array([record.timestamp for record in records], pa.int64()),
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "headers": pa.array(lists, HEADERS),
        }
    )


def only_batch(data: bytes) -> Batch:
    (batch,) = batches(data)
    return batch


def one_by_one(records: list[NewRecord], counts: list[int], **fields: Any) -> list[bytes]:
    """Batches of the given numbers of records; offsets and sequence numbers count on."""
    built = []
    done = 0
    for count in counts:
        own = dict(fields)
        if "base_sequence" in own:
            own["base_sequence"] = (own["base_sequence"] + done) % 2**31
        own["base_offset"] = own.get("base_offset", 0) + done
        built.append(build_batch(records[done : done + count], **own))
        done += count
    assert done == len(records)
    return built


@settings(max_examples=120, deadline=None)
@given(records_lists, st.integers(61, 3000), st.sampled_from(Compression), st.data())
def test_batches_are_those_of_the_per_record_builder(
    records: list[NewRecord], bytes_max: int, codec: Compression, data: st.DataObject
) -> None:
    fields: dict[str, Any] = {
        "base_offset": data.draw(st.integers(0, 2**40)),
        "compression": codec,
        "leader_epoch": data.draw(st.integers(-1, 9)),
        "log_append_time": data.draw(st.none() | st.integers(0, 2**40)),
    }
    if data.draw(st.booleans()):
        sequence = data.draw(st.integers(0, 2**31 - 1))
        fields |= {"producer_id": 5, "producer_epoch": 2, "base_sequence": sequence, "transactional": True}
    built = list(build_batches(columns_of(records), batch_bytes_max=bytes_max, **fields))
    assert built == one_by_one(records, [only_batch(batch).count for batch in built], **fields)


@settings(max_examples=60, deadline=None)
@given(records_lists, st.integers(61, 3000))
def test_no_batch_exceeds_the_limit_but_for_a_single_record(records: list[NewRecord], bytes_max: int) -> None:
    for data in build_batches(columns_of(records), batch_bytes_max=bytes_max):
        assert len(data) <= bytes_max or only_batch(data).count == 1


@settings(max_examples=40, deadline=None)
@given(records_lists, st.sampled_from(Compression))
def test_columns_survive_building_and_reading(records: list[NewRecord], codec: Compression) -> None:
    columns = columns_of(records)
    built = b"".join(build_batches(columns, compression=codec))
    read = read_columns(built)
    for name in ("key", "value", "headers"):
        assert read[name].equals(columns[name])
    assert read["timestamp"].cast(pa.int64()).equals(columns["timestamp"])
    assert read["offset"].to_pylist() == list(range(len(records)))
    assert b"".join(build_batches(read, compression=codec)) == built


def test_batches_are_filled_up_to_a_few_bytes_per_record() -> None:
    records = [NewRecord(1_700_000_000_000 + 40 * index, None, b"x" * 100) for index in range(20_000)]
    built = list(build_batches(columns_of(records), batch_bytes_max=16384))
    assert min(len(batch) for batch in built[:-1]) > 0.97 * 16384
    assert max(len(batch) for batch in built) <= 16384


def test_runs_of_many_batches_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [NewRecord(index, b"k%d" % index, b"v" * (index % 90), [("h", b"1")]) for index in range(3000)]
    whole = list(build_batches(columns_of(records), batch_bytes_max=2000))
    monkeypatch.setattr("headrace.records.arrow_builder._RUN_BYTES", 10_000)
    assert list(build_batches(columns_of(records), batch_bytes_max=2000)) == whole


def test_sequence_numbers_wrap_to_zero() -> None:
    records = [NewRecord(1, None, b"x" * 50) for _ in range(4)]
    built = build_batches(columns_of(records), batch_bytes_max=61, producer_id=1, base_sequence=2**31 - 2)
    assert [only_batch(batch).base_sequence for batch in built] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_slices_and_tables_of_several_chunks_are_built_like_the_rows_they_show() -> None:
    records = [NewRecord(index, b"%d" % index, None, [(f"h{index}", None)]) for index in range(10)]
    columns = columns_of(records)
    expected = list(build_batches(columns_of(records[3:8])))
    assert list(build_batches(columns.slice(3, 5))) == expected
    table = pa.Table.from_batches([columns.slice(3, 2), columns.slice(5, 3)])
    assert list(build_batches(table)) == expected


def test_rows_beyond_what_plain_columns_hold_are_built_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headrace.records.arrow_input.PIECE_BYTES_MAX", 500)
    records = [NewRecord(index, None, b"x" * 100) for index in range(20)]
    for columns in (columns_of(records), pa.Table.from_batches([columns_of(records)])):
        built = list(build_batches(columns))
        assert len(built) > 1
        assert built == one_by_one(records, [only_batch(batch).count for batch in built])


def test_no_rows_give_no_batch() -> None:
    assert list(build_batches(columns_of([]))) == []
    assert list(build_batches(pa.Table.from_batches([], schema=columns_of([]).schema))) == []


def test_missing_columns_are_null_and_a_missing_time_is_the_default() -> None:
    built = list(build_batches(pa.RecordBatch.from_pydict({"value": [b"v"]}), timestamp_default=77))
    assert built == [build_batch([NewRecord(77, None, b"v")])]
    times = pa.array([5, None], pa.timestamp("ms"))
    built = list(build_batches(pa.RecordBatch.from_pydict({"timestamp": times})))
    assert built == [build_batch([NewRecord(5, None, None), NewRecord(-1, None, None)])]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.large_binary(),
        pa.binary(3),
        pa.binary_view(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_any_column_of_bytes_or_text_will_do(kind: pa.DataType) -> None:
    values = pa.array(["one", None, "two"], pa.string()).cast(pa.binary())
    column = values.cast(pa.string()).cast(kind) if not pa.types.is_dictionary(kind) else None
    if column is None:
        column = values.cast(pa.string()).dictionary_encode()
    built = list(build_batches(pa.RecordBatch.from_pydict({"key": column})))
    assert built == list(build_batches(pa.RecordBatch.from_pydict({"key": values})))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+02:00"])
def test_times_of_any_unit_become_milliseconds(unit: str, zone: str | None) -> None:
    times = pa.array([1_700_000_000], pa.timestamp("s")).cast(pa.timestamp(unit)).view(pa.int64())
    column = times.view(pa.timestamp(unit, tz=zone))
    built = list(build_batches(pa.RecordBatch.from_pydict({"timestamp": column})))
    assert only_batch(built[0]).base_timestamp == 1_700_000_000_000


def test_a_map_of_headers_will_do() -> None:
    maps = pa.array([[("a", b"1"), ("b", None)], None, []], pa.map_(pa.string(), pa.binary()))
    built = list(build_batches(pa.RecordBatch.from_pydict({"headers": maps})))
    records = [NewRecord(-1, None, None, [("a", b"1"), ("b", None)]), *[NewRecord(-1, None, None)] * 2]
    assert built == [build_batch(records)]


def test_nulls_that_cover_bytes_are_still_null() -> None:
    edges, validity = pa.array([0, 3, 6], pa.int32()).buffers()[1], pa.py_buffer(b"\x02")
    values = pa.Array.from_buffers(pa.binary(), 2, [validity, edges, pa.py_buffer(b"abcdef")])
    built = list(build_batches(pa.RecordBatch.from_pydict({"value": values})))
    assert built == [build_batch([NewRecord(-1, None, None), NewRecord(-1, None, b"def")])]


HEADER_WITHOUT_KEY = pa.array([[{"key": None, "value": b""}]], HEADERS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": [1]}, "Column key is int64"),
        ({"value": [1.5]}, "Column value is double"),
        ({"value": [[b"x"]]}, "Column value is list"),
        ({"timestamp": ["now"]}, "Column timestamp is string"),
        ({"timestamp": [-2]}, "-2 ms in row 0"),
        ({"headers": [1]}, "Column headers is int64"),
        ({"headers": HEADER_WITHOUT_KEY}, "header without a key"),
        ({"topic": ["t"], "value": [b"v"]}, "topic"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused_by_name(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableColumns, match=message):
        list(build_batches(pa.RecordBatch.from_pydict(columns)))


@pytest.mark.parametrize("codec", Compression)
def test_timestamps_further_apart_than_a_long_wrap_as_in_java(codec: Compression) -> None:
    records = [NewRecord(-1, None, None, []), NewRecord(2**63 - 1, None, b"v", [])]
    (built,) = build_batches(columns_of(records), compression=codec)
    assert built == build_batch(records, compression=codec)
    assert [record.timestamp for record in read_records(only_batch(built))] == [-1, 2**63 - 1]
