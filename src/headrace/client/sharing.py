"""Waiting for work that several wait for: who gives up does not end it, and who ends it says why."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from headrace.errors import HeadraceError

T = TypeVar("T")


async def result_of(work: "asyncio.Task[T]", why_ended: Callable[[], HeadraceError]) -> T:
    """The result of a task that others wait for, too; if its owner has cancelled it, the error for that."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        waiting = asyncio.current_task()
        if work.cancelled() and (waiting is None or not waiting.cancelling()):
            raise why_ended() from None
        raise
