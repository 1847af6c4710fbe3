"""How much of what is there one batch of a stream takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.types import TopicPartition

Positions = Mapping[TopicPartition, int]


def limited(starts: Positions, ends: Positions, limit: int) -> dict[TopicPartition, int]:
    """Ends that are about `limit` offsets after the starts in all, shared out by how much each partition has.

    Every partition that has something gets at least one offset, so that none starves. A partition without a
    start is left out.
    """
    sizes = {partition: ends[partition] - starts[partition] for partition in ends if partition in starts}
    total = sum(size for size in sizes.values() if size > 0)
    found: dict[TopicPartition, int] = {}
    for partition, size in sizes.items():
        if size <= 0:
            found[partition] = ends[partition]
            continue
        share = limit * (size / total)
        taken = math.ceil(share) if share < 1 else math.floor(share)
        found[partition] = min(ends[partition], starts[partition] + taken)
    return found


@dataclass(slots=True)
class Patience:
    """Puts off batches that are smaller than `min_offsets`, but none for longer than `delay_ms_max`."""

    min_offsets: int
    delay_ms_max: int
    #: When the last batch was let go; None before the first, which never waits.
    last_ms: int | None = None

    def waits(self, starts: Positions, ends: Positions, now_ms: int) -> bool:
        """Whether there is too little to start a batch now. If not, the batch counts as started."""
        new = sum(end - starts.get(partition, 0) for partition, end in ends.items())
        is_due = self.last_ms is None or now_ms - self.last_ms >= self.delay_ms_max
        if not is_due and new < self.min_offsets:
            return True
        self.last_ms = now_ms
        return False
