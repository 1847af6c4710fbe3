"""Reads simple command lines without the command-line library, which takes a while to load.

Whatever is not plain (a request for help, an unknown option, a missing value) is not judged here: None is
returned, and the library then says what is wrong."""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class PlainOptions(NamedTuple):
    """Arguments without a dash, options with their values in the order given, and flags."""

    arguments: list[str]
    values: list[tuple[str, str]]
    flags: set[str]

    def last(self, name: str) -> str | None:
        """The value of an option that counts: the last one given."""
        return next((value for option, value in reversed(self.values) if option == name), None)


def read_plain_options(
    words: Sequence[str], valued: Collection[str], flags: Collection[str] = ()
) -> PlainOptions | None:
    """The words of a command line, given which options have a value and which stand alone."""
    read = PlainOptions([], [], set())
    remaining = iter(words)
    for word in remaining:
        name, separator, value = word.partition("=")
        if not word.startswith("-"):
            read.arguments.append(word)
        elif word in flags:
            read.flags.add(word)
        elif name in valued:
            given = value if separator else next(remaining, None)
            if given is None:
                return None
            read.values.append((name, given))
        else:
            return None
    return read
