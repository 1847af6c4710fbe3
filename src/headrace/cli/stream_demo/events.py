"""Made-up sensor readings, produced as columns at a steady rate."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.admin.topics import NewTopic, create_topics
from headrace.client.cluster import Cluster
from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig

if TYPE_CHECKING:
    from numpy.random import Generator

TOPIC: Final = "readings"
PARTITIONS: Final = 2
STATIONS: Final = ("Amrum", "Bergen", "Cadiz", "Dover", "Esbjerg", "Faro")
PERIOD_SECONDS: Final = 0.1


@dataclass(slots=True)
class Produced:
    """How far the generator is. Written by its thread alone."""

    rows: int = 0
    error: BaseException | None = None
    on_rows: Callable[[int], None] | None = None

    def add(self, rows: int) -> None:
        """Rows were handed over."""
        self.rows += rows
        if self.on_rows is not None:
            self.on_rows(self.rows)


def readings(rng: "Generator", count: int) -> pa.RecordBatch:
    """Readings of random stations: the key is the station, the value JSON with station and temperature."""
    chosen = rng.integers(0, len(STATIONS), count)
    station = pa.array(STATIONS).take(pa.array(chosen))
    degrees = np.round(8 + chosen * 2.5 + rng.normal(0, 3, count), 1)
    value = pc.binary_join_element_wise(
        '{"station": "', station, '", "celsius": ', pa.array(degrees).cast(pa.string()), "}", ""
    )
    return pa.record_batch({"key": station.cast(pa.binary()), "value": value.cast(pa.binary())})


async def generate(address: str, rows_per_second: int, produced: Produced, stop: asyncio.Event) -> None:
    """Produce readings until told to stop. A node that is slow gets fewer; nothing piles up here."""
    rng = np.random.default_rng()
    async with (
        Cluster(ClientConfig.from_properties({"bootstrap.servers": address})) as cluster,
        ColumnWriter(cluster, topic=TOPIC) as writer,
    ):
        due = monotonic()
        while not stop.is_set():
            batch = readings(rng, max(1, int(rows_per_second * PERIOD_SECONDS)))
            await writer.write(batch)
            produced.add(batch.num_rows)
            due = max(due + PERIOD_SECONDS, monotonic() - PERIOD_SECONDS)
            await _wait(stop, due - monotonic())


async def create_topic(address: str) -> None:
    """The topic of the readings."""
    async with Cluster(ClientConfig.from_properties({"bootstrap.servers": address})) as cluster:
        await create_topics(cluster, [NewTopic(TOPIC, partitions=PARTITIONS)])


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), max(0.0, seconds))
    except TimeoutError:
        return
