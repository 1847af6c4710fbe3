"""The values of options as Spark spells them: numbers, booleans, durations, JSON by topic and partition."""

import json
import re
from collections.abc import Mapping
from typing import Final

from headrace.spark.errors import OptionRefused
from headrace.types import TopicPartition

_DURATION: Final = re.compile(r"(-?\d+)\s*([a-z]*)")
_UNIT_MICROSECONDS: Final = {
    "us": 1,
    "": 1_000,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
LONG_MAX: Final = 2**63 - 1
_INT_MAX: Final = 2**31 - 1


def boolean(name: str, text: str) -> bool:
    """`true` or `false`, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise OptionRefused(name, f"{text!r} is neither true nor false")
    return word == "true"


def whole_number(name: str, text: str, *, low: int = 0, high: int = LONG_MAX) -> int:
    """A number within bounds."""
    try:
        number = int(text.strip())
    except ValueError:
        raise OptionRefused(name, f"{text!r} is not a whole number") from None
    if number < low:
        raise OptionRefused(name, f"{number} is too small; the least is {low}")
    if number > high:
        raise OptionRefused(name, f"{number} is too large; the most is {high}")
    return number


def small_number(name: str, text: str, *, low: int = 0) -> int:
    """A number that fits 32 bits."""
    return whole_number(name, text, low=low, high=_INT_MAX)


def duration_ms(name: str, text: str) -> int:
    """A duration such as `500ms`, `30s`, `15m`, `2h`, `1d`; without a unit in milliseconds."""
    found = _DURATION.fullmatch(text.strip().lower())
    unit = _UNIT_MICROSECONDS.get(found[2]) if found else None
    if found is None or unit is None:
        units = ", ".join(unit for unit in _UNIT_MICROSECONDS if unit)
        raise OptionRefused(name, f"{text!r} is not a duration; write a number and one of {units}")
    if int(found[1]) < 0:
        raise OptionRefused(name, f"{text!r} is a negative duration")
    return int(found[1]) * unit // 1_000


def partitions(name: str, text: str) -> frozenset[TopicPartition]:
    """`{"topicA":[0,1],"topicB":[2]}`"""
    wanted = 'expected partitions by topic such as {"topicA":[0,1],"topicB":[0]}'
    found: set[TopicPartition] = set()
    for topic, numbers in _object(name, text, wanted).items():
        if not isinstance(numbers, list) or not all(_is_partition(number) for number in numbers):
            raise OptionRefused(name, f"{wanted}, got {text}")
        found.update(TopicPartition(topic, number) for number in numbers)
    if not found:
        raise OptionRefused(name, f"{wanted}, got {text}, which names no partition")
    return frozenset(found)


def numbers_by_partition(name: str, text: str, example: str) -> dict[TopicPartition, int]:
    """`{"topicA":{"0":23,"1":-1}}`: a number for each partition."""
    wanted = f"expected {example}"
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _object(name, text, wanted).items():
        if not isinstance(numbers, Mapping):
            raise OptionRefused(name, f"{wanted}, got {text}")
        for partition, number in numbers.items():
            if not partition.isdecimal() or not _is_whole(number):
                raise OptionRefused(name, f"{wanted}, got {text}")
            found[TopicPartition(topic, int(partition))] = number
    if not found:
        raise OptionRefused(name, f"{wanted}, got {text}, which names no partition")
    return found


def _object(name: str, text: str, wanted: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except ValueError as problem:
        raise OptionRefused(name, f"{wanted}, got {text} ({problem})") from None
    if not isinstance(parsed, dict):
        raise OptionRefused(name, f"{wanted}, got {text}")
    return parsed


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and abs(number) <= LONG_MAX


def _is_partition(number: object) -> bool:
    return _is_whole(number) and isinstance(number, int) and 0 <= number <= _INT_MAX
