"""Which topics and partitions a query reads."""

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.spark import option_values as values
from headrace.spark.errors import OptionRefused
from headrace.types import TopicPartition

_NAMES: Final = ("subscribe", "subscribePattern", "assign")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_NAMED_GROUP: Final = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics whose name has a match in it, as Spark's own source takes patterns.

    Internal topics are never among them."""

    pattern: str

    def matching(self, names: Iterable[str]) -> list[str]:
        """Those that match, in order."""
        compiled = compile_pattern(self.pattern)
        return sorted(name for name in names if compiled.search(name))


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others."""

    partitions: frozenset[TopicPartition]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({partition.topic for partition in self.partitions}))


Selection = Subscribe | SubscribePattern | Assign


def read_selection(options: Mapping[str, str]) -> Selection:
    """What options (with names in lower case) select: exactly one way has to be given."""
    given = [name for name in _NAMES if name.lower() in options]
    choices = ", ".join(repr(name) for name in _NAMES)
    if not given:
        raise OptionRefused("subscribe", f"say what to read by one of {choices}")
    if len(given) > 1:
        raise OptionRefused(given[1], f"{given[0]!r} is given as well; only one of {choices} can be")
    text = options[given[0].lower()]
    if given[0] == "assign":
        return Assign(values.partitions("assign", text))
    if given[0] == "subscribePattern":
        if not text.strip():
            raise OptionRefused("subscribePattern", "the pattern is empty")
        compile_pattern(text.strip())
        return SubscribePattern(text.strip())
    topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not topics:
        raise OptionRefused("subscribe", f"{text!r} names no topic; several have commas between them")
    return Subscribe(topics)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern in Java's syntax, which is what Spark's users write, as one of Python's.

    What the two write alike is taken as it is; what would mean something else here is refused.
    """
    text = _QUOTED.sub(lambda found: re.escape(found[1]), pattern)
    text = _NAMED_GROUP.sub(r"(?P<\1>", text)
    with warnings.catch_warnings():
        # Python warns of sets within sets and of set operations, which Java has and Python has not.
        warnings.simplefilter("error")
        try:
            return re.compile(text, re.ASCII)
        except (re.error, FutureWarning, DeprecationWarning) as problem:
            raise OptionRefused(
                "subscribePattern",
                f"{pattern!r} is not a regular expression that can be used here: {problem}",
            ) from None
