"""The columns of a topic in Spark: names, types and order are those of Spark's own `kafka` source."""

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.errors import ColumnsRefused

HEADERS_TYPE: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def source_schema(*, has_headers: bool) -> StructType:
    """What a read gives."""
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if has_headers:
        fields.append(StructField("headers", HEADERS_TYPE))
    return StructType(fields)


def check_read_schema(given: StructType, *, has_headers: bool) -> None:
    """Refuse a schema of the user's own: the columns are fixed."""
    expected = source_schema(has_headers=has_headers)
    if given != expected:
        raise ColumnsRefused(
            f"a topic has the columns {expected.simpleString()}, not {given.simpleString()}; leave out "
            "schema(...) and select or cast afterwards"
        )
