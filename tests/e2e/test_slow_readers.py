"""A reader that takes its time gets what it asked for, or a closed connection, whatever happens meanwhile."""

import random
import re
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from headrace.records.builder import NewRecord, build_batch
from tests.support_e2e import PATIENCE_SECONDS, create_topic
from tests.support_node import RawClient, RunningNode

FETCH_VERSION, PRODUCE_VERSION = 12, 12
TOPIC = "read-slowly"
SEGMENT_BYTES = 6 * 1024 * 1024
VALUE_BYTES = 900_000
RECORDS = 20
FIRST_BYTES = 100_000
REPLY_BYTES_MAX = 100_000_000
SPINNING_SHARE = 0.5
WATCHED_SECONDS = 1.0

Ending = Callable[[RunningNode, Path], None]


def produce(node: RunningNode, seed: int, count: int = RECORDS) -> None:
    """Large records, of which no two are alike and all have the same key."""
    rng = random.Random(seed)
    with node.connect() as client:
        for _ in range(count):
            now_ms = time.time_ns() // 1_000_000
            batch = build_batch([NewRecord(now_ms, b"key", rng.randbytes(VALUE_BYTES), ())])
            data = PartitionProduceData(index=0, records=batch)
            request = ProduceRequest(
                acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
            )
            reply = client.ask(request, PRODUCE_VERSION, ProduceResponse)
            assert reply.responses[0].partition_responses[0].error_code == 0


def fetch_request(offset: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=REPLY_BYTES_MAX)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=REPLY_BYTES_MAX,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
    )


def fetched_at_once(node: RunningNode) -> bytes:
    """The reply that a quick reader gets."""
    with node.connect() as client:
        client.send(fetch_request(), FETCH_VERSION)
        return client.receive_frame()


@contextmanager
def slow_client(node: RunningNode) -> Iterator[RawClient]:
    """A client whose system takes little on its behalf."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
        sock.settimeout(PATIENCE_SECONDS)
        sock.connect((node.host, node.port))
        yield RawClient(sock)


def read_all(sock: socket.socket, count: int) -> bytes:
    """As many bytes as come, up to `count`."""
    received = bytearray()
    while len(received) < count:
        try:
            piece = sock.recv(min(1 << 20, count - len(received)))
        except ConnectionResetError:
            break
        if not piece:
            break
        received += piece
    return bytes(received)


def wait_until(node: RunningNode, holds: Callable[[], bool]) -> None:
    """Wait for something that happens to the node's files, which nobody tells of."""
    pause = threading.Event()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, node.output[-2000:]
        pause.wait(0.02)


def busy_share(node: RunningNode) -> float:
    """The share of one core that the node takes while nobody asks it anything."""
    before, started = cpu_seconds(node), time.monotonic()
    threading.Event().wait(WATCHED_SECONDS)
    return (cpu_seconds(node) - before) / (time.monotonic() - started)


def cpu_seconds(node: RunningNode) -> float:
    with urllib.request.urlopen(f"http://{node.host}:{node.metrics_port}/metrics") as page:
        found = re.search(r"^process_cpu_seconds_total (\S+)$", page.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def admin(node: RunningNode) -> AdminClient:
    """A client to be kept while its answers are waited for: they go with it."""
    return AdminClient({"bootstrap.servers": node.bootstrap})


def delete_topic_and_make_it_anew(node: RunningNode, segment: Path) -> None:
    client = admin(node)
    client.delete_topics([TOPIC])[TOPIC].result(PATIENCE_SECONDS)
    wait_until(node, lambda: not list(node.data_dir.glob(f"{TOPIC}*")))
    create_topic(node.bootstrap, TOPIC, segment_bytes=str(SEGMENT_BYTES))
    produce(node, seed=2)


def delete_records(node: RunningNode, segment: Path) -> None:
    client = admin(node)
    (deleted,) = client.delete_records([TopicPartition(TOPIC, 0, RECORDS)]).values()
    deleted.result(PATIENCE_SECONDS)
    wait_until(node, lambda: not segment.exists())


def let_retention_pass(node: RunningNode, segment: Path) -> None:
    set_config(node, "retention.bytes", "1")
    wait_until(node, lambda: not segment.exists())


def compact(node: RunningNode, segment: Path) -> None:
    before = segment.stat().st_size
    set_config(node, "cleanup.policy", "compact")
    wait_until(node, lambda: not segment.exists() or segment.stat().st_size < before)


def set_config(node: RunningNode, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    client = admin(node)
    (altered,) = client.incremental_alter_configs([resource]).values()
    altered.result(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    "ending", [delete_topic_and_make_it_anew, delete_records, let_retention_pass, compact]
)
def test_a_segment_that_goes_while_it_is_sent_is_sent_as_it_was(
    start_node: Callable[..., RunningNode], ending: Ending
) -> None:
    node = start_node(
        log_segment_delete_delay_ms="0",
        log_initial_task_delay_ms="0",
        log_retention_check_interval_ms="50",
        log_cleaner_backoff_ms="50",
        log_cleaner_min_cleanable_ratio="0.01",
    )
    create_topic(node.bootstrap, TOPIC, segment_bytes=str(SEGMENT_BYTES))
    produce(node, seed=1)
    expected = fetched_at_once(node)
    assert len(expected) > SEGMENT_BYTES // 2
    with slow_client(node) as reader:
        reader.send(fetch_request(), FETCH_VERSION)
        assert read_all(reader.socket, 4) == struct.pack(">i", len(expected))
        start = read_all(reader.socket, FIRST_BYTES)
        ending(node, node.data_dir / f"{TOPIC}-0" / f"{0:020}.log")
        assert busy_share(node) < SPINNING_SHARE
        received = start + read_all(reader.socket, len(expected) - len(start))
        assert received == expected[: len(received)], "foreign bytes came"
        assert len(received) == len(expected) or reader.is_closed_by_peer()
    assert "Traceback" not in node.output
    with node.connect() as client:
        answer = client.ask(fetch_request(), FETCH_VERSION, FetchResponse)
    assert answer.responses[0].partitions[0].error_code in (0, 1)


def test_readers_that_never_read_cost_no_memory_and_hold_up_nobody(headrace_node: RunningNode) -> None:
    create_topic(headrace_node.bootstrap, TOPIC, segment_bytes=str(SEGMENT_BYTES))
    produce(headrace_node, seed=1)
    fetched_at_once(headrace_node)
    before = resident_bytes(headrace_node)
    clients = []
    try:
        for _ in range(20):
            manager = slow_client(headrace_node)
            clients.append((manager, manager.__enter__()))
            for _ in range(20):
                clients[-1][1].send(fetch_request(), FETCH_VERSION)
        assert len(fetched_at_once(headrace_node)) > SEGMENT_BYTES // 2
        assert busy_share(headrace_node) < SPINNING_SHARE
        # Twenty replies of six megabytes to each of twenty clients are 2.4 GB.
        assert resident_bytes(headrace_node) - before < 32 * 1024 * 1024
    finally:
        for manager, _ in clients:
            manager.__exit__(None, None, None)
    assert len(fetched_at_once(headrace_node)) > SEGMENT_BYTES // 2


def resident_bytes(node: RunningNode) -> float:
    with urllib.request.urlopen(f"http://{node.host}:{node.metrics_port}/metrics") as page:
        found = re.search(r"^process_resident_memory_bytes (\S+)$", page.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])
