"""Whatever happens on the way, every acknowledged row is there once and in order."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.column_writer import ColumnWriter
from headrace.client.config import ClientConfig
from headrace.client.delivery import DeliveriesFailed
from headrace.types import TopicPartition
from tests.support_produce import POISON, FakeCluster, Fault, run_virtual

FAULTS = st.lists(st.sampled_from(Fault), max_size=40)
WRITES = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def rows(first: int, count: int, partitions: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch(
        {
            "value": pa.array([b"%06d" % number for number in numbers], pa.binary()),
            "partition": pa.array([number * 7 % partitions for number in numbers], pa.int32()),
        }
    )


def expected(total: int, partition: int, partitions: int) -> list[bytes]:
    return [b"%06d" % number for number in range(total) if number * 7 % partitions == partition]


async def write_all(cluster: FakeCluster, writes: list[int], partitions: int) -> ColumnWriter:
    writer = ColumnWriter(cluster, topic="t")
    total = 0
    for place, count in enumerate(writes):
        await writer.write(rows(total, count, partitions))
        total += count
        if place % 3 == 2:
            await writer.flush()
    await writer.close()
    return writer


@settings(max_examples=60)
@given(FAULTS, WRITES, st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2, 5]))
def test_rows_are_written_once_and_in_order_whatever_goes_wrong(
    faults: list[Fault], writes: list[int], partitions: int, nodes: int, in_flight: int
) -> None:
    async def scenario() -> None:
        config = ClientConfig(batch_size=180, linger_ms=1, max_in_flight_requests_per_connection=in_flight)
        cluster = FakeCluster(config, {"t": partitions}, nodes=nodes, faults=faults)
        await cluster.start()
        writer = await write_all(cluster, writes, partitions)
        total = sum(writes)
        assert (writer.report.accepted, writer.report.acknowledged, writer.report.failed) == (total, total, 0)
        for partition in range(partitions):
            assert cluster.values("t", partition) == expected(total, partition, partitions)

    run_virtual(scenario())


@settings(max_examples=60)
@given(FAULTS, WRITES, st.sets(st.integers(0, 100), max_size=6), st.integers(1, 3), st.integers(400, 40_000))
def test_what_fails_is_reported_and_the_rest_is_written_once_and_in_order(
    faults: list[Fault], writes: list[int], poisoned: set[int], partitions: int, delivery_timeout_ms: int
) -> None:
    async def scenario() -> None:
        config = ClientConfig(
            batch_size=180,
            linger_ms=1,
            request_timeout_ms=300,
            delivery_timeout_ms=delivery_timeout_ms,
            retry_backoff_ms=50,
        )
        cluster = FakeCluster(config, {"t": partitions}, nodes=2, faults=faults)
        await cluster.start()
        writer = ColumnWriter(cluster, topic="t")
        total = certain = doubtful = 0
        for count in [*writes, 0]:
            batch = rows(total, count, partitions) if count else None
            try:
                if batch is None:
                    await writer.close()
                    continue
                values = [
                    POISON if total + place in poisoned else value
                    for place, value in enumerate(batch.column("value").to_pylist())
                ]
                await writer.write(batch.set_column(0, "value", pa.array(values, pa.binary())))
                total += count
            except DeliveriesFailed as error:
                certain += sum(each.rows for each in error.failures if not each.may_be_written)
                doubtful += sum(each.rows for each in error.failures if each.may_be_written)
        report = writer.report
        assert report.accepted == total
        assert report.pending == 0
        assert report.failed == certain + doubtful
        written = 0
        for partition in range(partitions):
            found = cluster.values("t", partition)
            assert POISON not in found
            assert found == sorted(set(found))  # type: ignore[type-var]
            written += len(found)
            delivery = report.partitions.get(TopicPartition("t", partition))
            assert (delivery.acknowledged if delivery else 0) <= len(found)
        assert report.acknowledged <= written <= report.acknowledged + doubtful

    run_virtual(scenario())
