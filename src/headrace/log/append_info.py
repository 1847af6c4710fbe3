"""What a log tells about an append that it has taken."""

from typing import NamedTuple

from headrace.types import NO_TIMESTAMP


class AppendInfo(NamedTuple):
    """The outcome of an append.

    `must_flush` is set once `flush.messages` is reached: await `PartitionLog.flush` before acknowledging.
    A duplicate has the offsets of the batch that was written before, and nothing was written now. With no
    batch in the append, `first_offset` and `last_offset` are -1."""

    first_offset: int
    last_offset: int
    max_timestamp: int = NO_TIMESTAMP
    log_append_time: int = NO_TIMESTAMP
    log_start_offset: int = 0
    size: int = 0
    is_duplicate: bool = False
    must_flush: bool = False
