"""Writes that do not build on each other, collected in one round of the event loop, written as one batch."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from headrace.coordinator.shard import CoordinatorRecord, Records
from headrace.records.builder import NewHeader

BYTES_MAX: Final = 524_288
W = TypeVar("W")

EncodedRecord: TypeAlias = tuple[int, bytes, bytes | None, Sequence[NewHeader]]


class JoinedWrites(Generic[W]):
    """What was decided and is not written yet, with who waits for it."""

    __slots__ = ("_encoded", "_flushes", "_linger_ms", "_records", "_size", "_waiting", "_write")

    def __init__(
        self,
        write: Callable[[list[CoordinatorRecord], list[EncodedRecord], list[W]], None],
        linger_ms: int = -1,
    ) -> None:
        self._write = write
        self._linger_ms = linger_ms
        self._records: list[CoordinatorRecord] = []
        self._encoded: list[EncodedRecord] = []
        self._waiting: list[W] = []
        self._flushes = False
        self._size = 0

    def add(self, records: Records, encoded: list[EncodedRecord], waiting: W) -> None:
        """Write this when the loop's round or the linger time ends, at the latest."""
        size = 0
        for _, key, value, _ in encoded:
            size += len(key) + (0 if value is None else len(value))
        if self._size + size > BYTES_MAX:
            self.flush()
        self._size += size
        self._records += records
        self._encoded += encoded
        self._waiting.append(waiting)
        if not self._flushes:
            self._flushes = True
            loop = asyncio.get_running_loop()
            if self._linger_ms > 0:
                loop.call_later(self._linger_ms / 1000, self._on_round_end)
            else:
                loop.call_soon(self._on_round_end)

    def _on_round_end(self) -> None:
        self._flushes = False
        self.flush()

    def flush(self) -> None:
        """Write what there is now: what comes next may build on it."""
        if self._waiting:
            records, encoded, waiting = self._records, self._encoded, self._waiting
            self._empty()
            self._write(records, encoded, waiting)

    def abandon(self) -> list[W]:
        """Write nothing; who waited for it."""
        waiting = self._waiting
        self._empty()
        return waiting

    def _empty(self) -> None:
        self._records, self._encoded, self._waiting = [], [], []
        self._size = 0
