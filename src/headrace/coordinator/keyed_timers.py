"""The timers of one shard: each key has one, and what it runs is an operation of the shard."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.coordinator.shard import TimedOperation
from headrace.coordinator.timers import Timer, TimerQueue
from headrace.errors import ErrorCode, KafkaError

RETRY_MS: Final = 500

logger: Final = logging.getLogger("headrace.coordinator")

_GONE: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
Outcome = Callable[[BaseException | None], None]


class KeyedTimers:
    """`shard.ShardTimers` of a shard whose operations are run by `perform`."""

    __slots__ = ("_perform", "_queue", "_timers")

    def __init__(self, queue: TimerQueue, perform: Callable[[TimedOperation, Outcome], None]) -> None:
        self._queue = queue
        self._perform = perform
        self._timers: dict[object, Timer] = {}

    def schedule(self, key: object, delay_ms: int, operation: TimedOperation, *, retry: bool = True) -> None:
        """Run an operation after a while; what was scheduled for the key before is forgotten."""
        action = partial(self._run, key, operation, retry)
        timer = self._timers.get(key)
        if timer is None:
            self._timers[key] = self._queue.start(delay_ms, action)
        else:
            self._queue.restart(timer, delay_ms, action)

    def schedule_if_absent(
        self, key: object, delay_ms: int, operation: TimedOperation, *, retry: bool = True
    ) -> None:
        """Likewise, unless something is scheduled for the key."""
        if key not in self._timers:
            self.schedule(key, delay_ms, operation, retry=retry)

    def cancel(self, key: object) -> None:
        """Forget what is scheduled for a key, if there is anything."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def is_scheduled(self, key: object) -> bool:
        """Whether anything is scheduled for a key."""
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def cancel_all(self) -> None:
        """The shard is gone."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _run(self, key: object, operation: TimedOperation, retry: bool) -> None:
        self._timers.pop(key, None)
        self._perform(operation, partial(self._on_done, key, operation, retry))

    def _on_done(
        self, key: object, operation: TimedOperation, retry: bool, error: BaseException | None
    ) -> None:
        if error is None or (isinstance(error, KafkaError) and error.code in _GONE):
            return
        if not retry:
            logger.error("the timer %s failed: %s", key, error, exc_info=error)
            return
        logger.info("the timer %s failed and is set again: %s", key, error)
        self.schedule_if_absent(key, RETRY_MS, operation, retry=True)
