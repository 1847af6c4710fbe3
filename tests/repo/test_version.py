"""The command line answers before anything else exists."""

from typer.testing import CliRunner

from headrace import __version__
from headrace.cli.main import app


def test_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"headrace {__version__}\n"
