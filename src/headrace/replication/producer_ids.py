"""Producer ids, handed out from blocks that the controller gives to this broker.

The next block is asked for before the present one is used up, so that a producer rarely waits. What is left
of a block when the node stops is never used."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from headrace.errors import ErrorCode, KafkaError

PREFETCH_AT: Final = 0.9


class ProducerIdBlock(NamedTuple):
    """Ids from `first` on."""

    first: int
    size: int


Allocate: TypeAlias = Callable[[], Awaitable[ProducerIdBlock]]


class ProducerIds:
    """The ids of this broker. `allocate` asks the controller for a block of them."""

    __slots__ = ("_allocate", "_allocation", "_block", "_next_block", "_used")

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._allocation: asyncio.Task[ProducerIdBlock] | None = None
        self._block = ProducerIdBlock(0, 0)
        self._next_block: ProducerIdBlock | None = None
        self._used = 0

    def take(self) -> int | None:
        """The next id, if there is one at hand."""
        block = self._block
        if self._used >= block.size:
            if self._next_block is None:
                return None
            block = self._block = self._next_block
            self._next_block = None
            self._used = 0
        self._used += 1
        if self._used >= block.size * PREFETCH_AT:
            self._prefetch()
        return block.first + self._used - 1

    async def next_id(self) -> int:
        """The next id, once there is one."""
        while (taken := self.take()) is None:
            self._prefetch()
            allocation = self._allocation
            assert allocation is not None
            try:
                await asyncio.shield(allocation)
            except KafkaError as error:
                # Producers retry on this one, whatever kept the controller from answering.
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error
            # What is done is not waited for: the loop would not get to tell us of the block.
            self._on_allocated(allocation)
        return taken

    def _prefetch(self) -> None:
        if self._allocation is None and self._next_block is None:
            self._allocation = asyncio.ensure_future(self._allocate())
            self._allocation.add_done_callback(self._on_allocated)

    def _on_allocated(self, allocation: "asyncio.Task[ProducerIdBlock]") -> None:
        if self._allocation is not allocation:
            return
        self._allocation = None
        if not allocation.cancelled() and allocation.exception() is None:
            self._next_block = allocation.result()
