"""Prints what a reader reads, until there is an end to it."""

import asyncio
import sys
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headrace.cli.consuming.json_rows import JsonRows
from headrace.cli.consuming.places import Place
from headrace.cli.consuming.positions import offsets_at, partitions_of
from headrace.cli.consuming.standard_output import StandardOutput
from headrace.cli.consuming.text_rows import TextRows
from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.types import TopicPartition


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
        partitions = await partitions_of(cluster, self.topics, self.partitions)
        positions = dict(await offsets_at(cluster, partitions, self.start))
        ends = None
        if self.until is not None:
            ends = dict(await offsets_at(cluster, partitions, self.until))
            positions = {each: offset for each, offset in positions.items() if offset < ends[each]}
        if not positions or self.count_max == 0:
            return
        output = StandardOutput(sys.stdout.fileno())
        printing = asyncio.create_task(self._print(cluster, positions, ends, output))
        watching = asyncio.create_task(output.reader_gone())
        try:
            await asyncio.wait([printing, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            printing.cancel()
            await asyncio.wait([printing, watching])
        if not printing.cancelled():
            printing.result()

    async def _print(
        self,
        cluster: Cluster,
        positions: dict[TopicPartition, int],
        ends: dict[TopicPartition, int] | None,
        output: StandardOutput,
    ) -> None:
        left = self.count_max
        until = None if ends is None else {each: ends[each] for each in positions}
        async with ColumnReader(cluster, positions, until=until) as reader:
            async for columns in reader:
                records = columns.batch if left is None else columns.batch.slice(0, left)
                await output.write(self._rows(columns).render(records))
                if left is not None:
                    left -= records.num_rows
                    if left == 0:
                        return

    def _rows(self, columns: Columns) -> Rows:
        if self.is_json:
            return JsonRows(columns.topic, columns.partition)
        return TextRows(self.key_separator)
