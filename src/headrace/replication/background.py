"""Work that nobody waits for, kept track of until it is done."""

import asyncio
from collections.abc import Coroutine
from logging import getLogger
from typing import Any, Final

from headrace.errors import HeadraceError

LOGGER: Final = getLogger(__name__)


class Background:
    """A set of running tasks. What they raise on purpose is logged; anything else is a bug and goes on up."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, None], what: str) -> "asyncio.Task[None]":
        """Run something; `what` says in the log what has failed."""
        task = asyncio.get_running_loop().create_task(_logged(work, what))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self) -> None:
        """Return once nothing is running any more."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self) -> None:
        """Cancel everything, and return when it has ended."""
        for task in tuple(self._tasks):
            task.cancel()
        await self.wait()


async def _logged(work: Coroutine[Any, Any, None], what: str) -> None:
    try:
        await work
    except (HeadraceError, OSError) as error:
        LOGGER.error("%s failed: %s", what, error)
