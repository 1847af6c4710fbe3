"""What the connections of a process share: the loop, memory, limits, the timer, counters."""

import asyncio
import logging
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Final

from headrace.net.buffers import ReceiveBuffers
from headrace.net.connection import ServerConnection
from headrace.net.idle import IdleWheel
from headrace.net.limits import ConnectionLimits, NodeLimits, SocketBudget
from headrace.net.listener import Listener
from headrace.net.loop_load import LoopLoad
from headrace.net.outbox import PinPool
from headrace.ports import Clock

IDLE_MS_MAX_DEFAULT: Final = 600_000
TICKS_PER_TRIM: Final = 10

logger = logging.getLogger("headrace.net")


class Network:
    """The listeners of a process and their connections. Belongs to the thread of its loop.

    `idle_ms_max` is `connections.max.idle.ms`, `large_bytes_max` is `queued.max.request.bytes`. `sockets` is
    what the process has descriptors for."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        limits: NodeLimits | None = None,
        idle_ms_max: int = IDLE_MS_MAX_DEFAULT,
        large_bytes_max: int = 0,
        sockets: SocketBudget | None = None,
    ) -> None:
        self.loop = loop
        self.clock = clock
        sockets = sockets or SocketBudget()
        self.limits = ConnectionLimits(limits or NodeLimits(), clock.monotonic_ms(), sockets.connections_max)
        self.pins = PinPool(sockets.pins_max)
        self.idle = IdleWheel(idle_ms_max, clock.monotonic_ms())
        self.buffers = ReceiveBuffers(large_bytes_max)
        self.load = LoopLoad()
        self.listeners: list[Listener] = []
        self._bytes_in_before = 0
        self._bytes_out_before = 0
        self._due: list[ServerConnection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._drained: asyncio.Future[None] | None = None

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self.limits.connections

    @property
    def bytes_in(self) -> int:
        """Bytes received so far."""
        return self._bytes_in_before + sum(listener.bytes_in for listener in self.listeners)

    @property
    def bytes_out(self) -> int:
        """Bytes sent so far."""
        return self._bytes_out_before + sum(listener.bytes_out for listener in self.listeners)

    def all_connections(self) -> Iterator[ServerConnection]:
        """Every open connection."""
        for listener in list(self.listeners):
            yield from list(listener.connections)

    # Called by listeners and connections

    def add(self, listener: Listener) -> None:
        """A listener started. One that is started again is counted once."""
        if listener not in self.listeners:
            self.listeners.append(listener)
        if self._timer is None:
            self._schedule_tick()

    def forget(self, listener: Listener) -> None:
        """A listener was stopped and its last connection is gone; its counts stay."""
        if listener in self.listeners:
            self.listeners.remove(listener)
            self._bytes_in_before += listener.bytes_in
            self._bytes_out_before += listener.bytes_out

    def on_closed(self, connection: ServerConnection) -> None:
        """A connection is gone."""
        self.idle.remove(connection)
        if self._drained is not None and not self._drained.done() and self.connections == 0:
            self._drained.set_result(None)

    def flush_soon(self, connection: ServerConnection) -> None:
        """Have a connection send in this round of the loop, together with what else gets ready in it."""
        if not self._due:
            self.loop.call_soon(self._flush_due)
        self._due.append(connection)

    def make_room(self) -> None:
        """Close the connection without traffic for longest, where a protected listener took one too many."""
        if not self.limits.is_exceeded:
            return
        candidates = [each for each in self.all_connections() if not each.listener.is_protected]
        if candidates:
            oldest = min(candidates, key=lambda each: each.active_tick)
            oldest.close("the node has as many connections as it may have", logging.INFO)

    def tick(self) -> None:
        """What has to be done every now and then; the network's own timer calls it."""
        self.idle.advance(self.clock.monotonic_ms())
        self.load.sample()
        self._ticks += 1
        if self._ticks % TICKS_PER_TRIM == 0:
            self.buffers.trim()

    async def stop(self, grace_ms: int) -> None:
        """Accept and read nothing more, let replies that are ready leave, and close everything.

        What is not gone after `grace_ms` is cut off."""
        for listener in list(self.listeners):
            listener.stop_accepting()
        for connection in list(self.all_connections()):
            connection.close_when_sent("the node is stopping", logging.DEBUG)
        if self.connections:
            self._drained = self.loop.create_future()
            await asyncio.wait([self._drained], timeout=grace_ms / 1000)
        for connection in list(self.all_connections()):
            connection.close("the client did not take its replies in time", logging.INFO)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_due(self) -> None:
        started = perf_counter_ns()
        due, self._due = self._due, []
        for connection in due:
            connection.flush_due()
        self.load.network_ns += perf_counter_ns() - started

    def _schedule_tick(self) -> None:
        self._timer = self.loop.call_later(self.idle.tick_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._schedule_tick()
        self.tick()
