"""Prints results: tables where somebody looks at them, plain lines for programs, JSON for either."""

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from uuid import UUID


def is_terminal() -> bool:
    """Whether somebody looks at what is printed."""
    return sys.stdout.isatty()


def print_line(text: str) -> None:
    """One line of text."""
    sys.stdout.write(text + "\n")


def print_json(value: object) -> None:
    """One JSON value."""
    print_line(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for the terminal; columns that begin with `#` hold numbers."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name.removeprefix("#"), justify="right" if name.startswith("#") else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka spells it."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
