"""The figures of the demonstration, taken from what the generator and the query say of themselves."""

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Final

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from headrace.cli.stream_demo.events import Produced
    from headrace.cli.stream_demo.pipeline import WindowRow

#: The share of a new reading in a shown speed, so that it does not jump about.
_WEIGHT: Final = 0.4


class DemoFailed(HeadraceError):
    """A part of the demonstration ended by itself."""


@dataclass(slots=True)
class Figures:
    """What is known at the moment. `lag` is rows produced but not yet aggregated."""

    address: str
    produced: int = 0
    produced_per_second: float = 0.0
    aggregated: int = 0
    aggregated_per_second: float = 0.0
    lag: int = 0
    batches: int = 0
    windows: "list[WindowRow]" = field(default_factory=list)


class Watch:
    """Brings figures up to date."""

    __slots__ = ("_figures", "_looked_at", "_produced", "_query", "_seen_batch")

    def __init__(self, query: "StreamingQuery", produced: "Produced", figures: Figures) -> None:
        self._query = query
        self._produced = produced
        self._figures = figures
        self._looked_at = monotonic()
        self._seen_batch = -1

    def look(self) -> None:
        """Take the latest figures. DemoFailed if the query or the generator has ended."""
        self._check()
        figures, now = self._figures, monotonic()
        seconds = max(1e-6, now - self._looked_at)
        before = figures.produced, figures.aggregated
        figures.produced = self._produced.rows
        for progress in self._query.recentProgress:
            if progress.batchId > self._seen_batch:
                self._seen_batch = progress.batchId
                figures.batches += 1
                figures.aggregated += progress.numInputRows
        figures.lag = max(0, figures.produced - figures.aggregated)
        figures.produced_per_second = _smooth(
            figures.produced_per_second, (figures.produced - before[0]) / seconds
        )
        figures.aggregated_per_second = _smooth(
            figures.aggregated_per_second, (figures.aggregated - before[1]) / seconds
        )
        self._looked_at = now

    def _check(self) -> None:
        if self._produced.error is not None:
            raise DemoFailed(f"the generator ended: {self._produced.error}")
        if not self._query.isActive:
            raise DemoFailed(f"the aggregation ended: {self._query.exception()}")


def _smooth(old: float, new: float) -> float:
    return new if old == 0 else old + _WEIGHT * (new - old)
