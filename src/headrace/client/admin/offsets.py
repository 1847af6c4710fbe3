"""Offsets of whole topics: where they begin, where they end, and where a time is."""

from collections.abc import Iterable, Mapping

from headrace.client.cluster import Cluster
from headrace.client.offsets import FoundOffset, list_offsets
from headrace.types import TopicPartition


async def topic_offsets(
    cluster: Cluster, topics: Iterable[str], at: int, *, isolation: str | None = None
) -> Mapping[TopicPartition, FoundOffset]:
    """The offset at a time of every partition of topics.

    `at` is in milliseconds, or EARLIEST, LATEST or MAX_TIMESTAMP of `headrace.client.offsets`."""
    known = await cluster.topics(topics)
    partitions = [
        TopicPartition(name, partition) for name, topic in known.items() for partition in topic.partitions
    ]
    return await list_offsets(cluster, dict.fromkeys(partitions, at), isolation=isolation)
