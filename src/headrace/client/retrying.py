"""Attempts that may be repeated until there is no time left."""

import asyncio

from headrace.client.backoff import backoff_ms
from headrace.client.config import ClientConfig
from headrace.ports import Entropy


class Patience:
    """Time for an operation that may take several attempts, and the waits between them."""

    __slots__ = ("_config", "_deadline", "_entropy", "_failures", "_loop", "_started", "budget_ms")

    def __init__(self, config: ClientConfig, entropy: Entropy, budget_ms: int) -> None:
        self._config = config
        self._entropy = entropy
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._deadline = self._started + budget_ms / 1000
        self._failures = 0
        self.budget_ms = budget_ms

    @property
    def waited_ms(self) -> int:
        """How long it has been."""
        return int((self._loop.time() - self._started) * 1000)

    @property
    def left_ms(self) -> int:
        """How much time is left, at least 1 so that it can serve as a time-out."""
        return max(1, int((self._deadline - self._loop.time()) * 1000))

    @property
    def is_over(self) -> bool:
        """Whether another attempt would come too late."""
        return self._loop.time() >= self._deadline

    async def pause(self) -> None:
        """Wait before the next attempt: longer each time, but not beyond the end."""
        self._failures += 1
        config = self._config
        wait = backoff_ms(config.retry_backoff_ms, config.retry_backoff_max_ms, self._failures, self._entropy)
        await asyncio.sleep(max(0.0, min(wait / 1000, self._deadline - self._loop.time())))
