"""From rows to partitions: which row goes where, without a look at any row by itself.

Partitions that rows were ever routed to have a number each, their slot, which stays theirs for as long as the
writer lives, so that rows of many topics and writes can be put in order together.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.client.partitioner import StickyPartitioner, partitions_of_keys
from headrace.client.write_columns import ANY_PARTITION, Codes, Rows
from headrace.records.arrow_varints import Longs
from headrace.types import TopicPartition


class Layout(NamedTuple):
    """What the router has to know of a topic: how many partitions it has, and which ones rows without a key
    may go to, with how much each is preferred, should there be such rows."""

    partition_count: int
    weights: Callable[[], Mapping[int, int]]


class Router:
    """Decides for each row, and remembers where rows without a key go."""

    __slots__ = ("_batch_bytes", "_ignores_keys", "_random", "_slots_of_topic", "_sticky", "slots")

    def __init__(self, batch_bytes: int, random: Callable[[], float], *, ignores_keys: bool = False) -> None:
        self._batch_bytes = batch_bytes
        self._random = random
        self._ignores_keys = ignores_keys
        self._sticky: dict[str, StickyPartitioner] = {}
        self._slots_of_topic: dict[str, Codes] = {}
        self.slots: list[TopicPartition] = []

    def route(self, rows: Rows, layouts: Mapping[str, Layout]) -> Codes:
        """The slot of each row. Partitions that rows name exist in `layouts`."""
        if rows.topic_codes is None:
            (topic,) = rows.topics
            return self._slots(topic, layouts[topic].partition_count)[
                self._partitions(rows, topic, layouts[topic])
            ]
        slots = np.empty(rows.count, np.int32)
        for code, topic in enumerate(rows.topics):
            wanted = np.flatnonzero(rows.topic_codes == code)
            if wanted.size:
                chosen = self._partitions(rows, topic, layouts[topic], wanted)
                slots[wanted] = self._slots(topic, layouts[topic].partition_count)[chosen]
        return slots

    def batches_closed(self, slots: Iterable[int]) -> None:
        """The open batches of these slots were sent before they were full."""
        for slot in slots:
            topic, partition = self.slots[slot]
            if topic in self._sticky:
                self._sticky[topic].batch_closed(partition)

    def _partitions(self, rows: Rows, topic: str, layout: Layout, wanted: Longs | None = None) -> Codes:
        """The partitions of all rows, or of those at `wanted`, which are of one topic."""
        sizes = rows.sizes if wanted is None else rows.sizes[wanted]
        chosen = np.full(sizes.size, ANY_PARTITION, np.int32)
        if rows.partitions is not None:
            chosen = (rows.partitions if wanted is None else rows.partitions[wanted]).copy()
        if "key" in rows.batch.schema.names and not self._ignores_keys:
            self._by_key(rows, layout.partition_count, wanted, chosen)
        rest = np.flatnonzero(chosen == ANY_PARTITION)
        if rest.size:
            chosen[rest] = self._sticky_of(topic).assign(sizes[rest], layout.weights())
        return chosen

    def _by_key(self, rows: Rows, count: int, wanted: Longs | None, chosen: Codes) -> None:
        keys = rows.batch.column("key")
        keys = keys if wanted is None else keys.take(wanted)
        if keys.null_count == len(keys):
            return
        undecided: NDArray[np.bool_] = chosen == ANY_PARTITION
        if keys.null_count:
            undecided &= keys.is_valid().to_numpy(zero_copy_only=False)
        np.copyto(chosen, partitions_of_keys(keys, count), where=undecided)

    def _sticky_of(self, topic: str) -> StickyPartitioner:
        found = self._sticky.get(topic)
        if found is None:
            found = self._sticky[topic] = StickyPartitioner(self._batch_bytes, self._random)
        return found

    def _slots(self, topic: str, count: int) -> Codes:
        known = self._slots_of_topic.get(topic)
        size = 0 if known is None else known.size
        if known is None or size < count:
            first = len(self.slots)
            self.slots += [TopicPartition(topic, partition) for partition in range(size, count)]
            added = np.arange(first, first + count - size, dtype=np.int32)
            known = added if known is None else np.concatenate([known, added])
            self._slots_of_topic[topic] = known
        return known


def partitions_named(rows: Rows) -> dict[str, int]:
    """For each topic of the rows the highest partition that a row asks for, -1 if none does."""
    if rows.partitions is None:
        return dict.fromkeys(rows.topics, ANY_PARTITION)
    if rows.topic_codes is None:
        return {rows.topics[0]: int(rows.partitions.max())}
    return {
        topic: int(rows.partitions[rows.topic_codes == code].max(initial=ANY_PARTITION))
        for code, topic in enumerate(rows.topics)
    }
