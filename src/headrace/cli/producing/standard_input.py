"""Standard input as it comes: what is there is handed over at once, and nothing is read before it is wanted.

Waiting happens on the event loop, never in a thread that an interrupt would have to wait for."""

import asyncio
import os
from typing import Final

CHUNK_BYTES: Final = 256 * 1024


class StandardInput:
    """The bytes of a descriptor, chunk by chunk."""

    __slots__ = ("_descriptor", "_is_pollable")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_pollable = True

    async def chunk(self) -> bytes:
        """What can be read now, waiting until there is something; empty at the end."""
        if self._is_pollable:
            await self._readable()
        return os.read(self._descriptor, CHUNK_BYTES)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _settle, ready)
        except PermissionError:
            # Files can't be waited for, as they never keep anyone waiting.
            self._is_pollable = False
            return
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
