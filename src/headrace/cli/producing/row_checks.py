"""Finds the first row that a writer would refuse, so that its line can be named and those before it sent."""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.write_columns import checked_rows
from headrace.records.arrow_input import UnusableColumns

#: How the writer names a row; here it has a line.
_ROW: Final = re.compile(r"^Row \d+ ")


def first_unsendable(
    records: pa.RecordBatch, topic: str, partitions: int, record_bytes_max: int
) -> tuple[int, str] | None:
    """The first row that can't be sent, and why; None if all can."""
    beyond = _first_beyond(records, partitions)
    if beyond is not None:
        number = records.column("partition")[beyond].as_py()
        found: tuple[int, str] | None = (
            beyond,
            f"topic {topic!r} has no partition {number}; it has {partitions}, from 0 on",
        )
        records = records.slice(0, beyond)
    else:
        found = None
    reason = _refusal(records, topic, record_bytes_max)
    if reason is None:
        return found
    # Rows are refused one by one, so a search by halves finds the first of them.
    good, bad = 0, records.num_rows
    while bad - good > 1:
        middle = (good + bad) // 2
        refused = _refusal(records.slice(0, middle), topic, record_bytes_max)
        if refused is None:
            good = middle
        else:
            bad, reason = middle, refused
    return bad - 1, reason


def _first_beyond(records: pa.RecordBatch, partitions: int) -> int | None:
    if "partition" not in records.schema.names:
        return None
    is_beyond = pc.fill_null(pc.greater_equal(records.column("partition"), partitions), False)
    row = pc.index(is_beyond, pa.scalar(True)).as_py()
    return None if row < 0 else row


def _refusal(records: pa.RecordBatch, topic: str, record_bytes_max: int) -> str | None:
    try:
        checked_rows(records, topic=topic, now_ms=0, record_bytes_max=record_bytes_max)
    except UnusableColumns as error:
        return _ROW.sub("it ", str(error))
    return None
