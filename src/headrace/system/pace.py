"""Time for jobs in worker processes."""

import time


class SystemPace:
    """Monotonic time of this machine, and a real sleep."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000

    def sleep_ms(self, milliseconds: int) -> None:
        """Block this thread; never to be called on the event loop."""
        time.sleep(milliseconds / 1000)
