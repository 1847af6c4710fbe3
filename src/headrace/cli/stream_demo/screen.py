"""What the demonstration shows: a picture that renews itself on a terminal, lines of text elsewhere."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Final

from headrace.cli.stream_demo.pipeline import WINDOW_SECONDS
from headrace.cli.stream_demo.watch import Figures

if TYPE_CHECKING:
    from rich.console import Group

REFRESHES_PER_SECOND: Final = 4


class TerminalScreen:
    """A picture of the latest figures in place."""

    __slots__ = ("_live",)

    def __enter__(self) -> "TerminalScreen":
        from rich.live import Live

        self._live: Live = Live(refresh_per_second=REFRESHES_PER_SECOND)
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, figures: Figures) -> None:
        """Draw the figures."""
        self._live.update(_picture(figures))


class LineScreen:
    """One line per micro-batch, for pipes and logs."""

    __slots__ = ("_batches_seen",)

    def __init__(self) -> None:
        self._batches_seen = 0

    def __enter__(self) -> "LineScreen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def show(self, figures: Figures) -> None:
        """Print the figures if a micro-batch ended since the last time."""
        if figures.batches == self._batches_seen:
            return
        self._batches_seen = figures.batches
        sys.stdout.write(f"{line_of(figures)}\n")
        sys.stdout.flush()


def line_of(figures: Figures) -> str:
    """The figures and the latest window in one line."""
    text = (
        f"rows/s in {figures.produced_per_second:,.0f}, out {figures.aggregated_per_second:,.0f}, "
        f"lag {figures.lag:,} rows"
    )
    if not figures.windows:
        return text
    start = figures.windows[0].start
    latest = ", ".join(
        f"{row.station} {row.celsius:.1f} C ({row.readings:,})"
        for row in figures.windows
        if row.start == start
    )
    return f"{text}; window {start}: {latest}"


def _picture(figures: Figures) -> "Group":
    from rich.console import Group
    from rich.table import Table

    speeds = Table.grid(padding=(0, 3))
    speeds.add_row("produced", f"{figures.produced_per_second:,.0f} rows/s", f"{figures.produced:,} rows")
    speeds.add_row(
        "aggregated", f"{figures.aggregated_per_second:,.0f} rows/s", f"{figures.aggregated:,} rows"
    )
    speeds.add_row("lag", f"{figures.lag:,} rows", f"{figures.batches:,} micro-batches")
    windows = Table(title=f"mean temperature by station, windows of {WINDOW_SECONDS} s (UTC)")
    windows.add_column("window")
    windows.add_column("station")
    windows.add_column("readings", justify="right")
    windows.add_column("Celsius", justify="right")
    for row in figures.windows:
        windows.add_row(row.start, row.station, f"{row.readings:,}", f"{row.celsius:.2f}")
    return Group(
        speeds, windows, f"any Kafka client can connect to {figures.address}; Ctrl-C stops everything"
    )
