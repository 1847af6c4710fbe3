"""The driver's side of reading: it decides on offsets and hands out ranges, and never reads a record."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.spark import cluster_positions as positions
from headrace.spark.cluster_positions import Attempts, Selected
from headrace.spark.errors import OptionRefused
from headrace.spark.losses import Losses, was_recreated
from headrace.spark.offsets import Offsets
from headrace.spark.options import SourceOptions
from headrace.spark.planning import (
    Held,
    new_partitions,
    readable_part,
    report_gone,
    starts_of,
    stream_ranges,
)
from headrace.spark.ranges import OffsetRange, split_ranges
from headrace.types import TopicPartition

#: How old the list of partitions may be when a stream looks for more; an idle stream looks very often.
_SELECTION_AGE_S_MAX: Final = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The ranges to read, and the ids of their topics."""

    ranges: list[OffsetRange]
    ids: Mapping[str, UUID]


class Driver:
    """What a query has to know of a cluster before its tasks can read."""

    __slots__ = ("_attempts", "_cluster", "_losses", "_options", "_selected", "_selected_at")

    def __init__(self, cluster: Cluster, options: SourceOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._attempts = Attempts(options.fetch_attempts, options.fetch_retry_interval_ms)
        self._losses = Losses(options.fails_on_data_loss)
        self._selected: Selected | None = None
        self._selected_at = 0.0

    async def plan_batch(self) -> Plan:
        """What a batch query reads."""
        return await self._attempts.of(self._plan_batch)

    async def first_offsets(self) -> Offsets:
        """Where a new stream begins."""
        return await self._attempts.of(self._first_offsets)

    async def latest_offsets(self, known: Offsets, now_s: float) -> Offsets:
        """The end of every partition that is selected now; `known` is how far the stream is.

        A topic that is another one than before, or partitions that are gone, are reported as a loss.
        """

        async def look() -> Offsets:
            selected = await self._selection(now_s)
            return Offsets(await self._settled_latest(selected, known), selected.ids)

        found = await self._attempts.of(look)
        self.report_changes(known, found)
        return found

    def report_changes(self, known: Offsets, found: Offsets) -> None:
        """Report topics that are others than before, and partitions that are gone."""
        for topic in sorted(found.ids):
            if was_recreated(topic, known.ids, found.ids):
                self._losses.report_recreated(topic, known.ids[topic], found.ids[topic])
        report_gone(known, found, self._losses)

    async def starts(self, start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
        """Where reading towards `end` begins in each of its partitions, also the new ones."""
        new = new_partitions(start, end)
        return starts_of(start, end, await self._attempts.of(lambda: positions.earliest(self._cluster, new)))

    async def plan_stream(self, start: Offsets, end: Offsets) -> Plan:
        """What one batch of a stream reads. The offsets may be from a checkpoint and of another day."""
        return await self._attempts.of(lambda: self._plan_stream(start, end))

    async def _plan_batch(self) -> Plan:
        options = self._options
        selected = await positions.selected(self._cluster, options.selection)
        starts = await positions.resolve(self._cluster, options.start, selected.partitions)
        ends = await positions.resolve(self._cluster, options.end, selected.partitions)
        _check_order(starts, ends)
        there = await positions.held(self._cluster, selected.partitions)
        ranges = [
            readable_part(
                OffsetRange(partition, starts[partition], ends[partition]), there[partition], self._losses
            )
            for partition in sorted(selected.partitions)
        ]
        return Plan(self._split(ranges), selected.ids)

    async def _first_offsets(self) -> Offsets:
        selected = await positions.selected(self._cluster, self._options.selection)
        found = await positions.resolve(self._cluster, self._options.start, selected.partitions)
        return Offsets(found, selected.ids)

    async def _plan_stream(self, start: Offsets, end: Offsets) -> Plan:
        exist = await positions.existing(self._cluster, end.positions.keys())
        there = await self._settled_held(end, exist)
        ranges = stream_ranges(start, end, there, exist.ids, self._losses)
        return Plan(self._split(ranges), exist.ids)

    async def _selection(self, now_s: float) -> Selected:
        if self._selected is None or now_s - self._selected_at >= _SELECTION_AGE_S_MAX:
            self._selected = await positions.selected(self._cluster, self._options.selection)
            self._selected_at = now_s
        return self._selected

    async def _settled_latest(self, selected: Selected, known: Offsets) -> dict[TopicPartition, int]:
        """The latest offsets. One that is behind what was read already is asked for again: a new leader may
        not know yet how far the log is committed."""
        for _ in range(self._options.fetch_attempts - 1):
            found = await positions.latest(self._cluster, selected.partitions)
            if not _went_back(found, known, selected.ids):
                return found
            await self._attempts.rest()
        return await positions.latest(self._cluster, selected.partitions)

    async def _settled_held(self, end: Offsets, exist: Selected) -> dict[TopicPartition, Held]:
        """What there is of the partitions that exist."""
        for _ in range(self._options.fetch_attempts - 1):
            found = await positions.held(self._cluster, exist.partitions)
            ends = {partition: held.latest for partition, held in found.items()}
            if not _went_back(ends, end, exist.ids):
                return found
            await self._attempts.rest()
        return await positions.held(self._cluster, exist.partitions)

    def _split(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        return split_ranges(ranges, self._options.min_partitions, self._options.max_records_per_partition)


def _check_order(starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
    for partition, start in sorted(starts.items()):
        if start > ends[partition]:
            raise OptionRefused(
                "startingOffsets",
                f"{partition}: the query starts at offset {start}, after its end, {ends[partition]}; "
                "check the offsets or times, and whether the topic was created again",
            )


def _went_back(found: Mapping[TopicPartition, int], known: Offsets, ids: Mapping[str, UUID]) -> bool:
    return any(
        offset < known.positions.get(partition, 0) and not was_recreated(partition.topic, known.ids, ids)
        for partition, offset in found.items()
    )
