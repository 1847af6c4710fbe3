"""`headrace consume`: records of topics to standard output."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.client_options import (
    Access,
    BootstrapServer,
    CommandConfig,
    Output,
    OutputFormat,
    key_values,
)
from headrace.cli.separators import KeySeparator, unescaped

if TYPE_CHECKING:
    from headrace.cli.consuming.places import Place


class Isolation(StrEnum):
    """Which records of transactions are read."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


def consume(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", help="One or more topics.")],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Where to begin: beginning, end, offset:N, last:N or time:WHEN (2026-01-31T08:00:00+01:00, "
            "or milliseconds).  [default: end, or beginning with --until]",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="PLACE",
            help="Where to stop: end (as it is now), offset:N or time:WHEN.  [default: never]",
            show_default=False,
        ),
    ] = None,
    count_max: Annotated[
        int | None, typer.Option("--max", "-n", min=0, metavar="N", help="Stop after so many records.")
    ] = None,
    output: Output = OutputFormat.TEXT,
    key_separator: KeySeparator = None,
    isolation: Annotated[
        Isolation | None,
        typer.Option(
            "--isolation",
            help="Whether records of open and aborted transactions are read.  [default: read_uncommitted]",
            show_default=False,
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--config", "--property", metavar="KEY=VALUE", help="A key of Kafka's consumer; may be repeated."
        ),
    ] = None,
) -> None:
    """Print records as they come, until Ctrl-C or as far as --until and --max say.

    Text has a line for each value, with the key before it if there is a --key-separator; JSON has an object
    for each record with all there is. No consumer group is joined, and nothing is committed.
    """
    if key_separator is not None and output is OutputFormat.JSON:
        raise typer.BadParameter("--key-separator is for text; with --format json the key is a field")
    separator = unescaped(key_separator)
    settings = key_values(properties, "--config")
    if isolation is not None:
        settings["isolation.level"] = isolation.value
    begin, end = _places(start, until)
    from headrace.cli.client_session import require_arrow, run_on_cluster

    require_arrow("consume")
    from headrace.cli.consuming.run import Consume

    wish = Consume(
        topics=tuple(dict.fromkeys(topics)),
        partitions=None if partitions is None else tuple(dict.fromkeys(partitions)),
        start=begin,
        until=end,
        count_max=count_max,
        is_json=output is OutputFormat.JSON,
        key_separator=separator,
    )
    run_on_cluster(Access(bootstrap_server, command_config, settings), wish)


def _places(start: str | None, until: str | None) -> "tuple[Place, Place | None]":
    from headrace.cli.consuming.places import Kind

    begin = _place(start, "--from") if start is not None else None
    end = _place(until, "--until") if until is not None else None
    if end is not None and end.kind in (Kind.BEGINNING, Kind.LAST):
        raise typer.BadParameter("say end, offset:N or time:WHEN", param_hint="--until")
    return begin or _place("end" if end is None else "beginning", "--from"), end


def _place(text: str, option: str) -> "Place":
    from headrace.cli.consuming.places import parse_place

    try:
        return parse_place(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
