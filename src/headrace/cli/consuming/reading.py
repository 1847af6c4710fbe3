"""Columns of partitions, and of those that topics get while they are being read."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.offsets import EARLIEST
from headrace.types import TopicPartition

#: How often to look for new partitions in what is known of the topics anyway.
_LOOK_EVERY_S: Final = 1.0


async def read_until(
    cluster: Cluster, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> AsyncGenerator[Columns, None]:
    """What is between positions and ends."""
    async with ColumnReader(cluster, positions, until=ends) as reader:
        async for columns in reader:
            yield columns


async def read_on(
    cluster: Cluster, positions: Mapping[TopicPartition, int], *, is_whole: bool
) -> AsyncGenerator[Columns, None]:
    """Everything from positions on, for ever; with `is_whole` also of partitions that topics get later."""
    topics = await cluster.topics({each.topic for each in positions})
    # A topic created again with more partitions is another one, not one that has grown.
    ids = {name: topic.topic_id for name, topic in topics.items() if topic.has_id}
    while True:
        async with ColumnReader(cluster, positions, expected_ids=ids) as reader:
            while True:
                columns = await _next_soon(reader)
                if columns is not None:
                    yield columns
                fresh = _added(cluster, reader.positions) if is_whole else {}
                if fresh:
                    break
            positions = {**reader.positions, **fresh}


async def _next_soon(reader: ColumnReader) -> Columns | None:
    try:
        return await asyncio.wait_for(reader.next(), _LOOK_EVERY_S)
    except TimeoutError:
        return None


def _added(cluster: Cluster, known: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Partitions that are not read yet; everything in them is new."""
    topics = {each.topic for each in known}
    found = (
        TopicPartition(name, partition)
        for name in topics
        if name in cluster.metadata.topics
        for partition in cluster.metadata.topics[name].partitions
    )
    return {each: EARLIEST for each in found if each not in known}
