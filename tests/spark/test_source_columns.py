"""Arrow batches in the very types that Spark expects of a source."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.client.column_reader import columns_schema
from headrace.spark.errors import RecordUnreadable
from headrace.spark.schema import source_schema
from headrace.spark.source_columns import SourceColumns
from headrace.types import TopicPartition

PARTITION = TopicPartition("t", 3)


def batch(*records: tuple[int, int, bytes | None, list[tuple[str, bytes | None]]]) -> pa.RecordBatch:
    """Records of (offset, timestamp, value, headers), as the client hands them out."""
    schema = columns_schema(plain=True)
    rows = [
        {
            "offset": offset,
            "timestamp": timestamp,
            "timestamp_type": 0,
            "key": None,
            "value": value,
            "headers": [{"key": key, "value": item} for key, item in headers],
            "partition": 3,
            "topic": "t",
        }
        for offset, timestamp, value, headers in records
    ]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@pytest.mark.parametrize("has_headers", [False, True])
def test_the_types_are_exactly_those_of_the_schema(has_headers: bool) -> None:
    expected = to_arrow_schema(source_schema(has_headers=has_headers), timezone="UTC")
    shaped = SourceColumns(PARTITION, has_headers=has_headers).shape(batch((0, 1, b"v", [])))
    assert shaped.schema.equals(expected)
    shaped.validate(full=True)


def test_topic_and_partition_are_in_every_row() -> None:
    shaper = SourceColumns(PARTITION, has_headers=False)
    for count in (1, 5, 2):
        shaped = shaper.shape(batch(*[(number, 1, b"v", []) for number in range(count)]))
        assert shaped.column("topic").to_pylist() == ["t"] * count
        assert shaped.column("partition").to_pylist() == [3] * count


def test_records_without_headers_have_null() -> None:
    shaper = SourceColumns(PARTITION, has_headers=True)
    mixed = batch((0, 1, b"v", []), (1, 1, b"v", [("a", b"x"), ("a", None)]), (2, 1, b"v", []))
    assert shaper.shape(mixed).column("headers").to_pylist() == [
        None,
        [{"key": "a", "value": b"x"}, {"key": "a", "value": None}],
        None,
    ]
    assert shaper.shape(mixed.slice(1)).column("headers").to_pylist()[1] is None
    full = batch((0, 1, b"v", [("a", b"x")]))
    assert shaper.shape(full).column("headers").to_pylist() == [[{"key": "a", "value": b"x"}]]


def test_times_are_kept_to_the_millisecond_also_before_1970() -> None:
    shaped = SourceColumns(PARTITION, has_headers=False).shape(
        batch((0, 1_700_000_000_123, None, []), (1, -1, None, []))
    )
    assert shaped.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000, -1_000]


def test_a_time_that_spark_cannot_hold_names_the_record() -> None:
    shaper = SourceColumns(PARTITION, has_headers=False)
    with pytest.raises(
        RecordUnreadable, match="t-3: the record at offset 8 has the timestamp 9223372036854775"
    ):
        shaper.shape(batch((7, 5, None, []), (8, 2**63 - 1, None, [])))
