"""An asynchronous iterator for a thread that is not: it runs on a thread of its own, a few items ahead.

Spark takes a batch, hands it to the engine and comes back for the next; meanwhile more are fetched and
decoded. The thread ends with the iteration, also where that is given up.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from headrace.spark.session import Session

T = TypeVar("T")

#: Items that are made and not yet taken.
_AHEAD: Final = 2


@dataclass(frozen=True, slots=True)
class _End:
    """There are no more items: all were made, or this is why not."""

    failure: BaseException | None


def read_ahead(session: Session, source: AsyncGenerator[T, None]) -> Iterator[T]:
    """The items of the source, made on the session's loop; its failure is raised after those before it."""
    pump = _Pump(session, source)
    thread = threading.Thread(target=pump.run, name="headrace read-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := pump.items.get(), _End):
            yield item
            pump.taken()
    finally:
        pump.stop()
        thread.join()
    if item.failure is not None:
        raise item.failure


class _Pump(Generic[T]):
    """Makes items on one thread for another to take."""

    __slots__ = ("_room", "_session", "_source", "_task", "items")

    def __init__(self, session: Session, source: AsyncGenerator[T, None]) -> None:
        self._session = session
        self._source = source
        self._room = asyncio.Semaphore(_AHEAD)
        self._task: asyncio.Task[None] | None = None
        self.items: SimpleQueue[T | _End] = SimpleQueue()

    def run(self) -> None:
        """Make all items; never raises, since nobody would hear it."""
        failure: BaseException | None = None
        try:
            self._session.run(self._make())
        except BaseException as problem:  # noqa: BLE001  # It is raised where the items are taken.
            failure = problem
        self.items.put(_End(failure))

    def taken(self) -> None:
        """An item was taken: there is room for another."""
        self._session.soon(self._room.release)

    def stop(self) -> None:
        """Make no more items. Nothing happens if all are made."""
        self._session.soon(self._cancel)

    async def _make(self) -> None:
        self._task = asyncio.current_task()
        async with aclosing(self._source) as source:
            async for item in source:
                await self._room.acquire()
                self.items.put(item)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
