"""Lines of text as records: the line is the value, or a key and a value with a separator between them.

No Python object is made for a line; Arrow splits them all at once."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.cli.producing.lines import BadLine, Lines
from headrace.cli.producing.parsed import Parsed, ParseLines

# A line may be as long as max.request.size, which goes to the limit of Arrow's plain binary columns.
_LINES: Final = pa.large_binary()


def parse_values(lines: Lines) -> Parsed:
    """One record for each line, without a key."""
    values = _split(lines)
    return Parsed(pa.RecordBatch.from_arrays([values], names=["value"]), _numbers(lines, len(values)))


def keyed_by(separator: str) -> ParseLines:
    """How lines are parsed that have a key before a separator."""

    def parse(lines: Lines) -> Parsed:
        parts = pc.split_pattern(_split(lines), pattern=separator, max_splits=1)
        lone = pc.index(pc.list_value_length(parts), pa.scalar(1, pa.int32())).as_py()
        both = (parts if lone < 0 else parts.slice(0, lone)).flatten()
        keys, values = (both.take(np.arange(first, len(both), 2)) for first in (0, 1))
        records = pa.RecordBatch.from_arrays([keys, values], names=["key", "value"])
        bad = None if lone < 0 else _lonely(lines.first + lone, separator)
        return Parsed(records, _numbers(lines, len(keys)), bad)

    return parse


def _numbers(lines: Lines, count: int) -> range:
    return range(lines.first, lines.first + count)


def _split(lines: Lines) -> pa.Array:
    return pc.split_pattern(pa.array([lines.data], _LINES), pattern="\n").flatten()


def _lonely(number: int, separator: str) -> BadLine:
    return BadLine(number, f"it has no {separator!r} between key and value (--key-separator)")
