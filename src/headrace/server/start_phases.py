"""How long the steps of a start took: one line each in the log."""

import logging
from collections.abc import Callable
from typing import Final

logger: Final = logging.getLogger("headrace.server")


class StartPhases:
    """A stopwatch whose every stop is logged. `now_seconds` never goes back."""

    __slots__ = ("_lap", "_now_seconds", "_started")

    def __init__(self, now_seconds: Callable[[], float], started: float | None = None) -> None:
        self._now_seconds = now_seconds
        self._lap = now_seconds()
        self._started = self._lap if started is None else started

    @property
    def total_seconds(self) -> float:
        """Time since the start."""
        return self._now_seconds() - self._started

    def done(self, what: str, *details: object) -> None:
        """Say what has been done since the last step."""
        now = self._now_seconds()
        logger.info(f"{what} (%.3f s)", *details, now - self._lap)
        self._lap = now
