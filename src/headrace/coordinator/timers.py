"""Timers by key for thousands of members whose heartbeats keep putting them off.

Putting off costs no more than setting a number: an entry of the queue that comes up too early is queued
again. Time is the clock's; the event loop only wakes the queue."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from headrace.ports import Clock

LONGEST_SLEEP_SECONDS: Final = 3600.0


class Timer:
    """Something to be done at a time."""

    __slots__ = ("action", "deadline_ms", "entry", "queued_ms")

    def __init__(self, deadline_ms: int, action: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.action: Callable[[], None] | None = action
        self.queued_ms = deadline_ms
        self.entry = 0

    def cancel(self) -> None:
        """Never do it."""
        self.action = None


class TimerQueue:
    """All timers of a runtime."""

    __slots__ = ("_clock", "_heap", "_number", "_wake_up", "_wakes_at_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0
        self._wake_up: asyncio.TimerHandle | None = None
        self._wakes_at_ms = 0

    def start(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """A timer that fires after a while."""
        timer = Timer(self._clock.monotonic_ms() + max(delay_ms, 0), action)
        self._push(timer)
        return timer

    def restart(self, timer: Timer, delay_ms: int, action: Callable[[], None]) -> None:
        """Let a timer fire after a while from now, instead of when it would have."""
        timer.action = action
        timer.deadline_ms = deadline_ms = self._clock.monotonic_ms() + max(delay_ms, 0)
        if deadline_ms < timer.queued_ms:
            self._push(timer)

    def fire_due(self) -> None:
        """Do everything whose time has come."""
        now_ms, heap = self._clock.monotonic_ms(), self._heap
        try:
            while heap and heap[0][0] <= now_ms:
                _, entry, timer = heappop(heap)
                if timer.action is None or entry != timer.entry:
                    continue
                if timer.deadline_ms > now_ms:
                    self._push(timer)
                    continue
                action, timer.action = timer.action, None
                action()
        finally:
            # Whatever one of them did, the others fire when they should.
            self._arm()

    def close(self) -> None:
        """Fire nothing any more."""
        self._heap.clear()
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None

    def _push(self, timer: Timer) -> None:
        timer.queued_ms = timer.deadline_ms
        self._number += 1
        timer.entry = self._number
        heappush(self._heap, (timer.deadline_ms, self._number, timer))
        if self._wake_up is None or timer.deadline_ms < self._wakes_at_ms:
            self._arm()

    def _arm(self) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        if not self._heap:
            return
        self._wakes_at_ms = self._heap[0][0]
        # The clock counts whole milliseconds, so a wake-up just in time would find nothing due.
        seconds = (self._wakes_at_ms - self._clock.monotonic_ms() + 1) / 1000
        seconds = min(max(seconds, 0.001), LONGEST_SLEEP_SECONDS)
        self._wake_up = asyncio.get_running_loop().call_later(seconds, self._on_wake_up)

    def _on_wake_up(self) -> None:
        self._wake_up = None
        self.fire_due()
