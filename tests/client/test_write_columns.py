"""Columns that can be meant are taken, the others refused by name before anything is sent."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.open_rows import OpenRows
from headrace.client.routing import Layout, Router, partitions_named
from headrace.client.write_columns import Rows, checked_rows
from headrace.records.arrow_builder import encoded_records
from headrace.records.arrow_headers import HEADERS
from headrace.records.arrow_input import UnusableColumns
from headrace.testing.entropy import SeededEntropy
from headrace.types import TopicPartition

NOW_MS = 1_700_000_000_000


def check(columns: Any, topic: str | None = "t", record_bytes_max: int = 1_000_000) -> list[Rows]:
    return checked_rows(columns, topic=topic, now_ms=NOW_MS, record_bytes_max=record_bytes_max)


@pytest.mark.parametrize(
    ("columns", "topic", "complaint"),
    [
        ({"timestamp": [1]}, "t", "A column value or key is needed; got timestamp"),
        ({"valu": ["a"], "key": ["b"]}, "t", "Columns valu are none of key, value"),
        ({"value": ["a"]}, None, "A column topic is needed"),
        ({"value": [1]}, "t", "Column value is int64; it must be binary or string"),
        ({"value": ["a"], "key": [1.5]}, "t", "Column key is double"),
        ({"value": ["a"], "timestamp": [-5]}, "t", "times are not negative"),
        ({"value": ["a"], "timestamp": ["x"]}, "t", "Column timestamp is string"),
        ({"value": ["a"], "headers": ["x"]}, "t", "Column headers is string"),
        ({"value": ["a", "b"], "partition": [0, -2]}, "t", "Column partition has -2 in row 1"),
        ({"value": ["a"], "partition": ["x"]}, "t", "Column partition is string"),
        ({"value": ["a"], "partition": [2**40]}, "t", "Column partition has 1099511627776 in row 0"),
        ({"value": ["a", "b"], "topic": ["x", None]}, None, "Column topic is null in row 1"),
        ({"value": ["a"], "topic": [1]}, None, "Column topic is int64; it must be string"),
        ({"value": ["a", "b" * 2_000_000]}, "t", "Row 1 takes 20000.. bytes, more than the 1000000"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(
    columns: dict[str, Any], topic: str | None, complaint: str
) -> None:
    with pytest.raises(UnusableColumns, match=complaint):
        check(pa.table(columns), topic)


def test_the_same_column_twice_is_refused() -> None:
    with pytest.raises(UnusableColumns, match="Each column may be there once"):
        check(pa.record_batch([pa.array(["a"]), pa.array(["b"])], ["value", "value"]))


def test_rows_are_numbered_over_the_chunks_of_a_table() -> None:
    chunk = pa.array(["x"] * 5_000)
    table = pa.table(
        {
            "value": pa.chunked_array([chunk, chunk]),
            "partition": pa.chunked_array([[0] * 5_000, [0] * 4_999 + [-1]]),
        }
    )
    with pytest.raises(UnusableColumns, match="in row 9999"):
        check(table)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
)
def test_keys_and_values_may_be_any_kind_of_bytes(kind: pa.DataType) -> None:
    (rows,) = check(
        pa.record_batch({"key": pa.array(["k", None]).cast(kind), "value": pa.array(["v", "w"]).cast(kind)})
    )
    assert rows.batch.column("key").to_pylist() == [b"k", None]
    assert rows.batch.column("value").to_pylist() == [b"v", b"w"]


def test_times_may_be_instants_milliseconds_or_missing() -> None:
    instant = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    for column, expected in (
        (pa.array([instant, None], pa.timestamp("us", tz="UTC")), [1704067200000, NOW_MS]),
        (pa.array([5, None]), [5, NOW_MS]),
        (pa.nulls(2), [NOW_MS, NOW_MS]),
    ):
        (rows,) = check(pa.record_batch({"value": pa.array(["a", "b"]), "timestamp": column}))
        assert rows.batch.column("timestamp").to_pylist() == expected


def test_what_a_reader_hands_out_can_be_written_as_it_is() -> None:
    table = pa.table(
        {
            "offset": [7],
            "timestamp_type": [0],
            "value": [b"v"],
            "topic": pa.array(["source"]).dictionary_encode(),
            "partition": pa.RunEndEncodedArray.from_arrays([1], pa.array([3], pa.int32())),
        }
    )
    (rows,) = check(table, "target")
    assert rows.topics == ["target"]
    assert rows.partitions is not None
    assert rows.partitions.tolist() == [3]


def test_only_topics_that_rows_have_are_asked_for() -> None:
    topics = pa.array(["a", "b", "c", "b"]).dictionary_encode()[1:]
    (rows,) = check(pa.record_batch({"value": pa.array(["1", "2", "3"]), "topic": topics}), None)
    assert rows.topics == ["b", "c"]
    assert rows.topic_codes is not None
    assert rows.topic_codes.tolist() == [0, 1, 0]
    assert partitions_named(rows) == {"b": -1, "c": -1}


def test_pieces_are_bounded_and_complete() -> None:
    (rows,) = check(pa.record_batch({"value": pa.array(["x" * size for size in (10, 500, 10, 10, 10)])}))
    pieces = list(rows.pieces(530, 3))
    assert [piece.count for piece in pieces] == [2, 3]
    assert [piece.count for piece in rows.pieces(120, 100)] == [1, 1, 1, 1, 1]
    assert [piece.count for piece in rows.pieces(10_000, 4)] == [3, 2]
    assert sum(int(piece.sizes.sum()) for piece in pieces) == int(rows.sizes.sum())


HEADER = st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))
ROW = st.tuples(
    st.none() | st.binary(max_size=9),
    st.none() | st.binary(max_size=200),
    st.lists(HEADER, max_size=3),
    st.integers(0, 2**40),
    st.sampled_from(["a", "b"]),
    st.none() | st.integers(0, 2),
)


@given(st.lists(ROW, min_size=1, max_size=60), st.integers(80, 1_000), st.integers(1, 4))
def test_every_row_leaves_once_in_its_partition_and_in_order(
    rows: list[Any], batch_bytes: int, writes: int
) -> None:
    router = Router(batch_bytes, SeededEntropy(3).random)
    pool = OpenRows(batch_bytes)
    layout = Layout(3, lambda: {0: 1, 1: 1, 2: 1})
    left: dict[TopicPartition, list[Any]] = {}
    per_write = -(-len(rows) // writes)
    for start in range(0, len(rows), per_write):
        (taken,) = check(_table(rows[start : start + per_write], start), None)
        slots = router.route(taken, {"a": layout, "b": layout})
        pool.add(taken.batch, slots, taken.sizes, start)
        _leave(pool, router, batch_bytes, left, older_than_ms=-1)
    _leave(pool, router, batch_bytes, left, older_than_ms=len(rows))
    assert pool.count == 0
    found = {number: partition for partition, numbers in left.items() for number in numbers}
    assert sorted(found) == list(range(len(rows)))
    for partition, numbers in left.items():
        assert numbers == sorted(numbers)
        for number in numbers:
            assert partition.topic == rows[number][4]
            assert rows[number][5] in (None, partition.partition)


def _table(rows: list[Any], first: int) -> pa.Table:
    """The rows, with their numbers as times, which come out again in the end."""
    return pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "headers": pa.array([row[2] for row in rows], HEADERS),
            "timestamp": pa.array(range(first, first + len(rows)), pa.int64()),
            "topic": pa.array([row[4] for row in rows]),
            "partition": pa.array([row[5] for row in rows], pa.int16()),
        }
    )


def _leave(
    pool: OpenRows,
    router: Router,
    batch_bytes: int,
    left: dict[TopicPartition, list[Any]],
    *,
    older_than_ms: float,
) -> None:
    cut = pool.cut(older_than_ms=older_than_ms)
    if cut is None:
        return
    for slot, first, stop, encoded in zip(
        cut.slots, cut.firsts, cut.firsts[1:], encoded_records(cut.batch, cut.firsts), strict=False
    ):
        times = cut.batch.column("timestamp")[int(first) : int(stop)].to_pylist()
        assert encoded[0] == len(times)
        assert len(times) == 1 or len(encoded[3]) + 61 <= batch_bytes
        left.setdefault(router.slots[slot], []).extend(times)


def test_a_batch_that_is_full_leaves_and_the_rest_waits_for_its_time() -> None:
    pool = OpenRows(200)
    value = pa.array([b"x" * 40] * 5, pa.binary())
    (rows,) = check(pa.record_batch({"value": value}))
    pool.add(rows.batch, np.zeros(5, np.int32), rows.sizes, 10.0)
    cut = pool.cut(older_than_ms=5.0)
    assert cut is not None
    assert (cut.slots, cut.batch.num_rows, cut.closed_early, cut.written_ms) == ([0, 0], 4, [], [10.0, 10.0])
    assert pool.counts() == {0: 1}
    assert pool.cut(older_than_ms=9.0) is None
    rest = pool.cut(older_than_ms=10.0)
    assert rest is not None
    assert (rest.batch.num_rows, rest.closed_early) == (1, [0])


def test_rows_with_and_without_keys_and_headers_share_a_batch() -> None:
    pool = OpenRows(10_000)
    for columns in (
        {"value": pa.array(["a"])},
        {"key": pa.array(["k"])},
        {"value": pa.array(["b"]), "headers": pa.array([[("h", b"1")]], HEADERS)},
    ):
        (rows,) = check(pa.record_batch(columns))
        pool.add(rows.batch, np.zeros(1, np.int32), rows.sizes, 0.0)
    cut = pool.cut(older_than_ms=0.0)
    assert cut is not None
    assert cut.batch.column("value").to_pylist() == [b"a", None, b"b"]
    assert cut.batch.column("key").to_pylist() == [None, b"k", None]
    assert cut.batch.column("headers").to_pylist() == [None, None, [{"key": "h", "value": b"1"}]]
