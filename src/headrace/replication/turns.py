"""Work on thousands of partitions, a few milliseconds of it per turn of the loop.

A step takes what the file system takes, so the clock decides; the bound on steps is for clocks that stand
still."""

import asyncio
from collections.abc import Callable
from typing import Final

from headrace.ports import Clock

TURN_MS: Final = 2
STEPS_PER_TURN: Final = 64


class Turns:
    """Says whether this turn of the loop has room for one more step; what had to wait is done in the turns
    that follow. `has_more` tells whether anything waits, and `step` does one piece of it."""

    __slots__ = ("_begun_ms", "_clock", "_has_more", "_step", "_steps")

    def __init__(self, clock: Clock, has_more: Callable[[], bool], step: Callable[[], object]) -> None:
        self._clock = clock
        self._has_more = has_more
        self._step = step
        self._steps = 0
        self._begun_ms = 0

    def take(self) -> bool:
        """Whether a step may be done now. If not, there will be another turn."""
        if self._steps == 0:
            self._begun_ms = self._clock.monotonic_ms()
            asyncio.get_running_loop().call_soon(self._begin)
        elif self._steps >= STEPS_PER_TURN or self._clock.monotonic_ms() - self._begun_ms >= TURN_MS:
            return False
        self._steps += 1
        return True

    def _begin(self) -> None:
        self._steps = 0
        while self._has_more() and self.take():
            self._step()
