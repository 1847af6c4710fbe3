"""What lines of input become."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from headrace.cli.producing.lines import BadLine, Lines


class Parsed(NamedTuple):
    """The records of lines, and the lines' numbers, up to the first one that is bad."""

    records: pa.RecordBatch
    numbers: Sequence[int]
    bad: BadLine | None = None


ParseLines: TypeAlias = Callable[[Lines], Parsed]
