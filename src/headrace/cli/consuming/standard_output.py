"""Standard output that never stalls the event loop, and notices when its reader has gone.

A pipe says that it can be written to when it takes a page without blocking; so much is written at a time."""

import asyncio
import os
import select
from stat import S_ISFIFO, S_ISSOCK
from typing import Final

# What a pipe takes at once when it is writable, on every system.
_PAGE_BYTES: Final = select.PIPE_BUF


class StandardOutput:
    """A descriptor that is written to in order. BrokenPipeError is raised when nobody reads it any more."""

    __slots__ = ("_descriptor", "_is_fifo", "_is_pipe", "_poll")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self._is_fifo = S_ISFIFO(mode)
        self._is_pipe = self._is_fifo or S_ISSOCK(mode)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    async def write(self, data: bytes | memoryview) -> None:
        """Write all of it, waiting while the reader is slow."""
        left = memoryview(data)
        while left:
            if self._is_pipe and not self._poll.poll(0):
                await self._writable()
            left = left[os.write(self._descriptor, left[:_PAGE_BYTES] if self._is_pipe else left) :]

    async def reader_gone(self) -> None:
        """Return when nobody reads the pipe any more; never, if it is not a pipe.

        A socket may be readable because its peer says something; that it has gone is found when writing."""
        loop = asyncio.get_running_loop()
        gone = loop.create_future()
        if self._is_fifo:
            # The writing end of a pipe becomes readable, as it were, once it is broken.
            loop.add_reader(self._descriptor, _settle, gone)
        try:
            await gone
        finally:
            if self._is_fifo:
                loop.remove_reader(self._descriptor)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_writer(self._descriptor, _settle, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
