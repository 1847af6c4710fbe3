"""From offsets to ranges that can be read, checked against what a cluster holds. Nobody is asked here."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from headrace.spark.errors import spell_partitions
from headrace.spark.losses import Losses, was_recreated
from headrace.spark.offsets import Offsets
from headrace.spark.ranges import OffsetRange
from headrace.types import TopicPartition


class Held(NamedTuple):
    """The offsets that a partition has: from `earliest` up to, not including, `latest`."""

    earliest: int
    latest: int


def readable_part(wanted: OffsetRange, held: Held, losses: Losses) -> OffsetRange:
    """What can be read of a range; a loss is reported if that is not all of it."""
    partition, start, end = wanted.partition, wanted.start, wanted.end
    if end < start:
        losses.report(f"{partition}: the end has gone back from offset {start} to {end}")
        return OffsetRange(partition, end, end)
    if start < held.earliest:
        losses.report(
            f"{partition}: offsets {start} to {min(held.earliest, end)} have been deleted; the partition "
            f"holds offsets {held.earliest} to {held.latest}"
        )
        start = min(held.earliest, end)
    if end > held.latest:
        losses.report(
            f"{partition}: offsets up to {end} are wanted, but the partition ends at {held.latest} (it holds "
            f"offsets from {held.earliest})"
        )
        end = max(held.latest, start)
    return OffsetRange(partition, start, end)


def stream_ranges(
    start: Offsets,
    end: Offsets,
    held: Mapping[TopicPartition, Held],
    ids: Mapping[str, UUID],
    losses: Losses,
) -> list[OffsetRange]:
    """The ranges between two offsets of a stream; `held` and `ids` are what the cluster says now.

    A partition that is new at the end is read from its beginning.
    """
    report_gone(start, end, losses)
    return [
        found
        for partition in sorted(end.positions)
        if (found := _stream_range(partition, start, end, held, ids, losses)) is not None
    ]


def report_gone(start: Offsets, end: Offsets, losses: Losses) -> None:
    """Report the partitions that were read so far and do not exist any more."""
    gone = start.positions.keys() - end.positions.keys()
    if gone:
        losses.report(f"{spell_partitions(gone)}: no longer exists")


def starts_of(
    start: Offsets, end: Offsets, earliest: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where reading towards `end` begins; new partitions and recreated topics are read from their start."""
    found: dict[TopicPartition, int] = {}
    for partition in end.positions:
        begin = _known_start(partition, start, end)
        if begin is None:
            begin = earliest.get(partition)
        if begin is not None:
            found[partition] = begin
    return found


def new_partitions(start: Offsets, end: Offsets) -> set[TopicPartition]:
    """The partitions that have no place in `start`."""
    return {partition for partition in end.positions if _known_start(partition, start, end) is None}


def _known_start(partition: TopicPartition, start: Offsets, end: Offsets) -> int | None:
    if was_recreated(partition.topic, start.ids, end.ids):
        return None
    return start.positions.get(partition)


def _stream_range(
    partition: TopicPartition,
    start: Offsets,
    end: Offsets,
    held: Mapping[TopicPartition, Held],
    ids: Mapping[str, UUID],
    losses: Losses,
) -> OffsetRange | None:
    now = held.get(partition)
    if now is None:
        losses.report(f"{partition}: no longer exists")
        return None
    if was_recreated(partition.topic, end.ids, ids):
        losses.report_recreated(partition.topic, end.ids[partition.topic], ids[partition.topic])
        return None
    begin = _known_start(partition, start, end)
    if begin is None:
        begin = min(now.earliest, end.positions[partition])
        if begin > 0:
            losses.report(f"{partition}: new, but it begins at offset {begin} instead of 0")
    return readable_part(OffsetRange(partition, begin, end.positions[partition]), now, losses)
