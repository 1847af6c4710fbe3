"""The node's own log: one readable line for each thing that happens, in the form that Kafka's has."""

import logging
import sys
from typing import TextIO

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class LineFormatter(logging.Formatter):
    """`[2026-01-31 12:00:00,123] INFO what happened (headrace.net)`."""

    default_msec_format = "%s,%03d"

    def __init__(self) -> None:
        super().__init__("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 the name is given
        """The line. What clients sent may be quoted in it, and must not pass for other lines."""
        line = super().formatMessage(record)
        return line if line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def start_logging(level: str, stream: TextIO | None = None) -> None:
    """Have everything that Headrace logs written to standard output, or to `stream`."""
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(LineFormatter())
    # Nothing here asks who logged from where, and finding out takes longer than writing the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("headrace").setLevel(_LEVELS[level])
