"""Every test of connections runs on both loops."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop

from tests.support_net import Run


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on the loop of the parameter."""

    def on_asyncio(coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run(coroutine)

    def on_uvloop(coroutine: Coroutine[Any, Any, None]) -> None:
        uvloop.run(coroutine)

    return on_uvloop if request.param == "uvloop" else on_asyncio
