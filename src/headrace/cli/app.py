"""The commands of `headrace`: its nouns are modules beside this one.

A noun's module imports the command-line library and little else; its commands import what they need when
they are run, so that `headrace --help` stays quick however many nouns there are.
"""

from typing import Annotated

import typer

from headrace import __version__
from headrace.cli.consume import consume
from headrace.cli.demo import demo
from headrace.cli.log import log_app
from headrace.cli.produce import produce
from headrace.cli.server import server
from headrace.cli.storage import storage_app
from headrace.cli.topic import topic_app
from headrace.cli.up import up

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("up")(up)
app.command("server")(server)
app.command("demo")(demo)
app.add_typer(topic_app, name="topic")
app.command("produce")(produce)
app.command("consume")(consume)
app.add_typer(storage_app, name="storage")
app.add_typer(log_app, name="log")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Event streaming that speaks Apache Kafka's protocol and keeps Apache Kafka's files."""
