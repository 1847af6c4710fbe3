"""Tests of what runs on a loop run on both loops where connections are concerned."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on the loop of the parameter, and fails if it leaves anything running."""
    runner = uvloop.run if request.param == "uvloop" else asyncio.run

    def checked(coroutine: Coroutine[Any, Any, None]) -> None:
        async def alone() -> None:
            await coroutine
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not [task for task in left if "headrace" in repr(task.get_coro())]

        runner(alone())

    return checked
