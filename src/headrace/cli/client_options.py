"""Options that all commands have which talk to a cluster, and what they add up to.

Nothing of the client is imported here: commands say `--help` without it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

import typer

BOOTSTRAP_VARIABLE: Final = "HEADRACE_BOOTSTRAP_SERVERS"
BOOTSTRAP_DEFAULT: Final = "localhost:9092"


class OutputFormat(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Access:
    """How a command finds its cluster: `properties` are Kafka's, and go before those of the file."""

    bootstrap_server: str | None = None
    command_config: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        help=f"Brokers to find the cluster by.  [default: ${BOOTSTRAP_VARIABLE} or {BOOTSTRAP_DEFAULT}]",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    str | None,
    typer.Option("--command-config", metavar="FILE", help="A properties file for Kafka clients."),
]
Output = Annotated[OutputFormat, typer.Option("--format", help="How to print the result.")]


def key_values(pairs: list[str] | None, option: str) -> dict[str, str]:
    """What was given as KEY=VALUE, the last of equal keys counting."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=option)
        found[key.strip()] = value
    return found
