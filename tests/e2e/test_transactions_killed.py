"""Consume, transform, produce: exactly once, while the node is killed and started again at random."""

import os
from collections import Counter
from collections.abc import Callable

from headrace.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tests.support_e2e import create_topic
from tests.support_exactly_once import Killer, Transformer, committed_values
from tests.support_node import RunningNode

RECORDS_PER_PARTITION = 400
ROUNDS = 4
PATIENCE_SECONDS = 60


def test_records_are_transformed_exactly_once_while_the_node_is_killed_at_random(
    start_node: Callable[..., RunningNode],
) -> None:
    seed = int(os.environ.get("HEADRACE_SEED", int.from_bytes(os.urandom(4), "big")))
    print(f"HEADRACE_SEED={seed}")  # noqa: T201 - whoever sees it fail wants to see it again
    node = start_node(group_initial_rebalance_delay_ms="0")
    for name in ("source", "sink"):
        create_topic(node.bootstrap, name, 2)
    _fill(node)
    with Killer(node, seed, ROUNDS, (5, 120)) as killer:
        transformer = Transformer(node.bootstrap, "source", "sink", killer.step)
        transformer.run(2 * RECORDS_PER_PARTITION, lambda: killer.is_done)
    assert killer.failure is None, killer.failure
    for partition in (0, 1):
        seen = Counter(committed_values(node.bootstrap, "sink", partition))
        expected = Counter(_values(partition))
        assert seen == expected, f"seed {seed}: lost {expected - seen}, twice {seen - expected}"
    before = _described(node)
    node.restart(hard=True)
    assert _described(node) == before


def _values(partition: int) -> list[bytes]:
    return [b"%d-%d" % (partition, number) for number in range(RECORDS_PER_PARTITION)]


def _fill(node: RunningNode) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
    for partition in (0, 1):
        for value in _values(partition):
            producer.produce("source", value, partition=partition)
    assert producer.flush(PATIENCE_SECONDS) == 0


def _described(node: RunningNode) -> DescribeTransactionsResponse:
    """What the coordinator knows, once it is loaded."""
    request = DescribeTransactionsRequest(transactional_ids=["transformer"])
    with node.connect() as client:
        while True:
            reply = client.ask(request, 0, DescribeTransactionsResponse)
            state = reply.transaction_states[0]
            if state.error_code == 0 and not state.transaction_state.startswith("Prepare"):
                return reply
