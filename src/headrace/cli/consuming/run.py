"""Prints what a reader reads, until there is an end to it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from headrace.cli.consuming.json_rows import JsonRows
from headrace.cli.consuming.places import Kind, Place
from headrace.cli.consuming.positions import offsets_at, partitions_of, refuse_beyond
from headrace.cli.consuming.reading import read_on, read_until
from headrace.cli.consuming.standard_output import StandardOutput
from headrace.cli.consuming.text_rows import TextRows
from headrace.client.cluster import Cluster
from headrace.client.column_reader import Columns

STANDARD_OUTPUT: Final = 1


class Rows(Protocol):
    """Makes lines of records."""

    def render(self, records: pa.RecordBatch) -> bytes | memoryview:
        """A line for each record."""


@dataclass(frozen=True, slots=True)
class Consume:
    """Prints the records of topics."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...] | None
    start: Place
    until: Place | None
    count_max: int | None
    is_json: bool
    key_separator: str | None

    async def __call__(self, cluster: Cluster) -> None:
        if self.count_max == 0:
            return
        partitions = await partitions_of(cluster, self.topics, self.partitions)
        positions = await offsets_at(cluster, partitions, self.start)
        if self.until is None:
            records = read_on(cluster, positions, is_whole=self.partitions is None)
        else:
            ends = await offsets_at(cluster, partitions, self.until)
            if self.start.kind is Kind.OFFSET and self.until.kind is Kind.END:
                await refuse_beyond(cluster, positions, ends)
            positions = {each: offset for each, offset in positions.items() if offset < ends[each]}
            if not positions:
                return
            records = read_until(cluster, positions, {each: ends[each] for each in positions})
        output = StandardOutput(STANDARD_OUTPUT)
        async with aclosing(records):
            await _first_of(self._print(records, output), output.reader_gone())

    async def _print(self, records: AsyncIterator[Columns], output: StandardOutput) -> None:
        left = self.count_max
        async for columns in records:
            batch = columns.batch if left is None else columns.batch.slice(0, left)
            await output.write(self._rows(columns).render(batch))
            if left is not None:
                left -= batch.num_rows
                if left == 0:
                    return

    def _rows(self, columns: Columns) -> Rows:
        if self.is_json:
            return JsonRows(columns.topic, columns.partition)
        return TextRows(self.key_separator)


async def _first_of(work: Coroutine[Any, Any, None], end: Coroutine[Any, Any, None]) -> None:
    """Until work is done or its end has come; it is stopped then."""
    working, ending = asyncio.create_task(work), asyncio.create_task(end)
    try:
        await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (working, ending):
            task.cancel()
        await asyncio.wait([working, ending])
    if not working.cancelled():
        working.result()
