"""How the writer meets brokers that are slow, gone, moved, or do not know what it asks for."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig
from headrace.client.delivery import DeliveriesFailed, WriterEnded
from headrace.client.errors import ClientClosed, RequestTimedOut, UnsupportedByBroker
from headrace.client.metadata import Metadata
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.metadata import MetadataRequest
from headrace.protocol.messages.produce import ProduceRequest
from headrace.types import TopicPartition
from tests.support_produce import FakeCluster, Fault, run_virtual

T0 = TopicPartition("t", 0)


class Scripted(FakeCluster):
    """Raises what it was told to, one error for each produce request, before it behaves."""

    def __init__(self, *errors: BaseException, **settings: Any) -> None:
        super().__init__(ClientConfig(**settings), {"t": 1})
        self.errors = list(errors)
        self.is_gone = False

    async def send(self, node_id: int, request: Message, **options: Any) -> Any:
        if isinstance(request, ProduceRequest) and self.errors:
            raise self.errors.pop(0)
        return await super().send(node_id, request, **options)

    async def refresh(self) -> Metadata:
        if self.is_gone:
            raise ClientClosed("the cluster's connections were closed")
        return await super().refresh()


def one_row() -> pa.Table:
    return pa.table({"value": ["a"]})


def test_a_broker_that_does_not_keep_up_gets_no_rows_that_may_go_elsewhere() -> None:
    async def scenario() -> None:
        config = ClientConfig(
            linger_ms=0,
            batch_size=0,
            max_in_flight_requests_per_connection=1,
            partitioner_availability_timeout_ms=100,
            partitioner_adaptive_partitioning_enable=False,
        )
        cluster = FakeCluster(config, {"t": 2}, nodes=2)
        await cluster.start()
        stuck = asyncio.Event()

        async def wait(request: ProduceRequest) -> None:
            if request.topic_data[0].partition_data[0].index == 1:
                await stuck.wait()

        cluster.on_produce = wait
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(pa.table({"value": ["x", "y"], "partition": [1, 1]}))
            await asyncio.sleep(1)
            for _ in range(30):
                await writer.write(one_row())
            await asyncio.sleep(1)
            assert len(cluster.values("t", 0)) == 30
            stuck.set()
        assert cluster.values("t", 1) == [b"x", b"y"]

    run_virtual(scenario())


def test_a_connection_attempt_that_was_cancelled_is_made_again() -> None:
    async def scenario() -> None:
        cluster = Scripted(asyncio.CancelledError(), RequestTimedOut("broker", "Produce", 30_000))
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(one_row())
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


def test_a_cluster_that_is_closed_ends_its_writers() -> None:
    async def scenario() -> None:
        closed = ClientClosed("the cluster's connections were closed")
        cluster = Scripted(*[closed] * 100)
        await cluster.start()
        writer = ColumnWriter(cluster, topic="t")
        cluster.is_gone = True
        await writer.write(one_row())
        async with asyncio.timeout(2):
            with pytest.raises(DeliveriesFailed, match="connections were closed"):
                await writer.flush()
        with pytest.raises(WriterEnded, match="connections were closed"):
            await writer.flush()
        await writer.close()

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (
            UnsupportedByBroker("broker 1", "Produce", "it is too old"),
            "UNSUPPORTED_VERSION: broker 1 does not",
        ),
        (RuntimeError("out of the blue"), "cannot go on: RuntimeError: out of the blue"),
    ],
)
def test_what_cannot_be_helped_ends_the_writer_with_its_reason(error: Exception, complaint: str) -> None:
    async def scenario() -> None:
        cluster = Scripted(error)
        await cluster.start()
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(one_row())
        with pytest.raises(DeliveriesFailed, match=complaint):
            await writer.close()
        assert writer.report.pending == 0

    run_virtual(scenario())


def test_an_unknown_topic_id_is_asked_for_again() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(ClientConfig(), {"t": 1})
        await cluster.start()
        cluster.partitions[T0].refusal = ErrorCode.UNKNOWN_TOPIC_ID
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(one_row())
            await asyncio.sleep(2)
            assert cluster.refreshes > 1
            cluster.partitions[T0].refusal = 0
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


def test_a_partition_that_a_reply_leaves_out_is_sent_again() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(ClientConfig(), {"t": 1}, faults=[Fault.NOT_MENTIONED])
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(one_row())
        assert cluster.values("t") == [b"a"]
        assert writer.report.acknowledged == 1

    run_virtual(scenario())


def test_brokers_are_waited_for_now_and_then_without_acknowledgements() -> None:
    async def scenario() -> None:
        config = ClientConfig(acks=0, enable_idempotence=False, batch_size=100_000)
        cluster = FakeCluster(config, {"t": 1})
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(pa.table({"value": ["x" * 1_000] * 5_000}))
        questions = [each for each in cluster.others if isinstance(each, MetadataRequest)]
        assert 4 <= len(questions) <= 10
        assert len(cluster.values("t")) == 5_000

    run_virtual(scenario())


def test_requests_carry_what_the_configuration_says() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(ClientConfig(request_timeout_ms=12_345), {"t": 1})
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(one_row())
        (request,) = cluster.requests
        assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 12_345, None)

    run_virtual(scenario())
