"""The event loop that a process runs on, and what is done about the garbage collector."""

import asyncio
import gc
from collections.abc import Callable
from typing import Final

from headrace.server.refusals import StartRefused

LOOPS: Final = ("auto", "uvloop", "asyncio")
#: Requests leave no cycles behind, so the collector finds next to nothing; it may look less often.
COLLECTOR_THRESHOLDS: Final = (20_000, 20, 50)


def loop_factory(wanted: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes the loop of that name; `auto` takes the faster one if it is installed."""
    if wanted not in LOOPS:
        raise StartRefused(f"{wanted!r} is not an event loop: say {', '.join(LOOPS)}")
    if wanted == "asyncio":
        return asyncio.new_event_loop
    try:
        import uvloop
    except ImportError:
        if wanted == "uvloop":
            raise StartRefused(
                "the event loop uvloop is not installed; install it, or set headrace.event.loop=asyncio"
            ) from None
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def settle_collector() -> None:
    """Take all that is there after the start out of the collector's sight, and have it look less often."""
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.enable()
