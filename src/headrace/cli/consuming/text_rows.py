"""Records as lines of text: the value, or key and value with a separator between them.

The bytes are those of the record, whatever they are; no Python object is made for a record."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: What stands for a key or value that is null, as in Kafka's console consumer.
NULL_TEXT: Final = "null"
_LINE_END: Final = pa.scalar(b"\n", pa.large_binary())
_NOTHING: Final = pa.scalar(b"", pa.large_binary())


class TextRows:
    """Renders records as lines."""

    __slots__ = ("_separator",)

    def __init__(self, key_separator: str | None = None) -> None:
        self._separator = None if key_separator is None else _text_scalar(key_separator)

    def render(self, records: pa.RecordBatch) -> memoryview:
        """A line for each record."""
        rows = _column(records, "value")
        if self._separator is not None:
            rows = _joined(_column(records, "key"), rows, self._separator)
        return _bytes_of(_joined(rows, _NOTHING, _LINE_END))


def _text_scalar(text: str) -> pa.Scalar:
    return pa.scalar(text.encode(errors="surrogateescape"), pa.large_binary())


def _column(records: pa.RecordBatch, name: str) -> pa.Array:
    return records.column(name).cast(pa.large_binary())


def _joined(left: pa.Array, right: pa.Array | pa.Scalar, separator: pa.Scalar) -> pa.Array:
    return pc.binary_join_element_wise(
        left, right, separator, null_handling="replace", null_replacement=NULL_TEXT
    )


def _bytes_of(rows: pa.Array) -> memoryview:
    """All entries of a column one after the other, as they lie in memory."""
    if not len(rows):
        return memoryview(b"")
    _, offsets, data = rows.buffers()
    edges = np.frombuffer(offsets, np.int64)[rows.offset : rows.offset + len(rows) + 1]
    return memoryview(data)[int(edges[0]) : int(edges[-1])]
