"""Worker processes without the processes: jobs run where they are asked for, in the order they are."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class InlineWorkers:
    """The Workers port for tests and simulations: deterministic, and able to see the test's own objects."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run the function at once; its exception is raised here."""
        self.runs += 1
        return function(*arguments)
