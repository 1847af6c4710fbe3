"""What a node does beside answering requests. A task that fails is logged, and never just gone.

Rounds that fail are tried again at their next turn. What the node can't do without tells so itself: the logs
through the health of their directory."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.log.log_errors import LogDirectoryOffline

LONGEST_SLEEP_SECONDS: Final = 86_400.0

logger: Final = logging.getLogger("headrace.server")


class Background:
    """The background tasks of a node; they end with the `async with` block."""

    __slots__ = ("_group", "_tasks")

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Background":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    async def quiesce(self) -> None:
        """End what is under way; something to be done once may still come after this."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def every(
        self,
        name: str,
        seconds: Callable[[], float],
        action: Callable[[], Awaitable[object] | object],
        first_seconds: float | None = None,
    ) -> None:
        """Do something again and again, `seconds` after it was done last (asked for anew each time)."""
        self._start(name, self._rounds(name, seconds, action, first_seconds))

    def once(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something soon, and only log if it fails."""
        self._start(name, self._round(name, run))

    def _start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _rounds(
        self,
        name: str,
        seconds: Callable[[], float],
        action: Callable[[], Awaitable[object] | object],
        first_seconds: float | None,
    ) -> None:
        await _pause(seconds() if first_seconds is None else first_seconds)
        while True:
            await self._round(name, action)
            await _pause(seconds())

    async def _round(self, name: str, action: Callable[[], Awaitable[object] | object]) -> None:
        try:
            outcome = action()
            if isinstance(outcome, Awaitable):
                await outcome
        except LogDirectoryOffline as error:
            # Whoever took the directory offline has said why; here it is only seen again.
            logger.debug("%s passed over an offline directory: %s", name, error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the task goes on
            report(name, error, "it is tried again at its next turn")


async def _pause(seconds: float) -> None:
    """Wait, be it for the years that stand for never: no timer of the loop reaches that far."""
    while seconds > LONGEST_SLEEP_SECONDS:
        await asyncio.sleep(LONGEST_SLEEP_SECONDS)
        seconds -= LONGEST_SLEEP_SECONDS
    await asyncio.sleep(seconds)


def report(name: str, error: Exception, consequence: str) -> None:
    """Say that a task failed and what comes of it; with a traceback unless the failure was foreseen."""
    foreseen = isinstance(error, (HeadraceError, OSError))
    logger.error(
        "%s failed: %s; %s", name, error or repr(error), consequence, exc_info=None if foreseen else error
    )
