"""A cluster for code that is not asynchronous: the event loop runs while somebody waits for it, no longer.

Spark calls its data sources from one thread and has no event loop. Nothing here goes on by itself: a worker
that is idle, or forked, has nothing of ours running in it.
"""

import asyncio
import atexit
import os
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

import uvloop

from headrace.client.cluster import Cluster
from headrace.spark.options import Properties, client_config

T = TypeVar("T")


class Session:
    """One cluster and the loop that it lives on."""

    __slots__ = ("_loop", "cluster")

    def __init__(self, properties: Properties) -> None:
        self._loop = uvloop.new_event_loop()
        try:
            self.cluster = self.run(_started(properties))
        except BaseException:
            self._loop.close()
            raise

    def run(self, waited_for: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; the loop stands still again afterwards."""
        return self._loop.run_until_complete(waited_for)

    def soon(self, call: Callable[[], object]) -> None:
        """Have something called on the loop, from any thread, when it runs."""
        self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Hang up. What still ran on the loop is ended."""
        if self._loop.is_closed():
            return
        try:
            self.run(self.cluster.close())
            self.run(_end_others())
        finally:
            self._loop.close()


class Sessions:
    """The sessions of a process, so that tasks that a worker runs one after the other share connections."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[tuple[int, Properties], Session] = {}

    def get(self, properties: Properties) -> Session:
        """The session with this configuration, opened if there is none."""
        # A forked process must not go on with its parent's sockets.
        key = os.getpid(), properties
        if key not in self._open:
            self._open[key] = Session(properties)
        return self._open[key]

    def close(self) -> None:
        """Close all sessions of this process."""
        for pid, properties in list(self._open):
            if pid == os.getpid():
                self.drop(properties)

    def drop(self, properties: Properties) -> None:
        """Close a session, which something went wrong with; the next one starts afresh."""
        found = self._open.pop((os.getpid(), properties), None)
        if found is not None:
            found.close()


@cache
def worker_sessions() -> Sessions:
    """The sessions of this process. It is the one thing that outlives a task: Spark has no place for it."""
    sessions = Sessions()
    atexit.register(sessions.close)
    return sessions


async def _started(properties: Properties) -> Cluster:
    cluster = Cluster(client_config(properties))
    await cluster.start()
    return cluster


async def _end_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
