"""`headrace up`: a node on this machine, ready in a moment."""

from typing import Annotated

import typer


def up(
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="DIR", help="Where data is kept; the platform's place by default."),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port for clients.")] = 9092,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            help="The port that Prometheus reads metrics from.  [default: 9464]",
            show_default=False,
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Produce a record and consume it first.")] = False,
    scratch: Annotated[
        bool, typer.Option("--scratch", help="Keep data in a directory that is removed at the end.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the node's log.")] = False,
) -> None:
    """Run a node for this machine until Ctrl-C.

    It formats its data directory on first use, and prints where it is and what to type next.
    """
    from headrace.cli.start_up import UpCommand, start_up

    if data is not None and scratch:
        raise typer.BadParameter("--data and --scratch exclude each other")
    start_up(UpCommand(data, port, metrics_port, demo, scratch, verbose))
