"""What stands between key and value in lines of text."""

from typing import Annotated

import typer

KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        metavar="TEXT",
        help=r"What stands between key and value in a line, \t for a tab; without it lines are values.",
        show_default=False,
    ),
]
_ESCAPES = {r"\t": "\t", r"\0": "\0", r"\\": "\\"}


def unescaped(separator: str | None) -> str | None:
    """The separator that is meant; it may be spelt with a backslash, which shells hand on as it is."""
    if separator is None:
        return None
    if not separator or "\n" in separator:
        raise typer.BadParameter("it must be some text without a line's end", param_hint="--key-separator")
    return _ESCAPES.get(separator, separator)
