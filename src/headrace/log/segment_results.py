"""What a segment answers: places, ranges, records found by time, and what recovery did."""

from collections.abc import Callable
from typing import NamedTuple

from headrace.log.log_errors import CorruptLog
from headrace.log.log_position import LogPosition
from headrace.ports import File
from headrace.records.batch import Batch


class BatchPlace(NamedTuple):
    """Where a batch lies in a segment."""

    base_offset: int
    position: int
    size: int


class SegmentRead(NamedTuple):
    """A range of a segment's file: whole batches from the one that holds the offset asked for.

    Its end is where the limit fell, so the last batch may be cut. `start` is the base offset of the first
    batch and its place, `first_batch_size` its full size; it is incomplete if the size limit cut it."""

    file: File
    position: int
    length: int
    start: LogPosition
    first_batch_size: int
    first_batch_incomplete: bool


class FoundTimestamp(NamedTuple):
    """A record by its timestamp; the epoch is -1 if its batch has none."""

    timestamp: int
    offset: int
    leader_epoch: int


class Recovered(NamedTuple):
    """What recovery did: the offset after the last sound batch, bytes cut off, and why if there were any."""

    next_offset: int
    bytes_truncated: int
    fault: CorruptLog | None


ObserveBatch = Callable[[Batch], None]
