"""The one shape of everything a dump prints: a line that has a text form and a JSON form.

Text is what Kafka's dump tool prints, character for character, since operators search it with the patterns
they have; JSON is documented in docs/log-dump.md. Nothing here reads files.
"""

from collections.abc import Iterator
from typing import Protocol, TypeAlias

from headrace.errors import HeadraceError

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Fields: TypeAlias = dict[str, Json]


class Line(Protocol):
    """One thing found in a file."""

    def text(self) -> str:
        """The line as Kafka's tool prints it, without the line break."""

    def fields(self) -> Fields:
        """The same as a JSON object; its `kind` says which keys to expect."""


Lines: TypeAlias = Iterator[Line]


class DumpError(HeadraceError):
    """A file that cannot be dumped any further: which, where and why."""


def java_boolean(value: bool) -> str:
    return "true" if value else "false"


def java_optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
