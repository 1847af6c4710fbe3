"""Requests that wait until something holds for each of their partitions: replication, or a low watermark."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

from headrace.errors import KafkaError
from headrace.replication.partition import Partition

Condition: TypeAlias = Callable[[], bool]


class ConditionWait:
    """Resolves once all conditions hold or have become senseless, or time is up.

    Whoever waits looks at the partitions again then, and finds out which of the three it was."""

    __slots__ = ("_left", "_timer", "future")

    def __init__(self, left: dict[Partition, Condition], timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = loop.create_future()
        self._left = left
        for partition in left:
            partition.waits[self] = None
        self._timer = loop.call_later(max(timeout_ms, 0) / 1000, self._finish)
        self.future.add_done_callback(self._leave)

    def on_progress(self, partition: Partition) -> None:
        """Look at one partition again."""
        condition = self._left.get(partition)
        if condition is not None and has_come(condition):
            del self._left[partition]
            partition.waits.pop(self, None)
            if not self._left:
                self._finish()

    def _finish(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def _leave(self, _: "asyncio.Future[None]") -> None:
        """Also when the client has gone, which cancels the future."""
        self._timer.cancel()
        for partition in self._left:
            partition.waits.pop(self, None)
        self._left.clear()


def has_come(condition: Condition) -> bool:
    """Whether a condition holds, or can't hold any more."""
    try:
        return condition()
    except KafkaError:
        return True


def wait_for_all(
    conditions: Iterable[tuple[Partition, Condition]], timeout_ms: int
) -> "asyncio.Future[None] | None":
    """None if there is nothing to wait for."""
    left = {partition: condition for partition, condition in conditions if not has_come(condition)}
    return ConditionWait(left, timeout_ms).future if left else None
