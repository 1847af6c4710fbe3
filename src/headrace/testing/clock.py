"""A clock that moves only when told to."""


class ManualClock:
    """A clock for tests: it stands still until `advance` is called."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since the clock was made."""
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        if milliseconds < 0:
            raise ValueError(
                f"time passes forward only, not by {milliseconds} ms; use set_wall_clock to step back"
            )
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def set_wall_clock(self, now_ms: int) -> None:
        """Step the wall clock, forward or back, as an administrator or NTP would; monotonic time stays."""
        self._now_ms = now_ms
