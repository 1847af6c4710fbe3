"""Where reading begins and ends, as options say it, before a cluster was asked what that means."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.spark import option_values as values
from headrace.spark.errors import OptionRefused, spell_partitions
from headrace.types import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2

_OFFSETS_EXAMPLE: Final = 'earliest, latest or offsets such as {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_EXAMPLE: Final = 'times in milliseconds such as {"topicA":{"0":1700000000000,"1":1700000000000}}'


class WithoutMatch(Enum):
    """What a start by time means where no record is that late."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same place in every partition: `EARLIEST` or `LATEST`."""

    offset: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for each partition; -1 is the latest, -2 the earliest."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimes:
    """The first record at or after a time, in milliseconds, for each partition."""

    option: str
    times: Mapping[TopicPartition, int]
    without_match: WithoutMatch


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after one time, in milliseconds, in every partition."""

    option: str
    time: int
    without_match: WithoutMatch


Place = Everywhere | AtOffsets | AtTimes | AtTime


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The names of the three options that say a place, in the order in which they count."""

    time: str
    times: str
    offsets: str


STARTING: Final = PlaceOptions("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING: Final = PlaceOptions("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")


def read_place(
    options: Mapping[str, str], names: PlaceOptions, default: Place, without_match: WithoutMatch
) -> Place:
    """The place that options (with names in lower case) ask for."""
    if (text := options.get(names.time.lower())) is not None:
        return AtTime(names.time, values.whole_number(names.time, text), without_match)
    if (text := options.get(names.times.lower())) is not None:
        times = values.numbers_by_partition(names.times, text, _TIMES_EXAMPLE)
        for time in times.values():
            values.whole_number(names.times, str(time))
        return AtTimes(names.times, times, without_match)
    if (text := options.get(names.offsets.lower())) is None:
        return default
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Everywhere(EARLIEST if word == "earliest" else LATEST)
    offsets = values.numbers_by_partition(names.offsets, text, _OFFSETS_EXAMPLE)
    for offset in offsets.values():
        values.whole_number(names.offsets, str(offset), low=EARLIEST)
    return AtOffsets(names.offsets, offsets)


def read_without_match(options: Mapping[str, str]) -> WithoutMatch:
    """What `startingOffsetsByTimestampStrategy` says."""
    name = "startingOffsetsByTimestampStrategy"
    text = options.get(name.lower(), "error")
    try:
        return WithoutMatch(text.strip().lower())
    except ValueError:
        raise OptionRefused(name, f"{text!r} is neither error nor latest") from None


def check_batch_places(start: Place, end: Place) -> None:
    """Refuse places between which there is nothing to read, whatever the cluster holds."""
    _refuse(start, LATEST, "a batch query cannot start at the latest offset: it would be empty")
    _refuse(end, EARLIEST, "a batch query cannot end at the earliest offset: it would be empty")
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        _check_pairs(start.option, end.option, start.offsets, end.offsets, "offset")
    elif isinstance(start, AtTimes) and isinstance(end, AtTimes):
        _check_pairs(start.option, end.option, start.times, end.times, "time")


def _refuse(place: Place, offset: int, reason: str) -> None:
    if isinstance(place, Everywhere) and place.offset == offset:
        raise OptionRefused("startingOffsets" if offset == LATEST else "endingOffsets", reason)
    if isinstance(place, AtOffsets):
        wrong = [partition for partition, given in place.offsets.items() if given == offset]
        if wrong:
            raise OptionRefused(place.option, f"{reason} (given as {offset} for {spell_partitions(wrong)})")


def _check_pairs(
    start_name: str,
    end_name: str,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    noun: str,
) -> None:
    if starts.keys() != ends.keys():
        odd = spell_partitions(starts.keys() ^ ends.keys())
        raise OptionRefused(start_name, f"it has to name the same partitions as {end_name!r}; not so: {odd}")
    for partition, start in starts.items():
        end = ends[partition]
        if start >= 0 and end >= 0 and start > end:
            raise OptionRefused(
                start_name,
                f"the {noun} to start at, {start}, is after that to end at, {end}, for {partition}",
            )
