"""The machine's clocks."""

import time


class SystemClock:
    """Wall-clock and monotonic time of this machine."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000
