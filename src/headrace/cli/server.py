"""`headrace server`: a node with the configuration of a properties file, as Kafka's own script starts one."""

from typing import Annotated

import typer


def server(
    properties: Annotated[
        str, typer.Argument(metavar="SERVER.PROPERTIES", help="The configuration, in Kafka's format.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--override", metavar="KEY=VALUE", help="A key that goes before the file's; may be repeated."
        ),
    ] = None,
) -> None:
    """Run a node until it is stopped (Ctrl-C or SIGTERM).

    Its directories must have been formatted with `headrace storage format`. The exit code is 1 if the node
    could not start or had to give up.
    """
    from headrace.cli.start_server import ServerCommand, start_server

    start_server(ServerCommand(properties, tuple(overrides or ())))
