"""The machine's randomness."""

import os
import random


class SystemEntropy:
    """Randomness of the operating system; jitter comes from a generator seeded by it."""

    __slots__ = ("_jitter",)

    def __init__(self) -> None:
        self._jitter = random.Random(os.urandom(16))

    def random_bytes(self, count: int) -> bytes:
        """Bytes fit for ids and secrets."""
        return os.urandom(count)

    def random(self) -> float:
        """A float in [0, 1), for jitter."""
        return self._jitter.random()
