"""Transactions are counted under the names that Kafka's metrics have."""

from headrace.metrics.exposition import render
from headrace.metrics.registry import Registry
from headrace.server.transaction_metrics import bind_transactions
from headrace.transactions.shard import ProducerSession
from tests.support_data import TOPIC
from tests.support_log import on_loop
from tests.support_transactions import TransactionNode, transaction_node, until


def readings(one: TransactionNode) -> dict[str, float]:
    registry = Registry(0)
    bind_transactions(registry, one.node.services)
    page = "".join(render(registry)).splitlines()
    lines = (line.rsplit(" ", 1) for line in page if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


@on_loop
async def test_verifications_and_their_failures_are_counted() -> None:
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        await one.produce(ProducerSession(4711, 0), transactional_id="unknown")
        seen = readings(one)
    prefix = "kafka_server_addpartitionstotxnmanager_"
    assert seen[f"{prefix}verificationtimems_count"] == 2
    assert seen[f"{prefix}verificationfailurerate_total"] == 1


@on_loop
async def test_markers_without_a_destination_are_counted() -> None:
    name = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
    async with transaction_node() as one:
        session = await one.begin_session()
        await one.produce(session)
        one.node.assign(leader=-1, leader_epoch=1, partition_epoch=1)
        await one.end(session)
        await until(lambda: one.coordinator.sender.pending == 1)
        assert readings(one)[name] == 1
        one.node.delete_topic(TOPIC)
        await one.settled()
        assert readings(one)[name] == 0
