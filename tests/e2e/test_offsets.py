"""Offsets as clients see them: gaps are passed, the end is reached, and nothing ever moves back."""

import threading
import time
from collections.abc import Callable

from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.support_e2e import CLIENTS, PATIENCE_SECONDS, Client, ConfluentClient, Sent, create_topic
from tests.support_node import RunningNode

LATEST = -1
ROUNDS = 24
KEYS = 4


def end_of(node: RunningNode, topic: str) -> int:
    """The end of the first partition, as a consumer learns it."""
    topics = [
        ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
    ]
    with node.connect() as client:
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        reply = client.ask(request, 7, ListOffsetsResponse)
    (result,) = reply.topics[0].partitions
    assert result.error_code == 0
    return result.offset


def test_consumers_pass_what_was_compacted_away_and_reach_the_end(
    start_node: Callable[..., RunningNode],
) -> None:
    """Promise 5."""
    node = start_node(log_cleaner_backoff_ms="100", log_segment_delete_delay_ms="0")
    topic = create_topic(
        node.bootstrap,
        "compacted",
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        segment_ms="1",
        segment_bytes="1048576",
    )
    writer = ConfluentClient(node.bootstrap)
    for number in range(ROUNDS):
        writer.produce(topic, [Sent(b"%d" % number, key=b"%d" % (number % KEYS))])
    directory = node.data_dir / f"{topic}-0"
    pause, deadline = threading.Event(), time.monotonic() + PATIENCE_SECONDS
    # All that stays is the last value of each key, be it in a segment that is not compacted yet.
    while sum(path.stat().st_size for path in directory.glob("*.log")) > 2 * KEYS * 100:
        assert time.monotonic() < deadline, sorted(directory.iterdir())
        pause.wait(0.05)
    assert end_of(node, topic) == ROUNDS
    for client in CLIENTS.values():
        check_compacted(client(node.bootstrap), topic)


def check_compacted(reader: Client, topic: str) -> None:
    """Read from the start to the end: some offsets are missing, no key's last value is."""
    seen = reader.consume(topic, 1)
    while seen[-1].offset < ROUNDS - 1:
        seen += reader.consume(topic, 1, offset=seen[-1].offset + 1)
    latest = {each.key: each.value for each in seen}
    assert latest == {b"%d" % (number % KEYS): b"%d" % number for number in range(ROUNDS - KEYS, ROUNDS)}
    offsets = [each.offset for each in seen]
    assert offsets == sorted(offsets)
    assert len(offsets) < ROUNDS


def test_the_end_never_moves_back_over_kills(start_node: Callable[..., RunningNode]) -> None:
    """Promise 6."""
    node = start_node(log_flush_offset_checkpoint_interval_ms="100")
    topic = create_topic(node.bootstrap, "kept")
    client = ConfluentClient(node.bootstrap)
    ends = [0]
    for number in range(3):
        client.produce(topic, [Sent(b"%d" % each) for each in range(100 * number, 100 * number + 100)])
        ends.append(end_of(node, topic))
        node.restart(hard=True)
        ends.append(end_of(node, topic))
    assert ends == [0, 100, 100, 200, 200, 300, 300]
    assert [each.offset for each in client.consume(topic, 300)] == list(range(300))
