"""Reading columns: order, ends, gaps, isolation, memory."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from headrace.client.cluster import Cluster
from headrace.client.column_reader import ColumnReader, Columns, columns_schema
from headrace.client.config import READ_COMMITTED
from headrace.client.errors import BrokerRefused, ClientClosed, UnknownTopics
from headrace.client.offsets import EARLIEST, LATEST
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.fetch import FetchResponse
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType
from headrace.types import TopicPartition
from tests.client.conftest import Run
from tests.support_client import Exchange, connected, fake_cluster, soon
from tests.support_client_log import marker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


async def read_all(
    cluster: Cluster, positions: Mapping[TopicPartition, int], **options: Any
) -> list[Columns]:
    """Everything that a reader hands out until it ends."""
    async with ColumnReader(cluster, positions, **options) as reader:
        return [columns async for columns in reader]


def values(found: list[Columns], partition: TopicPartition = A0) -> list[bytes]:
    return [
        value
        for columns in found
        if (columns.topic, columns.partition) == partition
        for value in columns.batch.column("value").to_pylist()
    ]


def offsets(found: list[Columns]) -> list[int]:
    return [offset for columns in found for offset in columns.batch.column("offset").to_pylist()]


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("views", [False, True])
def test_records_come_as_columns(run: Run, compression: Compression, views: bool) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            records = [
                NewRecord(1000, None, b"first", [("h", b"1"), ("h", None)]),
                NewRecord(1001, b"key", None),
                NewRecord(1002, b"", b"x" * 100),
            ]
            partition.append_raw(build_batch(records, compression=compression))
            async with connected(fake) as cluster:
                (columns,) = await soon(read_all(cluster, {A0: 0}, until={A0: 3}, views=views))
            assert (columns.topic, columns.partition, columns.start, columns.end) == ("a", 0, 0, 3)
            assert len(columns) == 3
            assert columns.batch.schema == columns_schema(views=views)
            rows = columns.batch.to_pylist()
            assert [row["offset"] for row in rows] == [0, 1, 2]
            assert [row["key"] for row in rows] == [None, b"key", b""]
            assert [row["value"] for row in rows] == [b"first", None, b"x" * 100]
            assert [row["timestamp"].timestamp() for row in rows] == [1.0, 1.001, 1.002]
            assert [row["timestamp_type"] for row in rows] == [0, 0, 0]
            assert rows[0]["headers"] == [
                {"key": "h", "value": b"1"},
                {"key": "h", "value": None},
            ]
            assert [(row["topic"], row["partition"]) for row in rows] == [("a", 0)] * 3

    run(test())


def test_topics_are_plain_strings_on_request(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"x", b"y")
            async with connected(fake) as cluster:
                (columns,) = await soon(read_all(cluster, {A0: 0}, until={A0: 2}, plain=True))
            assert columns.batch.schema == columns_schema(plain=True)
            assert columns.batch.schema.field("topic").type == pa.string()
            assert columns.batch.column("topic").to_pylist() == ["a", "a"]

    run(test())


def test_many_partitions_on_many_brokers_are_read_at_once(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(3) as fake:
            fake.create("a", leaders=(1, 2, 3, 1, 2))
            fake.create("b", leaders=(3,))
            wanted: dict[TopicPartition, list[bytes]] = {}
            for name, topic in fake.topics.items():
                for index, partition in topic.partitions.items():
                    each = TopicPartition(name, index)
                    wanted[each] = []
                    for batch in range(20):
                        some = [
                            b"%s-%d-%d-%d" % (name.encode(), index, batch, n) for n in range(batch % 4 + 1)
                        ]
                        partition.append(*some)
                        wanted[each] += some
            ends = {each: len(found) for each, found in wanted.items()}
            async with connected(fake, max_partition_fetch_bytes=300) as cluster:
                found = await soon(read_all(cluster, dict.fromkeys(ends, 0), until=ends))
            assert {each: values(found, each) for each in ends} == wanted
            for each in ends:
                pieces = [columns for columns in found if (columns.topic, columns.partition) == each]
                assert pieces[0].start == 0
                assert pieces[-1].end == ends[each]
                assert [piece.end for piece in pieces[:-1]] == [piece.start for piece in pieces[1:]]

    run(test())


def test_sessions_are_used_and_told_changes_only(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(1, 1, 1))
            for _ in range(5):
                fake.partition("a").append(b"x" * 100)
            async with connected(fake, max_partition_fetch_bytes=100) as cluster:
                ends = {A0: 5, A1: 1}
                fake.partition("a", 1).append(b"y")
                await soon(read_all(cluster, {A0: 0, A1: 0}, until=ends))
            requests: list[Any] = fake.broker().seen[ApiKey.FETCH]
            assert [request.session_epoch for request in requests] == [0, 1, 2, 3, 4]
            assert len({request.session_id for request in requests[1:]}) == 1
            assert [len(request.topics[0].partitions) for request in requests] == [2, 1, 1, 1, 1]
            assert [topic.partitions for topic in requests[1].forgotten_topics_data] == [[1]]
            assert {
                header.request_api_version for header in fake.broker().headers if header.request_api_key == 1
            } == {18}

    run(test())


def test_older_brokers_know_topics_by_name(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"x")
            fake.broker().versions[ApiKey.METADATA] = (0, 9)
            fake.broker().versions[ApiKey.FETCH] = (4, 12)
            async with connected(fake) as cluster:
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 1}))) == [b"x"]
            request: Any = fake.broker().seen[ApiKey.FETCH][0]
            assert request.topics[0].topic == "a"

    run(test())


@pytest.mark.parametrize("version", [4, 6, 7, 10, 11])
def test_brokers_of_any_age_can_be_read_from(run: Run, version: int) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            for number in range(5):
                fake.create("a") if number == 0 else None
                fake.partition("a").append(b"%d" % number)
            fake.broker().versions[ApiKey.METADATA] = (0, 9)
            fake.broker().versions[ApiKey.FETCH] = (4, version)
            async with connected(fake, max_partition_fetch_bytes=50) as cluster:
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 5}))
            assert values(found) == [b"0", b"1", b"2", b"3", b"4"]

    run(test())


# Where it begins and ends


def test_reading_begins_and_ends_within_batches(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            for number in range(4):
                partition.append(*(b"%d" % (number * 10 + each) for each in range(10)))
            async with connected(fake) as cluster:
                found = await soon(read_all(cluster, {A0: 13}, until={A0: 27}))
            assert offsets(found) == list(range(13, 27))
            assert found[0].start == 13
            assert found[-1].end == 27

    run(test())


def test_earliest_and_latest_are_positions_too(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            partition.append(b"gone", b"kept")
            partition.start = 1
            async with connected(fake) as cluster:
                assert offsets(await soon(read_all(cluster, {A0: EARLIEST}, until={A0: 2}))) == [1]
                async with ColumnReader(cluster, {A0: LATEST}) as reader:
                    assert reader.positions == {A0: 2}
                    partition.append(b"new")
                    assert values([await soon(reader.next())]) == [b"new"]
                    assert reader.positions == {A0: 3}

    run(test())


def test_what_is_read_already_ends_at_once(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"x")
            async with connected(fake) as cluster:
                assert await soon(read_all(cluster, {A0: 1}, until={A0: 1})) == []
                assert await soon(read_all(cluster, {A0: 1}, until={A0: 0})) == []
                assert await soon(read_all(cluster, {}, until={})) == []

    run(test())


def test_new_records_are_waited_for(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                for number in range(5):
                    waiting = asyncio.create_task(reader.next())
                    await fake.broker().asked(ApiKey.FETCH, 2 * number + 2)
                    partition.append(b"%d" % number)
                    columns = await soon(waiting)
                    assert values([columns]) == [b"%d" % number]

    run(test())


def test_cancelling_who_waits_loses_nothing(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                found: list[Columns] = []
                for number in range(5):
                    waiting = asyncio.create_task(reader.next())
                    await fake.broker().asked(ApiKey.FETCH, number + 2)
                    waiting.cancel()
                    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
                    found += [outcome] if isinstance(outcome, Columns) else []
                    partition.append(b"%d" % number)
                while len(offsets(found)) < 5:
                    found.append(await soon(reader.next()))
                assert values(found) == [b"%d" % number for number in range(5)]

    run(test())


def test_gaps_are_passed_and_the_end_is_reached(run: Run) -> None:
    """Compaction leaves holes anywhere, also between the last record and the end."""

    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            partition.append(b"3", base_offset=3)
            partition.append(b"10", b"12", base_offset=10, offsets=[10, 12], last_offset=19)
            partition.append(b"30", base_offset=30)
            partition.end = 40
            async with connected(fake) as cluster:
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 40}))
                assert offsets(found) == [3, 10, 12, 30]
                assert (found[0].start, found[-1].end) == (0, 31)
                assert offsets(await soon(read_all(cluster, {A0: 0}, until={A0: 12}))) == [3, 10]
                assert offsets(await soon(read_all(cluster, {A0: 0}, until={A0: 25}))) == [3, 10, 12]
                assert offsets(await soon(read_all(cluster, {A0: 31}, until={A0: 35}))) == []

    run(test())


def test_what_lies_in_remote_storage_is_not_taken_for_a_gap(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            partition.end = 5
            partition.local_start = 5
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}, until={A0: 5}) as reader:
                await fake.broker().asked(ApiKey.FETCH, 5)
                partition.append(b"late", base_offset=0)
                partition.end = 5
                assert values([await soon(reader.next())]) == [b"late"]
                assert reader.positions == {A0: 1}

    run(test())


def test_a_broker_that_slows_its_clients_down_makes_no_gap(run: Run) -> None:
    """It leaves out what there is, and says so by the time that it wants the client to wait."""

    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            for number in range(6):
                partition.append(b"%d" % number)

            async def throttled(exchange: Exchange) -> None:
                session_id = exchange.request.session_id
                exchange.send(exchange.encoded(FetchResponse(throttle_time_ms=1, session_id=session_id)))

            async with (
                connected(fake, max_partition_fetch_bytes=1) as cluster,
                ColumnReader(cluster, {A0: 0}, until={A0: 6}) as reader,
            ):
                found = [await soon(reader.next())]
                fake.broker().next(ApiKey.FETCH, *[throttled] * 5)
                found += [columns async for columns in reader]
                assert offsets(found) == list(range(6))

    run(test())


# Isolation


def test_aborted_data_and_markers_are_left_out(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            transactional = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
            partition.append(b"plain")
            partition.append(b"aborted", b"aborted", producer_id=7, **transactional)
            partition.append(b"committed", producer_id=8, **transactional)
            partition.append_raw(marker(partition, 7, ControlType.ABORT))
            partition.append(b"later", producer_id=7, **transactional)
            partition.append_raw(marker(partition, 8, ControlType.COMMIT))
            partition.append_raw(marker(partition, 7, ControlType.COMMIT))
            partition.append(b"open", producer_id=9, **transactional)
            partition.aborted = [(7, 1, 4)]
            partition.stable = partition.end - 1
            async with connected(fake) as cluster:
                found = await soon(
                    read_all(cluster, {A0: 0}, until={A0: partition.stable}, isolation=READ_COMMITTED)
                )
                assert values(found) == [b"plain", b"committed", b"later"]
                assert found[-1].end == partition.stable
                found = await soon(read_all(cluster, {A0: 0}, until={A0: partition.end}))
                assert values(found) == [
                    b"plain",
                    b"aborted",
                    b"aborted",
                    b"committed",
                    b"later",
                    b"open",
                ]
            async with connected(
                fake, isolation_level=READ_COMMITTED, max_partition_fetch_bytes=1
            ) as cluster:
                found = await soon(read_all(cluster, {A0: 0}, until={A0: partition.stable}))
                assert values(found) == [b"plain", b"committed", b"later"]

    run(test())


def test_a_partition_with_nothing_but_aborted_data_reaches_its_end(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            partition.append(b"no", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
            partition.append_raw(marker(partition, 7, ControlType.ABORT))
            partition.aborted = [(7, 0, 1)]
            async with connected(fake) as cluster:
                reader = ColumnReader(cluster, {A0: 0}, until={A0: 2}, isolation=READ_COMMITTED)
                async with reader:
                    assert [columns async for columns in reader] == []
                    assert reader.positions == {A0: 2}

    run(test())


# Memory


def test_a_batch_larger_than_all_limits_still_arrives(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            partition = fake.create("a").partitions[0]
            for number in range(3):
                partition.append(b"%d" % number * 200_000)
            limits = {"max_partition_fetch_bytes": 10, "fetch_max_bytes": 10}
            async with connected(fake, **limits) as cluster:
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 3}, prefetch_bytes=10))
            assert [len(value) for value in values(found)] == [200_000] * 3

    run(test())


def test_a_reader_that_pauses_holds_no_more_than_its_bound(run: Run) -> None:
    async def test() -> None:
        size, bound, count = 10_000, 100_000, 200
        async with fake_cluster(2) as fake:
            fake.create("a", leaders=(1, 2, 1, 2))
            ends = {TopicPartition("a", index): count for index in range(4)}
            for each in ends:
                for _ in range(count):
                    fake.partition(*each).append(b"x" * size)
            total = most = 0
            async with (
                connected(fake) as cluster,
                ColumnReader(cluster, dict.fromkeys(ends, 0), until=ends, prefetch_bytes=bound) as reader,
            ):
                async for columns in reader:
                    total += len(columns)
                    if total % 50 < 10:
                        for _ in range(30):
                            await asyncio.sleep(0)
                    most = max(most, reader.buffered_bytes)
            assert total == 4 * count
            # Each broker may send one batch more than it was asked for.
            assert bound / 4 < most <= bound + 2 * (size + 100)

    run(test())


def test_one_busy_partition_does_not_shut_out_the_others(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(1, 1))
            for _ in range(300):
                fake.partition("a").append(b"x" * 1000)
            fake.partition("a", 1).append(b"quiet")
            async with (
                connected(fake, max_partition_fetch_bytes=5000) as cluster,
                ColumnReader(cluster, {A0: 0, A1: 0}, prefetch_bytes=20_000) as reader,
            ):
                found: list[Columns] = []
                while not values(found, A1):
                    found.append(await soon(reader.next()))
                assert len(values(found)) < 100

    run(test())


# Opening and closing


def test_unknown_topics_and_partitions_are_refused_when_opening(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                with pytest.raises(UnknownTopics, match="'b'"):
                    await soon(read_all(cluster, {B0: 0}))
                with pytest.raises(
                    BrokerRefused, match=r"a-1: UNKNOWN_TOPIC_OR_PARTITION: the topic has 1 partition$"
                ):
                    await soon(read_all(cluster, {A1: 0}))

    run(test())


def test_a_closed_reader_says_so_and_lets_go_of_its_connections(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"x")
            async with connected(fake) as cluster:
                reader = ColumnReader(cluster, {A0: 0})
                with pytest.raises(ClientClosed, match="not open"):
                    await reader.next()
                await reader.start()
                await fake.broker().asked(ApiKey.FETCH, 2)
                gone = fake.broker().disconnections
                await reader.close()
                await fake.broker().left_by(gone + 1)
                with pytest.raises(ClientClosed):
                    await reader.next()
                await reader.close()

    run(test())


def test_two_readers_do_not_wait_for_each_other(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a", leaders=(1, 1))
            fake.partition("a", 1).append(b"x")
            async with (
                connected(fake, fetch_max_wait_ms=10_000) as cluster,
                ColumnReader(cluster, {A0: 0}),
            ):
                await fake.broker().asked(ApiKey.FETCH)
                assert values(await soon(read_all(cluster, {A1: 0}, until={A1: 1})), A1) == [b"x"]

    run(test())
