"""How many connections there may be: in all, per listener, per address, and how many new ones in a second.

Nothing here touches a socket. A listener asks before it accepts; what is over the total or the rate waits in
the system's queue, what is over the limit of its address is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

UNLIMITED: Final = 2**31 - 1
#: Connections of brokers and controllers that get in although the process has descriptors for no more.
PROTECTED_EXTRA: Final = 16


class Rate:
    """A number of events per second, up to a second's worth at once."""

    __slots__ = ("_at_ms", "_available", "per_second")

    def __init__(self, per_second: int, now_ms: int) -> None:
        self.per_second = per_second
        self._available = float(per_second)
        self._at_ms = now_ms

    def delay_ms(self, now_ms: int) -> int:
        """How long to wait for the next event; 0 if it may happen now."""
        if self.per_second >= UNLIMITED:
            return 0
        if self.per_second <= 0:
            return 1000
        gained = (now_ms - self._at_ms) * self.per_second / 1000
        self._available = min(float(self.per_second), self._available + gained)
        self._at_ms = now_ms
        if self._available >= 1:
            return 0
        return max(1, round((1 - self._available) * 1000 / self.per_second))

    def take(self) -> None:
        """One event happened."""
        self._available -= 1


@dataclass(slots=True)
class ListenerLimits:
    """The limits of one listener. `is_protected` exempts it from those of the node (but not from its own):
    brokers must reach each other even if clients took all connections."""

    connections_max: int = UNLIMITED
    creation_rate_max: int = UNLIMITED
    is_protected: bool = False


@dataclass(slots=True)
class NodeLimits:
    """The limits of all listeners together."""

    connections_max: int = UNLIMITED
    connections_per_ip_max: int = UNLIMITED
    connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    creation_rate_max: int = UNLIMITED


class SocketBudget(NamedTuple):
    """What the descriptors of the process suffice for: connections, and file ranges held for later."""

    connections_max: int = UNLIMITED
    pins_max: int = UNLIMITED


class ListenerCount:
    """The connections of one listener."""

    __slots__ = ("connections", "limits", "rate")

    def __init__(self, limits: ListenerLimits, now_ms: int) -> None:
        self.limits = limits
        self.connections = 0
        self.rate = Rate(limits.creation_rate_max, now_ms)


class ConnectionLimits:
    """Counts connections and says which may come. All limits may be changed at any time."""

    __slots__ = ("_per_ip", "_rate", "_waiting", "connections", "limits", "sockets_max")

    def __init__(self, limits: NodeLimits, now_ms: int, sockets_max: int = UNLIMITED) -> None:
        self.limits = limits
        self.sockets_max = sockets_max
        self.connections = 0
        self._per_ip: dict[str, int] = {}
        self._rate = Rate(limits.creation_rate_max, now_ms)
        self._waiting: list[Callable[[], None]] = []

    def change(self, limits: NodeLimits) -> None:
        """Hold to other limits from now on."""
        self.limits = limits
        self._rate.per_second = limits.creation_rate_max
        self._wake()

    def change_listener(self, count: ListenerCount, limits: ListenerLimits) -> None:
        """Hold one listener to other limits from now on."""
        count.limits = limits
        count.rate.per_second = limits.creation_rate_max
        self._wake()

    def has_room(self, count: ListenerCount) -> bool:
        """Whether a listener may have one more connection."""
        if count.connections >= count.limits.connections_max:
            return False
        if count.limits.is_protected:
            return self.connections < self.sockets_max + PROTECTED_EXTRA
        return self.connections < self.connections_max

    @property
    def connections_max(self) -> int:
        """How many connections there may be: as configured, or as many as the process can have."""
        return min(self.limits.connections_max, self.sockets_max)

    def what_is_full(self, count: ListenerCount) -> str:
        """Which limit keeps a listener from having one more connection."""
        if count.connections >= count.limits.connections_max:
            return f"max.connections of the listener is {count.limits.connections_max}"
        if self.sockets_max < self.limits.connections_max:
            return (
                f"the process can have {self.sockets_max} connections besides its files; raise the limit of "
                "open files (ulimit -n) for more"
            )
        return f"max.connections is {self.limits.connections_max}"

    @property
    def is_exceeded(self) -> bool:
        """Whether there are more connections than allowed, because a protected listener took one."""
        return self.connections > self.connections_max

    def when_room(self, callback: Callable[[], None]) -> None:
        """Call back as soon as a connection closes or the limits change."""
        self._waiting.append(callback)

    def delay_ms(self, count: ListenerCount, now_ms: int) -> int:
        """How long the next connection has to wait because of how many came lately."""
        own = count.rate.delay_ms(now_ms)
        return own if count.limits.is_protected else max(own, self._rate.delay_ms(now_ms))

    def per_ip_max(self, host: str) -> int:
        """How many connections an address may have."""
        return self.limits.connections_per_ip_overrides.get(host, self.limits.connections_per_ip_max)

    def admit(self, count: ListenerCount, host: str) -> bool:
        """Count a connection that came; False if its address has too many, and then it is not counted."""
        count.rate.take()
        if not count.limits.is_protected:
            self._rate.take()
        present = self._per_ip.get(host, 0)
        if present >= self.per_ip_max(host):
            return False
        self._per_ip[host] = present + 1
        self.connections += 1
        count.connections += 1
        return True

    def leave(self, count: ListenerCount, host: str) -> None:
        """Count a connection no more."""
        remaining = self._per_ip[host] - 1
        if remaining:
            self._per_ip[host] = remaining
        else:
            del self._per_ip[host]
        self.connections -= 1
        count.connections -= 1
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()
