"""How busy the event loop is, split into moving bytes and handling requests.

A loop is idle while it waits for events, which neither of the usual loops tells. So its busy time is taken
together from two sources: connections stop the time that they spend receiving and sending (network) and
having requests handled (handler); and whatever else the loop's thread spends processor time on (coroutines,
timers) counts as handling. Blocking calls inside a handler are in the first, coroutines in the second."""

from collections import deque
from time import perf_counter_ns, thread_time_ns
from typing import Final, NamedTuple

WINDOW_SAMPLES: Final = 60


class _Sample(NamedTuple):
    elapsed_ns: int
    network_ns: int
    handler_ns: int


class LoopLoad:
    """Nanoseconds spent so far, and shares of the recent past. To be made and sampled on the loop's thread.

    `sample` is meant to be called about once a second; the shares are over the last minute then."""

    __slots__ = ("_cpu_started_ns", "_samples", "_started_ns", "handler_ns", "network_ns")

    def __init__(self) -> None:
        self.network_ns = 0
        self.handler_ns = 0
        self._started_ns = perf_counter_ns()
        self._cpu_started_ns = thread_time_ns()
        self._samples: deque[_Sample] = deque([_Sample(0, 0, 0)], maxlen=WINDOW_SAMPLES + 1)

    def sample(self) -> None:
        """Note where things stand."""
        self._samples.append(self._now())

    @property
    def handler_busy_ns(self) -> int:
        """Time spent on requests and everything else but moving bytes, since the start."""
        return self._now().handler_ns

    @property
    def network_idle_share(self) -> float:
        """The share of the recent past in which no bytes were moved: NetworkProcessorAvgIdlePercent."""
        now, then = self._now(), self._samples[0]
        return _idle(now.network_ns - then.network_ns, now.elapsed_ns - then.elapsed_ns)

    @property
    def handler_idle_share(self) -> float:
        """The share of the recent past in which nothing was handled: RequestHandlerAvgIdlePercent."""
        now, then = self._now(), self._samples[0]
        return _idle(now.handler_ns - then.handler_ns, now.elapsed_ns - then.elapsed_ns)

    def _now(self) -> _Sample:
        cpu_ns = thread_time_ns() - self._cpu_started_ns
        handler_ns = max(self.handler_ns, cpu_ns - self.network_ns)
        return _Sample(perf_counter_ns() - self._started_ns, self.network_ns, handler_ns)


def _idle(busy_ns: int, elapsed_ns: int) -> float:
    if elapsed_ns <= 0:
        return 1.0
    return min(1.0, max(0.0, 1.0 - busy_ns / elapsed_ns))
