"""Asks a cluster what is selected, where it begins and ends, and which offsets times and names stand for."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused, ConnectionLost, RequestTimedOut, UnknownTopics
from headrace.client.metadata import TopicMetadata
from headrace.client.offsets import list_offsets
from headrace.spark.errors import OptionRefused, spell_partitions
from headrace.spark.places import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    Everywhere,
    Place,
    WithoutMatch,
)
from headrace.spark.planning import Held
from headrace.spark.selection import Assign, Selection, SubscribePattern
from headrace.types import TopicPartition

T = TypeVar("T")
_NOT_FOUND: Final = -1


@dataclass(frozen=True, slots=True)
class Selected:
    """The partitions that a query reads at one moment, and the ids of their topics."""

    partitions: frozenset[TopicPartition]
    ids: Mapping[str, UUID]


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often something is tried that may fail in passing, and how long it rests in between."""

    count: int
    interval_ms: int

    async def of(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of the first attempt that works, or the failure of the last one."""
        for _ in range(self.count - 1):
            try:
                return await call()
            except (ConnectionLost, RequestTimedOut):
                pass
            except BrokerRefused as refused:
                if not refused.is_retriable:
                    raise
            await self.rest()
        return await call()

    async def rest(self) -> None:
        """Wait between two attempts."""
        await asyncio.sleep(self.interval_ms / 1000)


async def selected(cluster: Cluster, selection: Selection, *, fresh: bool = True) -> Selected:
    """What a selection stands for now; UnknownTopics if a topic that is named does not exist."""
    if isinstance(selection, SubscribePattern):
        known = await cluster.topics(None)
        names = selection.matching(name for name, topic in known.items() if not topic.is_internal)
        return _all_partitions(known[name] for name in names)
    if fresh:
        for name in selection.topics:
            cluster.stale(name)
    topics = await cluster.topics(selection.topics)
    every = _all_partitions(topics.values())
    if not isinstance(selection, Assign):
        return every
    missing = selection.partitions - every.partitions
    if missing:
        counts = ", ".join(f"{name!r} has {len(topic.partitions)}" for name, topic in sorted(topics.items()))
        raise OptionRefused("assign", f"there is no {spell_partitions(missing)} (partitions: {counts})")
    return Selected(selection.partitions, every.ids)


async def existing(cluster: Cluster, partitions: Collection[TopicPartition]) -> Selected:
    """Those of the partitions that exist."""
    names = {partition.topic for partition in partitions}
    while names:
        try:
            every = _all_partitions((await cluster.topics(names)).values())
        except UnknownTopics as unknown:
            names.difference_update(unknown.names)
        else:
            return Selected(every.partitions.intersection(partitions), every.ids)
    return Selected(frozenset(), {})


async def earliest(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The first offset of each."""
    return await _offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))


async def latest(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset after the last one of each, as far as the isolation level lets one see."""
    return await _offsets_at(cluster, dict.fromkeys(partitions, LATEST))


async def held(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Held]:
    """What each has."""
    begin, end = await asyncio.gather(earliest(cluster, partitions), latest(cluster, partitions))
    return {partition: Held(begin[partition], end[partition]) for partition in partitions}


async def resolve(
    cluster: Cluster, place: Place, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offsets that a place stands for in each of the partitions."""
    match place:
        case Everywhere(offset):
            return await _offsets_at(cluster, dict.fromkeys(partitions, offset))
        case AtOffsets(option, offsets):
            _check_complete(option, offsets.keys(), partitions)
            return await _with_named(cluster, dict(offsets))
        case AtTimes(option, times, without_match):
            _check_complete(option, times.keys(), partitions)
            return await _at_times(cluster, option, dict(times), without_match)
        case AtTime(option, time, without_match):
            return await _at_times(cluster, option, dict.fromkeys(partitions, time), without_match)


async def _at_times(
    cluster: Cluster, option: str, times: Mapping[TopicPartition, int], without_match: WithoutMatch
) -> dict[TopicPartition, int]:
    found = await _offsets_at(cluster, times)
    late = [partition for partition, offset in found.items() if offset == _NOT_FOUND]
    if late and without_match is WithoutMatch.ERROR:
        raise OptionRefused(
            option,
            f"{spell_partitions(late)}: there is no record at or after the time {times[min(late)]}; to start "
            "at the end there, set startingOffsetsByTimestampStrategy to latest",
        )
    return found | await _offsets_at(cluster, dict.fromkeys(late, LATEST))


async def _with_named(cluster: Cluster, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Offsets with those filled in that are given as earliest or latest."""
    named = {partition: offset for partition, offset in offsets.items() if offset in (EARLIEST, LATEST)}
    return offsets | await _offsets_at(cluster, named)


async def _offsets_at(cluster: Cluster, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    if not places:
        return {}
    found = await list_offsets(cluster, places)
    return {partition: answer.offset for partition, answer in found.items()}


def _check_complete(
    option: str, given: Collection[TopicPartition], partitions: frozenset[TopicPartition]
) -> None:
    missing, unknown = partitions - set(given), set(given) - partitions
    if missing:
        raise OptionRefused(
            option, f"every partition that is read has to be named; {spell_partitions(missing)} is missing"
        )
    if unknown:
        raise OptionRefused(option, f"{spell_partitions(unknown)} is named, but is not among what is read")


def _all_partitions(topics: Iterable[TopicMetadata]) -> Selected:
    found = list(topics)
    return Selected(
        frozenset(TopicPartition(topic.name, number) for topic in found for number in topic.partitions),
        {topic.name: topic.topic_id for topic in found if topic.has_id},
    )
