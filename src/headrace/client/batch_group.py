"""What a flush waits for: all batches since the flush before, whatever becomes of them."""

import asyncio


class BatchGroup:
    """Batches that were taken in between two flushes: done when each of them is."""

    __slots__ = ("_done", "_left")

    def __init__(self) -> None:
        self._left = 0
        self._done = asyncio.Event()
        self._done.set()

    def add(self, count: int) -> None:
        """There are more batches to wait for, or fewer."""
        self._left += count
        if self._left:
            self._done.clear()
        else:
            self._done.set()

    async def wait(self) -> None:
        """Until none is left."""
        await self._done.wait()
