"""The command line answers before anything else exists."""

import subprocess
import sys

from typer.testing import CliRunner

from headrace import __version__
from headrace.cli.app import app


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"headrace {__version__}\n"


def test_the_version_is_told_without_loading_the_command_line_library() -> None:
    script = "import sys; sys.argv = ['headrace', '--version']; from headrace.cli.main import main; main()\n"
    script += "print(sorted({'typer', 'rich', 'crc32c', 'cramjam'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"headrace {__version__}\n[]\n"


def test_help_of_a_noun_loads_no_room_of_the_broker() -> None:
    script = "import sys; from headrace.cli.app import app\n"
    script += (
        "print(sorted(name for name in sys.modules if name.startswith('headrace.') and '.cli' not in name))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
