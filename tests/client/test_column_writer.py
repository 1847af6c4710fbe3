"""What a user of the writer is promised: rows, reports, errors, waiting, endings."""

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig
from headrace.client.delivery import DeliveriesFailed, PartitionDelivery, WriteBlocked, WriterEnded
from headrace.client.errors import ClientClosed, DeliveryFailed, UnknownTopics
from headrace.client.partitioner import partition_of_key
from headrace.errors import ErrorCode
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.produce import ProduceRequest
from headrace.records.arrow_input import UnusableColumns
from headrace.records.arrow_reader import read_columns
from headrace.records.batch import Batch
from headrace.testing.clock import ManualClock
from headrace.types import TopicPartition
from tests.support_produce import POISON, FakeCluster, Fault, run_virtual

T0 = TopicPartition("t", 0)


def values(*found: str | bytes) -> pa.RecordBatch:
    encoded = [each if isinstance(each, bytes) else each.encode() for each in found]
    return pa.record_batch({"value": pa.array(encoded, pa.binary())})


async def started(topics: dict[str, int] | None = None, **settings: Any) -> FakeCluster:
    faults = settings.pop("faults", ())
    nodes = settings.pop("nodes", 1)
    version = settings.pop("version", 13)
    cluster = FakeCluster(
        ClientConfig(**settings), topics or {"t": 1}, faults=faults, nodes=nodes, version=version
    )
    await cluster.start()
    return cluster


async def until(is_so: Callable[[], object]) -> None:
    """Let other things happen until something is so; time passes only if nothing else does."""
    while not is_so():  # noqa: ASYNC110 the writer has no event for it, and needs none
        await asyncio.sleep(0.001)


def header(cluster: FakeCluster, number: int, partition: TopicPartition = T0) -> Batch:
    return Batch(memoryview(cluster.partitions[partition].batches[number]))


def test_rows_arrive_with_keys_headers_and_times() -> None:
    async def scenario() -> None:
        cluster = await started()
        async with ColumnWriter(cluster, topic="t", clock=ManualClock(5_000)) as writer:
            await writer.write(
                pa.table(
                    {
                        "key": ["k", None],
                        "value": ["v", None],
                        "headers": [[{"key": "h", "value": b"1"}], None],
                        "timestamp": [7, None],
                    }
                )
            )
        (data,) = cluster.partitions[T0].batches
        rows = read_columns(data).to_pylist()
        assert [(row["key"], row["value"]) for row in rows] == [(b"k", b"v"), (None, None)]
        assert [row["headers"] for row in rows] == [[{"key": "h", "value": b"1"}], []]
        assert [int(row["timestamp"].timestamp() * 1000) for row in rows] == [7, 5_000]

    run_virtual(scenario())


def test_the_report_counts_rows_and_tells_offsets() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 2})
        cluster.partitions[TopicPartition("t", 1)].values += [None] * 10
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(pa.table({"value": ["a", "b", "c"], "partition": [1, 0, 1]}))
            assert (writer.report.accepted, writer.report.pending) == (3, 3)
            await writer.flush()
            assert (writer.report.acknowledged, writer.report.pending) == (3, 0)
        assert writer.report.partitions == {
            T0: PartitionDelivery(acknowledged=1, offset_first=0, offset_last=0),
            TopicPartition("t", 1): PartitionDelivery(acknowledged=2, offset_first=10, offset_last=11),
        }
        assert writer.report.acknowledged_by_partition() == {T0: 1, TopicPartition("t", 1): 2}

    run_virtual(scenario())


def test_keys_decide_and_a_partition_column_goes_before_them() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 5})
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(
                pa.table({"key": ["k1", "k2", "k1"], "value": ["a", "b", "c"], "partition": [None, None, 4]})
            )
        expected: dict[int, list[bytes]] = {}
        expected.setdefault(partition_of_key(b"k1", 5), []).append(b"a")
        expected.setdefault(partition_of_key(b"k2", 5), []).append(b"b")
        expected.setdefault(4, []).append(b"c")
        assert {
            index: cluster.values("t", index) for index in range(5) if cluster.values("t", index)
        } == expected

    run_virtual(scenario())


def test_keys_can_be_ignored() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 50}, partitioner_ignore_keys=True)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(pa.table({"key": [f"k{number}" for number in range(20)], "value": ["v"] * 20}))
        assert [len(found.values) for found in cluster.partitions.values() if found.values] == [20]

    run_virtual(scenario())


def test_several_topics_go_in_one_request_to_their_leader() -> None:
    async def scenario() -> None:
        cluster = await started({"a": 1, "b": 1})
        async with ColumnWriter(cluster) as writer:
            await writer.write(pa.table({"value": ["1", "2", "3"], "topic": ["a", "b", "a"]}))
        assert (cluster.values("a"), cluster.values("b")) == ([b"1", b"3"], [b"2"])
        assert [len(request.topic_data) for request in cluster.requests] == [2]

    run_virtual(scenario())


def test_requests_are_bounded_by_their_size() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 10}, max_request_size=2_000, batch_size=1_500)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(pa.table({"value": ["x" * 900] * 10, "partition": list(range(10))}))
        assert [
            sum(len(topic.partition_data) for topic in request.topic_data) for request in cluster.requests
        ] == [2] * 5

    run_virtual(scenario())


def test_brokers_without_topic_ids_are_asked_by_name() -> None:
    async def scenario() -> None:
        cluster = await started(version=9)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
        assert [request.topic_data[0].name for request in cluster.requests] == ["t"]
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_arrive_with_every_codec(codec: str) -> None:
    async def scenario() -> None:
        config = ClientConfig(compression_type=codec, batch_size=4_000)
        cluster = FakeCluster(config, {"t": 1})
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            for number in range(3):
                await writer.write(values(*[f"{number}-{row}" * 9 for row in range(500)]))
        assert cluster.values("t") == [(f"{n}-{row}" * 9).encode() for n in range(3) for row in range(500)]
        assert header(cluster, 0).compression.name.lower() == codec

    asyncio.run(scenario())


def test_a_cancelled_write_loses_nothing_that_it_took() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(ClientConfig(compression_type="gzip", batch_size=16_000), {"t": 1})
        await cluster.start()
        async with ColumnWriter(cluster, topic="t") as writer:
            written = asyncio.create_task(writer.write(values(*[f"{row:09}" for row in range(40_000)])))
            await until(lambda: writer.report.accepted)
            written.cancel()
            with pytest.raises(asyncio.CancelledError):
                await written
            taken = writer.report.accepted
            await writer.write(values("after"))
        assert 0 < taken < 40_000
        assert cluster.values("t") == [*(f"{row:09}".encode() for row in range(taken)), b"after"]

    asyncio.run(scenario())


def test_writers_that_share_a_cluster_have_identities_of_their_own() -> None:
    async def scenario() -> None:
        cluster = await started()
        async with ColumnWriter(cluster, topic="t") as one, ColumnWriter(cluster, topic="t") as other:
            await one.write(values("a"))
            await other.write(values("b"))
        assert len(cluster.partitions[T0].producers) == 2

    run_virtual(scenario())


def test_without_idempotence_no_identity_is_asked_for() -> None:
    async def scenario() -> None:
        cluster = await started(enable_idempotence=False, acks=1)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
        assert not [each for each in cluster.others if isinstance(each, InitProducerIdRequest)]
        assert (header(cluster, 0).producer_id, header(cluster, 0).base_sequence) == (-1, -1)
        assert cluster.requests[0].acks == 1

    run_virtual(scenario())


def test_without_acknowledgements_rows_count_when_they_are_sent() -> None:
    async def scenario() -> None:
        cluster = await started(enable_idempotence=False, acks=0)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a", "b"))
            await writer.flush()
        assert writer.report.partitions == {T0: PartitionDelivery(acknowledged=2)}
        assert cluster.values("t") == [b"a", b"b"]

    run_virtual(scenario())


def test_rows_wait_for_others_of_their_batch_as_long_as_they_should() -> None:
    async def scenario() -> None:
        cluster = await started(linger_ms=50)
        loop = asyncio.get_running_loop()
        sent_at: list[float] = []

        async def note(_: ProduceRequest) -> None:
            sent_at.append(loop.time())

        cluster.on_produce = note
        async with ColumnWriter(cluster, topic="t") as writer:
            begun = loop.time()
            await writer.write(values("a"))
            await asyncio.sleep(0.02)
            await writer.write(values("b"))
            await until(lambda: not writer.report.pending)
            assert 0.05 <= sent_at[0] - begun < 0.07
        assert [header(cluster, number).count for number in range(len(sent_at))] == [2]

    run_virtual(scenario())


def test_without_lingering_rows_leave_at_once() -> None:
    async def scenario() -> None:
        cluster = await started(linger_ms=0)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
            await writer.write(values("b"))
            await asyncio.sleep(0.1)
            assert cluster.values("t") == [b"a", b"b"]

    run_virtual(scenario())


def test_a_full_buffer_makes_writes_wait_and_then_says_how_many_rows_were_taken() -> None:
    async def scenario() -> None:
        cluster = await started(buffer_memory=4_000, max_block_ms=1_000, batch_size=500)
        gate = asyncio.Event()

        async def wait(_: ProduceRequest) -> None:
            await gate.wait()

        cluster.on_produce = wait
        writer = ColumnWriter(cluster, topic="t")
        with pytest.raises(
            WriteBlocked, match=r"max.block.ms=1000.*buffer.memory=4000.*rows of this write"
        ) as caught:
            await writer.write(values(*["x" * 90] * 100))
        assert 0 < caught.value.rows_taken == writer.report.accepted < 100
        gate.set()
        await writer.close()
        assert len(cluster.values("t")) == caught.value.rows_taken

    run_virtual(scenario())


def test_memory_is_bounded_however_much_is_written() -> None:
    async def scenario() -> None:
        cluster = await started(buffer_memory=10_000, batch_size=1_000)
        async with ColumnWriter(cluster, topic="t") as writer:
            memory = writer._pipeline.memory
            most = 0

            async def look(_: ProduceRequest) -> None:
                nonlocal most
                most = max(most, memory.used)

            cluster.on_produce = look
            for _ in range(20):
                await writer.write(values(*["x" * 90] * 100))
        # What rows take is counted; a batch adds its header.
        assert 0 < most <= 10_000 + 61 * 10
        assert memory.used == 0
        assert len(cluster.values("t")) == 2_000

    run_virtual(scenario())


def test_an_unknown_topic_is_an_error_before_anything_is_sent() -> None:
    async def scenario() -> None:
        cluster = await started({"events": 1})
        async with ColumnWriter(cluster) as writer:
            with pytest.raises(UnknownTopics, match="did you mean 'events'"):
                await writer.write(pa.table({"value": ["a", "b"], "topic": ["events", "event"]}))
        assert (writer.report.accepted, cluster.requests) == (0, [])

    run_virtual(scenario())


def test_an_unknown_partition_is_an_error_before_anything_is_sent() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 3})
        async with ColumnWriter(cluster, topic="t") as writer:
            with pytest.raises(UnusableColumns, match="asks for partition 7 of topic t, which has 3"):
                await writer.write(pa.table({"value": ["a", "b"], "partition": [0, 7]}))
        assert cluster.requests == []

    run_virtual(scenario())


def test_a_partition_that_is_new_is_found_when_a_row_asks_for_it() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 1})
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
            cluster.partitions[TopicPartition("t", 1)] = type(cluster.partitions[T0])()
            await writer.write(pa.table({"value": ["b"], "partition": [1]}))
        assert cluster.values("t", 1) == [b"b"]

    run_virtual(scenario())


def test_a_batch_that_is_too_large_is_sent_in_parts() -> None:
    async def scenario() -> None:
        cluster = await started(batch_size=5_000)
        cluster.partitions[T0].message_bytes_max = 700
        rows = [f"{number}-" + "x" * 95 for number in range(60)]
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values(*rows))
        assert cluster.values("t") == [row.encode() for row in rows]
        assert writer.report.acknowledged == 60

    run_virtual(scenario())


def test_a_record_that_is_too_large_fails_with_its_size_and_the_limit() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.partitions[T0].message_bytes_max = 700
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a", "x" * 800, "b"))
        with pytest.raises(DeliveryFailed) as caught:
            await writer.flush()
        assert str(caught.value) == (
            "1 row was not delivered (2 were acknowledged): t-0: 1 row: MESSAGE_TOO_LARGE: a single record "
            "takes 870 bytes as a batch; the topic takes 700 at most (max.message.bytes)"
        )
        assert caught.value.partition == T0
        assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
        await writer.write(values("c"))
        await writer.close()
        assert cluster.values("t") == [b"a", b"b", b"c"]

    run_virtual(scenario())


def test_what_a_broker_says_of_single_records_is_passed_on() -> None:
    async def scenario() -> None:
        cluster = await started()
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a", POISON, "b"))
        with pytest.raises(DeliveriesFailed, match="record 1 of its batch: poisonous") as caught:
            await writer.flush()
        (failure,) = caught.value.failures
        assert (failure.rows, failure.code, failure.may_be_written) == (3, ErrorCode.INVALID_RECORD, False)
        assert failure.record_errors == ((1, "poisonous"),)
        await writer.flush()
        await writer.close()

    run_virtual(scenario())


def test_failures_are_told_by_the_next_write_which_then_takes_nothing() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.partitions[T0].refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a"))
        await until(lambda: not writer.report.pending)
        cluster.partitions[T0].refusal = 0
        with pytest.raises(DeliveriesFailed, match="TOPIC_AUTHORIZATION_FAILED"):
            await writer.write(values("b"))
        await writer.write(values("b"))
        await writer.close()
        assert cluster.values("t") == [b"b"]
        assert (writer.report.accepted, writer.report.failed) == (2, 1)

    run_virtual(scenario())


def test_rows_that_take_too_long_fail_with_the_last_error() -> None:
    async def scenario() -> None:
        cluster = await started(delivery_timeout_ms=2_000, request_timeout_ms=500, linger_ms=5)
        cluster.partitions[T0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        writer = ColumnWriter(cluster, topic="t")
        begun = asyncio.get_running_loop().time()
        await writer.write(values("a", "b"))
        with pytest.raises(
            DeliveriesFailed, match=r"delivery.timeout.ms=2000; the last error was NOT_ENOUGH_REPL"
        ) as caught:
            await writer.flush()
        assert 2.0 <= asyncio.get_running_loop().time() - begun < 2.1
        assert not caught.value.failures[0].may_be_written
        cluster.partitions[T0].refusal = 0
        await writer.write(values("c"))
        await writer.close()
        assert cluster.values("t") == [b"c"]

    run_virtual(scenario())


def test_rows_without_an_answer_may_be_written_and_the_error_says_so() -> None:
    async def scenario() -> None:
        cluster = await started(
            delivery_timeout_ms=1_000, request_timeout_ms=500, linger_ms=5, faults=[Fault.REPLY_LOST] * 50
        )
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a"))
        with pytest.raises(DeliveriesFailed, match="may have been written all the same"):
            await writer.close()
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


def test_no_leader_is_waited_for() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.partitions[T0].leader = -1
        await cluster.refresh()
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
            await asyncio.sleep(3)
            assert writer.report.pending == 1
            cluster.partitions[T0].leader = 1
        assert cluster.values("t") == [b"a"]
        assert cluster.refreshes < 20

    run_virtual(scenario())


def test_a_leader_that_is_told_with_the_refusal_is_used_without_asking() -> None:
    async def scenario() -> None:
        cluster = await started(nodes=3, faults=[Fault.LEADER_MOVES])
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
        assert cluster.values("t") == [b"a"]
        assert cluster.refreshes == 1

    run_virtual(scenario())


@pytest.mark.parametrize("code", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.PRODUCER_FENCED])
def test_a_fatal_refusal_ends_the_writer(code: ErrorCode) -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.partitions[T0].refusal = code
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a"))
        with pytest.raises(DeliveriesFailed, match=code.name):
            await writer.flush()
        for again in (writer.write(values("b")), writer.flush()):
            with pytest.raises(WriterEnded, match=code.name):
                await again
        await writer.close()
        assert (writer.report.accepted, writer.report.failed) == (1, 1)

    run_virtual(scenario())


def test_an_identity_that_is_not_ready_is_asked_for_again() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.init_codes.extend(
            [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
        )
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


def test_an_identity_that_is_refused_ends_the_writer() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.init_codes.append(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a"))
        with pytest.raises(
            DeliveriesFailed, match="a producer id for idempotent writes: CLUSTER_AUTHORIZATION_FAILED"
        ):
            await writer.close()

    run_virtual(scenario())


def test_a_closed_writer_takes_no_rows() -> None:
    async def scenario() -> None:
        cluster = await started()
        writer = ColumnWriter(cluster, topic="t")
        await writer.close()
        await writer.close()
        with pytest.raises(ClientClosed):
            await writer.write(values("a"))

    run_virtual(scenario())


def test_closing_with_a_time_limit_reports_what_is_left() -> None:
    async def scenario() -> None:
        cluster = await started()
        cluster.partitions[T0].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        writer = ColumnWriter(cluster, topic="t")
        await writer.write(values("a", "b"))
        with pytest.raises(DeliveriesFailed, match=r"2 rows were not delivered.*1\.5 s were not enough"):
            await writer.close(timeout_s=1.5)
        assert writer.report.pending == 0

    run_virtual(scenario())


def test_leaving_with_an_error_gives_up_and_does_not_hide_it() -> None:
    async def scenario() -> None:
        cluster = await started(linger_ms=10_000)
        writer = ColumnWriter(cluster, topic="t")

        async def fail() -> None:
            async with writer:
                await writer.write(values("a"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert (writer.report.failed, writer.report.pending) == (1, 0)
        assert cluster.values("t") == []

    run_virtual(scenario())


def test_a_cancelled_flush_can_be_tried_again() -> None:
    async def scenario() -> None:
        cluster = await started(faults=[Fault.TOO_FEW_REPLICAS] * 8)
        async with ColumnWriter(cluster, topic="t") as writer:
            await writer.write(values("a"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await writer.flush()
            assert writer.report.pending == 1
            await writer.flush()
            assert writer.report.pending == 0
        assert cluster.values("t") == [b"a"]

    run_virtual(scenario())


def test_a_flush_does_not_wait_for_rows_of_later_writes() -> None:
    async def scenario() -> None:
        cluster = await started({"t": 1, "stuck": 1})
        cluster.partitions[TopicPartition("stuck", 0)].refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        writer = ColumnWriter(cluster)
        await writer.write(pa.table({"value": ["a"], "topic": ["t"]}))
        flushed = asyncio.create_task(writer.flush())
        await asyncio.sleep(0)
        await writer.write(pa.table({"value": ["b"], "topic": ["stuck"]}))
        async with asyncio.timeout(1):
            await flushed
        assert writer.report.pending == 1
        await writer.abort()

    run_virtual(scenario())
