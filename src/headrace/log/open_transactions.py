"""Transactions ordered by the offset they began at, so that the oldest is always at hand."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from headrace.log.producer_entry import OpenTransaction


class TransactionsByOffset:
    """A small sorted map from first offset to transaction."""

    __slots__ = ("_by_offset", "_offsets")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._by_offset: dict[int, OpenTransaction] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[OpenTransaction]:
        """In the order they began."""
        return (self._by_offset[offset] for offset in self._offsets)

    def add(self, transaction: OpenTransaction) -> None:
        offset = transaction.first.offset
        if offset not in self._by_offset:
            insort(self._offsets, offset)
        self._by_offset[offset] = transaction

    def pop(self, first_offset: int) -> OpenTransaction | None:
        transaction = self._by_offset.pop(first_offset, None)
        if transaction is not None:
            del self._offsets[bisect_left(self._offsets, first_offset)]
        return transaction

    def oldest(self) -> OpenTransaction | None:
        return self._by_offset[self._offsets[0]] if self._offsets else None

    def clear(self) -> None:
        self._offsets.clear()
        self._by_offset.clear()
