"""Where reading begins and ends, as said on the command line: beginning, end, offset:N, last:N, time:WHEN."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

INT64_MAX: Final = 2**63 - 1
SPELLINGS: Final = "beginning, end, offset:N, last:N or time:WHEN"


class Kind(Enum):
    """The ways to say where."""

    BEGINNING = "beginning"
    END = "end"
    OFFSET = "offset"
    LAST = "last"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in every partition; `number` is an offset, a count or a time in milliseconds."""

    kind: Kind
    number: int = 0


def parse_place(text: str) -> Place:
    """The place that is meant; ValueError says what is wrong."""
    name, colon, rest = text.partition(":")
    if not colon and name in (Kind.BEGINNING.value, Kind.END.value):
        return Place(Kind(name))
    if colon and name in (Kind.OFFSET.value, Kind.LAST.value):
        return Place(Kind(name), _count(rest))
    if colon and name == Kind.TIME.value:
        return Place(Kind.TIME, _time_ms(rest))
    raise ValueError(f"{text!r} is not a place: say {SPELLINGS}")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= INT64_MAX:
        return int(text)
    raise ValueError(f"{text!r} is not a whole number from 0 on")


def _time_ms(text: str) -> int:
    """A time as ISO 8601 has it, of this machine's zone if it names none; or milliseconds since 1970."""
    if text.isascii() and text.isdigit():
        return _count(text)
    try:
        when = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is not a time: say it as 2026-01-31T08:00:00+01:00, 2026-01-31 (this machine's zone), "
            "or in milliseconds since 1970"
        ) from None
    if when < 0:
        raise ValueError(f"{text!r} is before 1970, where times begin")
    return round(when * 1000)
