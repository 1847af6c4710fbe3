"""Commands of `headrace`, in this process where that makes no difference, with real pipes where it does."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from unittest import mock

from typer.testing import CliRunner

from headrace.cli.app import app

PATIENCE_SECONDS = 60.0


class Done(NamedTuple):
    """What came of a command."""

    status: int
    out: bytes
    err: str


class Console:
    """Runs commands against one cluster."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def run(self, *words: str, stdin: bytes = b"") -> Done:
        """Run a command to its end, whatever that is, with files for its input and output."""
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as sink:
            source.write(stdin)
            source.seek(0)
            source.flush()
            with (
                mock.patch("headrace.cli.producing.run.STANDARD_INPUT", source.fileno()),
                mock.patch("headrace.cli.consuming.run.STANDARD_OUTPUT", sink.fileno()),
            ):
                done = CliRunner().invoke(app, [*words, "--bootstrap-server", self.bootstrap])
            assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
            sink.seek(0)
            return Done(done.exit_code, done.stdout_bytes + sink.read(), done.stderr)

    def succeed(self, *words: str, stdin: bytes = b"") -> bytes:
        """Run a command that has to work, and say nothing on standard error; what it printed."""
        done = self.run(*words, stdin=stdin)
        assert (done.status, done.err) == (0, ""), done
        return done.out

    def fail(self, *words: str, stdin: bytes = b"", status: int = 1) -> str:
        """Run a command that has to fail with one line; the line."""
        done = self.run(*words, stdin=stdin)
        assert done.status == status, done
        assert done.err.startswith("headrace: "), done
        assert done.err.count("\n") == 1, done
        return done.err

    def run_by_shell(self, *words: str, closing: str) -> Done:
        """Run a command with a stream closed that commands usually have: `<&-` or `>&-`."""
        done = subprocess.run(
            ["sh", "-c", f'"$@" {closing}', "sh", *self._command(words)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr.decode())

    @contextmanager
    def started(self, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
        """A running command with pipes to it and from it; it is killed in the end if it still runs."""
        process = subprocess.Popen(
            self._command(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "headrace", *words, "--bootstrap-server", self.bootstrap]
