"""Fetches that wait for more bytes.

A parked fetch hangs on each of its partitions, and an append looks only at those that hang on its partition.
Each keeps a running sum of what it would get, so that a wake-up costs one look at one log. Appends of one
turn of the loop are answered together."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from headrace.log.log_position import LogPosition
from headrace.log.log_reads import Isolation, bound_of
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition

T = TypeVar("T")
ENOUGH: Final = -1


class PromptFuture(asyncio.Future[T]):
    """A future whose result goes to `on_result`, if that is set, without another turn of the loop.

    It stays unresolved then: whoever takes the result so does not wait for it in any other way."""

    on_result: Callable[[T], None] | None = None


class WaitedPartition:
    """One partition of a parked fetch: where it reads from, and how much there would be to read."""

    __slots__ = ("available", "leader_epoch", "max_bytes", "partition", "start")

    def __init__(self, partition: Partition, start: LogPosition, max_bytes: int, leader_epoch: int) -> None:
        self.partition = partition
        self.start = start
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.available = 0


class WaitingFetch(ABC):
    """A fetch that hangs on its partitions until there is enough, or for its time."""

    __slots__ = ("_accumulated", "_isolation", "_loop", "_min_bytes", "_ready", "_timer", "_waited")

    def __init__(self, waited: list[WaitedPartition], isolation: Isolation, min_bytes: int) -> None:
        self._waited = waited
        self._isolation = isolation
        self._min_bytes = min_bytes
        self._accumulated = 0
        self._ready = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop

    def is_satisfied(self) -> bool:
        """Look at every partition once, before waiting."""
        for waited in self._waited:
            self.on_progress(waited)
            if self._ready:
                return True
        return False

    def on_progress(self, waited: WaitedPartition) -> None:
        """One partition has changed."""
        if self._ready:
            return
        available = _available(waited, self._isolation)
        if available == ENOUGH:
            self.release()
            return
        self._accumulated += available - waited.available
        waited.available = available
        if self._accumulated >= self._min_bytes:
            self.release()

    def release(self) -> None:
        """Answer at the end of this turn of the loop, with whatever there is by then."""
        if not self._ready:
            self._ready = True
            if self._timer is not None:
                self._loop.call_soon(self._finish)

    def _hang(self, loop: asyncio.AbstractEventLoop, max_wait_ms: int) -> None:
        self._loop = loop
        for waited in self._waited:
            waited.partition.parked[self] = waited
        self._timer = loop.call_later(max_wait_ms / 1000, self._finish)

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for waited in self._waited:
            waited.partition.parked.pop(self, None)

    @abstractmethod
    def _finish(self) -> None:
        """There is enough, or time is up. The first call counts."""


class ParkedFetch(WaitingFetch, Generic[T]):
    """One fetch that waits; `future` has its reply. Cancel it to forget the fetch."""

    __slots__ = ("_answer", "_is_finished", "future")

    def __init__(
        self,
        waited: list[WaitedPartition],
        isolation: Isolation,
        min_bytes: int,
        answer: Callable[[], T],
    ) -> None:
        super().__init__(waited, isolation, min_bytes)
        self._answer = answer
        self._is_finished = False
        self.future: PromptFuture[T]

    def park(self, max_wait_ms: int) -> PromptFuture[T]:
        """Hang on the partitions until there is enough, or for `max_wait_ms`."""
        loop = asyncio.get_running_loop()
        self.future = PromptFuture(loop=loop)
        self.future.add_done_callback(self._forget)
        self._hang(loop, max_wait_ms)
        return self.future

    def _finish(self) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        future = self.future
        # It refers to this fetch, and stays unresolved where its result is taken promptly: no cycle is left.
        del self.future
        if future.done():
            return
        try:
            answer = self._answer()
        except Exception as error:  # noqa: BLE001 - nobody else is there to be told, and the client waits
            future.set_exception(error)
            return
        if future.on_result is None:
            future.set_result(answer)
        else:
            self._leave()
            future.on_result(answer)

    def _forget(self, _: "asyncio.Future[T]") -> None:
        self._leave()


def _available(waited: WaitedPartition, isolation: Isolation) -> int:
    """Bytes that a read would find now; ENOUGH if the fetch should be answered whatever they are."""
    partition = waited.partition
    log = partition.log
    epoch = waited.leader_epoch
    if log is None or (epoch >= 0 and epoch != partition.leader_epoch):
        return ENOUGH
    try:
        return _bytes_between(log, waited.start, isolation, waited.max_bytes)
    except OSError:
        # The read that follows meets the same failure, and knows what to do about it.
        return ENOUGH


def _bytes_between(log: PartitionLog, start: LogPosition, isolation: Isolation, max_bytes: int) -> int:
    bound = bound_of(log, isolation)
    if start.offset == bound.offset:
        return 0
    if start.offset > bound.offset or start.offset < log.log_start_offset:
        return ENOUGH
    if start.is_on_older_segment_than(bound):
        return ENOUGH
    if start.segment_base == bound.segment_base and not bound.is_offset_only:
        return min(bound.position - start.position, max_bytes)
    return ENOUGH
