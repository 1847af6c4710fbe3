"""Before rows are taken: the topics and partitions they go to have to be there."""

import asyncio
from collections.abc import Iterable

from headrace.client.cluster import Cluster
from headrace.client.delivery import WriteBlocked
from headrace.client.routing import partitions_named
from headrace.client.write_columns import Rows
from headrace.records.arrow_input import UnusableColumns


async def await_partitions(cluster: Cluster, rows: Iterable[Rows], block_ms: int) -> None:
    """Until all topics of the rows are known, and have the partitions that rows ask for.

    UnknownTopics, BrokerRefused or UnusableColumns if that is not so for as long as new topics and partitions
    are waited for; WriteBlocked if it cannot be found out within `block_ms`."""
    wanted: dict[str, int] = {}
    for each in rows:
        for topic, partition in partitions_named(each).items():
            wanted[topic] = max(wanted.get(topic, -1), partition)
    now = asyncio.get_running_loop().time()
    for topic in wanted:
        cluster.in_use.use(topic, now)
    if not _missing(cluster, wanted):
        return
    try:
        async with asyncio.timeout(block_ms / 1000):
            await _find(cluster, wanted, min(block_ms, cluster.config.topic_wait_ms))
    except TimeoutError:
        raise WriteBlocked(
            f"nothing could be learnt of topics {', '.join(sorted(wanted))} within max.block.ms={block_ms}"
        ) from None


async def _find(cluster: Cluster, wanted: dict[str, int], wait_ms: int) -> None:
    patience = cluster.patience(wait_ms)
    await cluster.topics(wanted)
    while missing := _missing(cluster, wanted):
        if patience.is_over:
            topic = missing[0]
            known = cluster.metadata.topics.get(topic)
            count = 0 if known is None else len(known.partitions)
            raise UnusableColumns(
                f"Column partition asks for partition {wanted[topic]} of topic {topic}, which has {count}"
            )
        await patience.pause()
        for topic in missing:
            cluster.stale(topic)
        await cluster.topics(wanted)


def _missing(cluster: Cluster, wanted: dict[str, int]) -> list[str]:
    """Topics that are not known or have fewer partitions than rows ask for."""
    known = cluster.metadata.topics
    return [
        topic
        for topic, partition in wanted.items()
        if topic not in known or not known[topic].partitions or partition >= len(known[topic].partitions)
    ]
