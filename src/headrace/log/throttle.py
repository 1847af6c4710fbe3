"""Keeps a long job's input and output under a rate by sleeping now and then. Not for the event loop."""

from typing import Final

from headrace.ports import Pace

CHECK_INTERVAL_MS: Final = 300


class Throttle:
    """Counts units as they pass and sleeps off what came too early, a few times a second."""

    __slots__ = ("_count", "_pace", "_per_second", "_started_ms")

    def __init__(self, per_second: float, pace: Pace) -> None:
        if per_second <= 0:
            raise ValueError(f"a rate of {per_second} per second would stop the work for good")
        self._per_second = per_second
        self._pace = pace
        self._count = 0
        self._started_ms = pace.monotonic_ms()

    def passed(self, count: int) -> None:
        """Note `count` units more, and sleep if the interval's share is used up."""
        self._count += count
        elapsed_ms = self._pace.monotonic_ms() - self._started_ms
        if elapsed_ms <= CHECK_INTERVAL_MS or not self._count:
            return
        ahead_ms = round(self._count * 1000 / self._per_second - elapsed_ms)
        if ahead_ms > 0:
            self._pace.sleep_ms(ahead_ms)
        self._started_ms = self._pace.monotonic_ms()
        self._count = 0
