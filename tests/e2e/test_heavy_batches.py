"""Batches that take long to look through hold up nobody but those who sent them."""

import select
import time
from collections.abc import Callable

from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from tests.support_e2e import create_topic
from tests.support_node import RawClient, RunningNode

VERSION = 12
HELLO = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
RECORDS = 300_000


def produce_request(records: bytes) -> ProduceRequest:
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])


def first_offset(client: RawClient, correlation_id: int) -> tuple[int, int]:
    reply = client.receive(ProduceResponse, VERSION, correlation_id)
    (result,) = reply.responses[0].partition_responses
    return result.error_code, result.base_offset


def test_others_are_served_while_a_hostile_batch_is_looked_through(
    start_node: Callable[..., RunningNode],
) -> None:
    node = start_node()
    create_topic(node.bootstrap, "t")
    now_ms = time.time_ns() // 1_000_000
    hostile = build_batch([NewRecord(now_ms, None, b"", ())] * RECORDS, compression=Compression.ZSTD)
    light = build_batch([NewRecord(now_ms, None, b"after", ())])
    assert len(hostile) < 1_000_000
    with node.connect() as sender, node.connect() as other:
        heavy_id = sender.send(produce_request(hostile), VERSION)
        light_id = sender.send(produce_request(light), VERSION)
        for _ in range(20):
            assert other.ask(HELLO, 3, ApiVersionsResponse).error_code == 0
        # Had it been looked through on the loop, its reply would have left before the others'.
        assert select.select([sender.socket], [], [], 0)[0] == []
        assert first_offset(sender, heavy_id) == (0, 0)
        assert first_offset(sender, light_id) == (0, RECORDS)
    assert node.stop() == 0
