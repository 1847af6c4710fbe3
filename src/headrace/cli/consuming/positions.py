"""Turns places that were named on the command line into offsets of partitions."""

from collections.abc import Iterable, Mapping

from headrace.cli.consuming.places import Kind, Place
from headrace.client.cluster import Cluster
from headrace.client.errors import PositionOutOfRange
from headrace.client.offsets import EARLIEST, LATEST, NOT_FOUND, list_offsets
from headrace.errors import HeadraceError
from headrace.types import TopicPartition


class NoSuchPartition(HeadraceError):
    """A partition that a topic does not have."""


async def partitions_of(
    cluster: Cluster, topics: Iterable[str], wanted: Iterable[int] | None
) -> list[TopicPartition]:
    """The partitions of topics, or those of the numbers that are wanted."""
    found = []
    for name, topic in (await cluster.topics(topics)).items():
        for number in sorted(topic.partitions) if wanted is None else wanted:
            if number not in topic.partitions:
                raise NoSuchPartition(
                    f"topic {name!r} has no partition {number}; it has {len(topic.partitions)}, from 0 on"
                )
            found.append(TopicPartition(name, number))
    return found


async def offsets_at(
    cluster: Cluster, partitions: Iterable[TopicPartition], place: Place
) -> Mapping[TopicPartition, int]:
    """The offset of each partition at a place."""
    wanted = list(partitions)
    if place.kind is Kind.OFFSET:
        return dict.fromkeys(wanted, place.number)
    if place.kind is Kind.BEGINNING:
        return await _listed(cluster, wanted, EARLIEST)
    if place.kind is Kind.TIME:
        return await _at_time(cluster, wanted, place.number)
    ends = await _listed(cluster, wanted, LATEST)
    if place.kind is Kind.END:
        return ends
    begins = await _listed(cluster, wanted, EARLIEST)
    return {each: max(ends[each] - place.number, begins[each]) for each in wanted}


async def refuse_beyond(
    cluster: Cluster, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> None:
    """PositionOutOfRange for an offset beyond the end: nothing lies between the two, but not by chance."""
    for each, offset in positions.items():
        if offset > ends[each]:
            begins = await _listed(cluster, [each], EARLIEST)
            raise PositionOutOfRange(each, offset, begins[each], ends[each])


async def _at_time(
    cluster: Cluster, partitions: list[TopicPartition], time_ms: int
) -> Mapping[TopicPartition, int]:
    """The first offset of that time or later; the end, where all is earlier."""
    found = await _listed(cluster, partitions, time_ms)
    earlier = [each for each in partitions if found[each] == NOT_FOUND]
    return {**found, **await _listed(cluster, earlier, LATEST)}


async def _listed(cluster: Cluster, partitions: list[TopicPartition], at: int) -> dict[TopicPartition, int]:
    found = await list_offsets(cluster, dict.fromkeys(partitions, at))
    return {each: offset.offset for each, offset in found.items()}
