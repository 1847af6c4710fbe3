"""The entry point of the `headrace` command. It loads the command-line library only if there is need to."""

import sys

from headrace import __version__


def main() -> None:
    """Run the command that the process was started with."""
    words = sys.argv[1:]
    if words == ["--version"]:
        sys.stdout.write(f"headrace {__version__}\n")
        return
    if words[:1] == ["server"]:
        from headrace.cli.start_server import plain_server_command, start_server

        command = plain_server_command(words[1:])
        if command is not None:
            start_server(command)
    if words[:1] == ["up"]:
        from headrace.cli.start_up import plain_up_command, start_up

        wanted = plain_up_command(words[1:])
        if wanted is not None:
            start_up(wanted)
    from headrace.cli.app import app

    app(prog_name="headrace")
