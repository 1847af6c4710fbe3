"""Closing connections without traffic, with one coarse timer for all of them.

Time is counted in ticks. A connection notes the tick of its last traffic and nothing more; it is looked at
when it would be due at the earliest, and put off if it had traffic since."""

import logging
from typing import Final, Protocol

TICKS_PER_IDLE_TIME: Final = 16
TICK_MS_MAX: Final = 1000


class Tracked(Protocol):
    """A connection, as far as idleness is concerned."""

    active_tick: int
    due_tick: int
    closed: bool

    def close(self, reason: str, level: int = ...) -> None:
        """End the connection."""


class IdleWheel:
    """Connections by the tick in which they have to be looked at. A negative `idle_ms` keeps all open."""

    __slots__ = ("_due", "_idle_ms", "_idle_ticks", "_started_ms", "tick", "tick_ms")

    def __init__(self, idle_ms: int, now_ms: int) -> None:
        self._idle_ms = idle_ms
        self.tick_ms = (
            max(1, min(TICK_MS_MAX, idle_ms // TICKS_PER_IDLE_TIME)) if idle_ms >= 0 else TICK_MS_MAX
        )
        # One tick more than fits, because the tick of the last traffic may have been almost over.
        self._idle_ticks = max(0, idle_ms) // self.tick_ms + 1
        self._started_ms = now_ms
        self._due: dict[int, set[Tracked]] = {}
        self.tick = 0

    def add(self, connection: Tracked) -> None:
        """Watch a connection from now on."""
        if self._idle_ms >= 0:
            connection.due_tick = connection.active_tick + self._idle_ticks
            self._due.setdefault(connection.due_tick, set()).add(connection)

    def remove(self, connection: Tracked) -> None:
        """Watch a connection no more."""
        group = self._due.get(connection.due_tick)
        if group is not None:
            group.discard(connection)
            if not group:
                del self._due[connection.due_tick]

    def advance(self, now_ms: int) -> None:
        """Let time pass, and close what was idle for too long."""
        self.tick = max(self.tick, (now_ms - self._started_ms) // self.tick_ms)
        for due in [due for due in self._due if due <= self.tick]:
            for connection in self._due.pop(due):
                if connection.closed:
                    continue
                if connection.active_tick + self._idle_ticks <= self.tick:
                    connection.close(f"no traffic for {self._idle_ms} ms", logging.INFO)
                else:
                    self.add(connection)
