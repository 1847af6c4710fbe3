"""Starting a node from a properties file: what `headrace server` does once its command line is read."""

import os
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from headrace.cli.plain_options import read_plain_options

OVERRIDE: Final = "--override"
REFUSED: Final = 1


class ServerCommand(NamedTuple):
    """A properties file, and what goes before it."""

    properties: str
    overrides: tuple[str, ...] = ()


def plain_server_command(words: Sequence[str]) -> ServerCommand | None:
    """The command in the words behind `headrace server`; None if they need the command-line library."""
    options = read_plain_options(words, (OVERRIDE,))
    if options is None or len(options.arguments) != 1:
        return None
    return ServerCommand(options.arguments[0], tuple(value for _, value in options.values))


def start_server(command: ServerCommand) -> NoReturn:
    """Run a node until it is stopped, and end the process; a refusal is one line and exit code 1."""
    prepare_process()
    from headrace.config.server_properties import load_server_properties
    from headrace.errors import HeadraceError
    from headrace.server.lifecycle import run_node
    from headrace.system.disk import RealDisk

    try:
        config = load_server_properties(
            os.path.abspath(command.properties), command.overrides, RealDisk(), os.environ
        )
        status = run_node(config, properties_path=command.properties, environment=os.environ)
    except HeadraceError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{command.properties} can't be read: {error.strerror}")
    sys.exit(status)


def prepare_process() -> None:
    """What makes the start of a node quick; to be called before its parts are imported."""
    import gc

    # What is made during the start stays: the collector would look through it in vain, again and again.
    gc.disable()


def refuse(reason: str) -> NoReturn:
    """Say why a node does not start, and end the process."""
    sys.stdout.flush()
    sys.stderr.write(f"headrace: {reason}\n")
    sys.exit(REFUSED)
