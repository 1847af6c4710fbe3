"""Fetch requests for tests, and what their replies hold."""

from typing import Any

from headrace.api.k01_fetch import API
from headrace.log.log_reads import FileRange
from headrace.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from headrace.records.reader import Record
from tests.support_data import TOPIC, DataNode, topic_id_of
from tests.support_log import records_in

LATEST = 17
ALL_VERSIONS = range(API.versions[0], API.versions[1] + 1)
MEGABYTE = 2**20


def wanted(
    offset: int = 0,
    index: int = 0,
    *,
    max_bytes: int = MEGABYTE,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
) -> FetchPartition:
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )


def fetch_request(
    *partitions: FetchPartition,
    topic: str = TOPIC,
    topic_id: Any = None,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 10 * MEGABYTE,
    committed: bool = False,
    session: tuple[int, int] = (0, -1),
    forgotten: tuple[int, ...] = (),
    replica_id: int = -1,
) -> FetchRequest:
    """`session` is its id and epoch; -1 asks for none."""
    own_id = topic_id or topic_id_of(topic)
    topics = [FetchTopic(topic=topic, topic_id=own_id, partitions=list(partitions))] if partitions else []
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(committed),
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=(
            [ForgottenTopic(topic=topic, topic_id=own_id, partitions=list(forgotten))] if forgotten else []
        ),
        replica_id=-1,
        replica_state=ReplicaState(replica_id=replica_id),
    )


def parts(response: Any) -> list[PartitionData]:
    return [part for topic in response.responses for part in topic.partitions]


async def fetch(node: DataNode, *partitions: FetchPartition, version: int = LATEST, **fields: Any) -> Any:
    return await node.ask(API, fetch_request(*partitions, **fields), version)


async def fetch_one(
    node: DataNode, partition: FetchPartition, version: int = LATEST, **fields: Any
) -> PartitionData:
    (part,) = parts(await fetch(node, partition, version=version, **fields))
    return part


def data_of(part: PartitionData) -> bytes:
    """The bytes that would be sent; results must carry file ranges, never the bytes themselves."""
    if part.records == b"":
        return b""
    assert isinstance(part.records, FileRange)
    return part.records.read()


def records_of(part: PartitionData) -> list[Record]:
    return records_in(data_of(part))
