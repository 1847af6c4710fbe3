"""The things that are counted with. Recording allocates nothing and takes no lock: one thread, one loop."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import exp
from typing import Final

METER_TICK_MS: Final = 5000

#: Upper bounds for times in milliseconds: from 0.1 ms to about two minutes, four to each doubling.
LATENCY_MS: Final = tuple(0.1 * 2 ** (step / 4) for step in range(81))
#: Upper bounds for sizes in bytes: from 64 B to 1 GB.
SIZE_BYTES: Final = tuple(64.0 * 2 ** (step / 2) for step in range(49))


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, amount: int = 1) -> None:
        """Count something."""
        self.value += amount


class Histogram:
    """How often values fell between fixed bounds, their sum, and the percentiles estimated from that.

    A bound belongs to the bucket below it. Every `exposed_step`-th bound is shown to Prometheus."""

    __slots__ = ("bounds", "count", "counts", "exposed_step", "maximum", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_MS, exposed_step: int = 4) -> None:
        if not bounds or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError("the bounds of a histogram have to grow")
        self.bounds = tuple(bounds)
        self.exposed_step = exposed_step
        self.counts = [0] * (len(self.bounds) + 1)
        self.count = 0
        self.total = 0.0
        self.maximum = 0.0

    def record(self, value: float) -> None:
        """Note one value."""
        bounds = self.bounds
        self.counts[0 if value <= bounds[0] else bisect_left(bounds, value)] += 1
        self.count += 1
        self.total += value
        if value > self.maximum:
            self.maximum = value

    @property
    def mean(self) -> float:
        """The average of all values; 0 if there were none."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, share: float) -> float:
        """The value that `share` of all values (0 to 1) do not exceed, to the precision of the buckets."""
        wanted = share * self.count
        seen = 0
        for index, count in enumerate(self.counts):
            if count and seen + count >= wanted:
                low = self.bounds[index - 1] if index else 0.0
                high = self.bounds[index] if index < len(self.bounds) else self.maximum
                return min(self.maximum, low + (high - low) * max(0.0, wanted - seen) / count)
            seen += count
        return self.maximum


class Meter:
    """A count and how fast it grows: averages over 1, 5 and 15 minutes that fade like Kafka's."""

    __slots__ = ("_at_ms", "_is_fresh", "_rates", "_uncounted", "value")

    _MINUTES: Final = (1, 5, 15)
    _WEIGHTS: Final = tuple(1 - exp(-METER_TICK_MS / (minutes * 60_000)) for minutes in _MINUTES)

    def __init__(self, now_ms: int) -> None:
        self.value = 0
        self._uncounted = 0
        self._at_ms = now_ms
        self._is_fresh = True
        self._rates = [0.0, 0.0, 0.0]

    def mark(self, amount: int = 1) -> None:
        """Something happened."""
        self.value += amount
        self._uncounted += amount

    def advance(self, now_ms: int) -> None:
        """Let time pass; the rates change every five seconds."""
        ticks = (now_ms - self._at_ms) // METER_TICK_MS
        if ticks <= 0:
            return
        self._at_ms += ticks * METER_TICK_MS
        # What happened since the last call is spread over the ticks that passed since.
        rate = self._uncounted * 1000 / (ticks * METER_TICK_MS)
        self._uncounted = 0
        for index, weight in enumerate(self._WEIGHTS):
            if self._is_fresh:
                self._rates[index] = rate
            else:
                faded = (1 - weight) ** ticks
                self._rates[index] = rate + (self._rates[index] - rate) * faded
        self._is_fresh = False

    @property
    def one_minute_rate(self) -> float:
        """Per second, over about the last minute."""
        return self._rates[0]

    @property
    def five_minute_rate(self) -> float:
        """Per second, over about the last five minutes."""
        return self._rates[1]

    @property
    def fifteen_minute_rate(self) -> float:
        """Per second, over about the last quarter of an hour."""
        return self._rates[2]
