"""What a node does beside answering requests. A task that fails is logged, and never just gone.

Rounds that fail are tried again at their next turn. A task without which the node is not what it promises to
be is `vital`: its end, whatever the reason, stops the node."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Final

from headrace.errors import HeadraceError
from headrace.log.log_errors import LogDirectoryOffline

FIRST_RETRY_SECONDS: Final = 1.0
RETRY_SECONDS_MAX: Final = 60.0
LONGEST_SLEEP_SECONDS: Final = 86_400.0

logger: Final = logging.getLogger("headrace.server")


class Background:
    """The background tasks of a node; they end with the `async with` block."""

    __slots__ = ("_group", "_on_fatal", "_tasks")

    def __init__(self, on_fatal: Callable[[str], None]) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_fatal = on_fatal

    async def __aenter__(self) -> "Background":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    def every(
        self,
        name: str,
        seconds: Callable[[], float],
        action: Callable[[], Awaitable[object] | object],
        first_seconds: float | None = None,
    ) -> None:
        """Do something again and again, `seconds` after it was done last (asked for anew each time)."""
        self._start(name, self._rounds(name, seconds, action, first_seconds))

    def keep(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a loop of its own run; begun again, after a while, if it fails."""
        self._start(name, self._kept(name, run))

    def vital(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have something run that must not end before the node does."""
        self._start(name, self._watched(name, run))

    def once(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something soon, and only log if it fails."""
        task = self._group.create_task(self._round(name, run), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(self._group.create_task(coroutine, name=name))

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

    async def _kept(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        pause = FIRST_RETRY_SECONDS
        while True:
            try:
                await run()
                logger.error("%s ended by itself; it begins again in %g s", name, pause)
            except Exception as error:  # noqa: BLE001 - whatever it was, the task goes on
                report(name, error, f"it begins again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETRY_SECONDS_MAX)

    async def _watched(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await run()
            reason = f"{name} ended by itself"
        except Exception as error:  # noqa: BLE001 - whatever it was, the node has to stop
            report(name, error, "the node stops")
            reason = f"{name} failed"
        self._on_fatal(reason)


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
