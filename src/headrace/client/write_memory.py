"""The memory that a writer may use for rows on their way, and the wait for some of it."""

import asyncio


class WriteMemory:
    """`used` bytes out of `limit`. One writer waits at a time."""

    __slots__ = ("_released", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._released = asyncio.Event()

    def has_room(self, size: int) -> bool:
        """Whether that much may be taken; the first in line always may, however large it is."""
        return self.used == 0 or self.used + size <= self.limit

    def take(self, size: int) -> None:
        """Use memory, or with a negative size give some back."""
        self.used += size
        if size < 0:
            self._released.set()

    async def wait(self, size: int) -> None:
        """Until there is room."""
        while not self.has_room(size):
            self._released.clear()
            await self._released.wait()
