"""The entry point of the `headrace` command. It loads the command-line library only if there is need to."""

import sys

from headrace import __version__


def main() -> None:
    """Run the command that the process was started with."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"headrace {__version__}\n")
        return
    from headrace.cli.app import app

    app(prog_name="headrace")
