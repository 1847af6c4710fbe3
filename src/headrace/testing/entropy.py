"""Randomness that repeats itself."""

import random


class SeededEntropy:
    """The same seed gives the same bytes and floats, so that a failing history can be played again."""

    __slots__ = ("_generator", "seed")

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._generator = random.Random(seed)

    def random_bytes(self, count: int) -> bytes:
        """The next `count` bytes of the sequence."""
        return self._generator.randbytes(count)

    def random(self) -> float:
        """The next float in [0, 1) of the sequence."""
        return self._generator.random()
