"""The `headrace` command: its nouns are modules beside this one."""

from typing import Annotated

import typer

from headrace import __version__
from headrace.cli.log import log_app

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
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


def main() -> None:
    """The console script's entry point."""
    app()
