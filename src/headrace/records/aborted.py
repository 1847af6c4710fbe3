"""Which batches a reader of committed data leaves out: those of aborted transactions.

The broker names the aborted transactions that touch what it returned; where one ends is told by its marker
among the batches. No record of data is looked at.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop
from typing import NamedTuple

from headrace.records.batch import Batch
from headrace.records.control import ControlType, control_type


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted, by its producer and the offset of its first record in the partition."""

    producer_id: int
    first_offset: int


def committed(batches: Iterable[Batch], aborted: Iterable[tuple[int, int]]) -> Iterator[Batch]:
    """The batches without those of aborted transactions, which are (producer id, first offset) in any order.

    Control batches pass. The batches are all those of a fetch, in offset order: markers among them matter."""
    pending = [(first_offset, producer_id) for producer_id, first_offset in aborted]
    heapify(pending)
    aborting: set[int] = set()
    for batch in batches:
        if not batch.has_producer_id:
            yield batch
            continue
        while pending and pending[0][0] <= batch.last_offset:
            aborting.add(heappop(pending)[1])
        if batch.is_control:
            if batch.count and control_type(batch) == ControlType.ABORT:
                aborting.discard(batch.producer_id)
            yield batch
        elif not (batch.is_transactional and batch.producer_id in aborting):
            yield batch
