"""Alternating measurements and a table of ratios: absolute times mean little on a shared machine."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 7


@dataclass(slots=True)
class Row:
    """One line of the table. `target` is the ratio to reach; `higher_is_better` says in which direction."""

    name: str
    ours: str
    theirs: str
    ratio: float | None = None
    target: float | None = None
    higher_is_better: bool = True

    @property
    def verdict(self) -> str:
        if self.ratio is None or self.target is None:
            return ""
        reached = self.ratio >= self.target if self.higher_is_better else self.ratio <= self.target
        return "reached" if reached else "MISSED"


def seconds_per_call(call: Callable[[], object], *, min_seconds: float = 0.05) -> float:
    """How long one call takes, over enough calls to fill `min_seconds`."""
    count = 1
    while True:
        started = time.perf_counter()
        for _ in range(count):
            call()
        elapsed = time.perf_counter() - started
        if elapsed >= min_seconds:
            return elapsed / count
        count = max(count * 2, int(count * min_seconds / max(elapsed, 1e-9)) + 1)


def alternate(*calls: Callable[[], object], rounds: int = ROUNDS, min_seconds: float = 0.05) -> list[float]:
    """The best time per call of each, measured in turns so that noise hits all alike."""
    best = [float("inf")] * len(calls)
    gc.collect()
    for _ in range(rounds):
        for index, call in enumerate(calls):
            best[index] = min(best[index], seconds_per_call(call, min_seconds=min_seconds))
    return best


def spell_time(seconds: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def print_table(title: str, rows: list[Row]) -> None:
    """Print one section of the report."""
    print(f"\n## {title}")
    width = max(len(row.name) for row in rows)
    for row in rows:
        ratio = "" if row.ratio is None else f"ratio {row.ratio:.2f}"
        bound = ">=" if row.higher_is_better else "<="
        target = "" if row.target is None else f"target {bound} {row.target:g}"
        figures = f"ours {row.ours:>12}  theirs {row.theirs:>12}  {ratio:<12} {target:<14} {row.verdict}"
        print(f"{row.name:<{width}}  {figures}".rstrip())
