"""A node with few descriptors and many clients: those who are in are served, the others wait."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headrace.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from tests.support_e2e import ConfluentClient, Sent, create_topic
from tests.support_node import HOST, RawClient, RunningNode

DESCRIPTORS = 256
CLIENTS = 1000
PARTITIONS = 200
HELLO = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
FULL = re.compile(r"accepts no more connections.*the process can have (\d+) connections")


@pytest.fixture
def cramped_node(tmp_path: Path) -> Iterator[RunningNode]:
    """A node that may have fewer files and connections open than it has partitions."""
    node = RunningNode(tmp_path / "node")
    node.start(descriptors_max=DESCRIPTORS)
    yield node
    node.kill()


def knock(port: int, stack: ExitStack) -> None:
    """Begin to connect, and do not wait for it."""
    sock = stack.enter_context(socket.socket())
    sock.setblocking(False)
    sock.connect_ex((HOST, port))


def produce_to_all(client: RawClient, value: bytes) -> None:
    """A record for every partition, over a connection that is there already."""
    batch = build_batch([NewRecord(1_700_000_000_000, None, value, ())])
    data = [PartitionProduceData(index=each, records=batch) for each in range(PARTITIONS)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )
    reply = client.ask(request, 12, ProduceResponse)
    assert {each.error_code for each in reply.responses[0].partition_responses} == {0}


def test_clients_beyond_the_descriptors_wait_and_harm_nobody(cramped_node: RunningNode) -> None:
    node = cramped_node
    create_topic(node.bootstrap, "t", PARTITIONS)
    client = ConfluentClient(node.bootstrap)
    client.produce("t", [Sent(b"before", partition=each) for each in range(PARTITIONS)])
    with node.connect() as inside:
        assert inside.ask(HELLO, 3, ApiVersionsResponse).error_code == 0
        with ExitStack() as crowd:
            for _ in range(CLIENTS):
                knock(node.port, crowd)
            assert 0 < int(node.wait_for(FULL)[1]) < DESCRIPTORS
            for _ in range(100):
                assert inside.ask(HELLO, 3, ApiVersionsResponse).error_code == 0
            produce_to_all(inside, b"amid")
    # The crowd has gone: whoever comes now is let in.
    client.produce("t", [Sent(b"after", partition=each) for each in range(PARTITIONS)])
    for each in range(0, PARTITIONS, 50):
        assert [seen.value for seen in client.consume("t", 3, partition=each)] == [
            b"before",
            b"amid",
            b"after",
        ]
    assert len([line for line in node.lines if FULL.search(line)]) == 1
    assert "offline" not in node.output
    assert "Traceback" not in node.output
    assert node.stop() == 0
