"""The columns that a sink writes: those of Spark's own `kafka` sink, checked before a query runs.

Other columns are passed over, as there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from headrace.spark.errors import ColumnsRefused
from headrace.spark.options import SinkOptions
from headrace.spark.schema import HEADERS_TYPE

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_OR_BYTES: Final = (StringType(), BinaryType())
#: The types that each column may have.
_COLUMNS: Final[dict[str, tuple[DataType, ...]]] = {
    "topic": (StringType(),),
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "headers": (HEADERS_TYPE,),
    "partition": (IntegerType(),),
}


def check_write_columns(schema: StructType, options: SinkOptions) -> None:
    """Refuse a DataFrame that lacks a column, or has one of another type than can be written."""
    names = schema.fieldNames()
    if "value" not in names:
        raise ColumnsRefused(f"a column 'value' is needed to write to a topic; there are {_spell(names)}")
    if "topic" not in names and options.topic is None:
        raise ColumnsRefused(
            "there is neither the option 'topic' nor a column 'topic' to say where to write to; there are "
            f"the columns {_spell(names)}"
        )
    for name in written_columns(names, options):
        if names.count(name) > 1:
            raise ColumnsRefused(f"there is more than one column {name!r}")
        _check_type(name, schema[name].dataType)
    if options.has_headers is False and "headers" in names:
        raise ColumnsRefused(
            "includeHeaders is false, but there is a column 'headers'; a column that is there is written, so "
            "drop it or leave out the option"
        )


def written_columns(names: Sequence[str], options: SinkOptions) -> list[str]:
    """Those columns that are written. The option 'topic' goes before a column of that name."""
    return [name for name in _COLUMNS if name in names and (name != "topic" or options.topic is None)]


def written_part(batch: "pa.RecordBatch", options: SinkOptions) -> "pa.RecordBatch":
    """The part of a batch that is written."""
    return batch.select(written_columns(batch.schema.names, options))


def _check_type(name: str, given: DataType) -> None:
    allowed = _COLUMNS[name]
    if not any(_is_same(given, each) for each in allowed):
        wanted = " or ".join(each.simpleString() for each in allowed)
        raise ColumnsRefused(f"column {name!r} is {given.simpleString()}; it has to be {wanted}")


def _is_same(given: DataType, wanted: DataType) -> bool:
    """Whether two types are the same but for what may be null in them."""
    if isinstance(wanted, ArrayType):
        return isinstance(given, ArrayType) and _is_same(given.elementType, wanted.elementType)
    if isinstance(wanted, StructType):
        return (
            isinstance(given, StructType)
            and given.fieldNames() == wanted.fieldNames()
            and all(_is_same(a.dataType, b.dataType) for a, b in zip(given, wanted, strict=True))
        )
    return type(given) is type(wanted)


def _spell(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
