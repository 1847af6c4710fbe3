"""A reader in trouble: it goes on by itself where that loses nothing, and says what happened where not."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.client.column_reader import ColumnReader, Columns
from headrace.client.errors import (
    BrokerRefused,
    ConnectionLost,
    CorruptRecords,
    PositionDiverged,
    PositionOutOfRange,
    TopicRecreated,
    UnknownTopics,
    Unreachable,
)
from headrace.errors import ErrorCode
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from headrace.types import TopicPartition
from tests.client.conftest import Run
from tests.client.test_column_reader import offsets, read_all, values
from tests.support_client import (
    FakeCluster,
    connected,
    fake_cluster,
    half_a_reply,
    hang_up,
    saying,
    silence,
    soon,
    wrong_id,
)
from tests.support_records import good, record

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
NEVER = 10**9


def filled(fake: FakeCluster, count: int = 10, leaders: tuple[int, ...] = (1,)) -> None:
    """A topic with one record per batch."""
    fake.create("a", leaders=leaders)
    for partition in fake.topics["a"].partitions.values():
        for number in range(count):
            partition.append(b"%d" % number)


def expected(count: int = 10) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def read_on(reader: ColumnReader, found: list[Columns] | None = None) -> None:
    """Read until something happens, keeping what comes before."""
    async for columns in reader:
        if found is not None:
            found.append(columns)


SMALL: Mapping[str, Any] = {"max_partition_fetch_bytes": 1}


@pytest.mark.parametrize("action", [hang_up, half_a_reply, wrong_id])
def test_lost_connections_lose_and_repeat_nothing(run: Run, action: Any) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            usual = [action, action, None, action, None, None, action]
            async with connected(fake, **SMALL) as cluster:
                broker = fake.broker()
                for each in usual:
                    broker.next(ApiKey.FETCH, each or _as_usual)
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 10}))) == expected()

    async def _as_usual(exchange: Any) -> None:
        exchange.send(exchange.usual)

    run(test())


def test_a_fetch_without_reply_is_made_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            fake.broker().next(ApiKey.FETCH, silence)
            async with connected(fake, request_timeout_ms=30) as cluster:
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 10}))) == expected()

    run(test())


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_a_session_that_the_broker_gives_up_is_begun_anew(run: Run, code: ErrorCode) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            refusals = [saying(FetchResponse(error_code=code))] * 3
            async with (
                connected(fake, **SMALL) as cluster,
                ColumnReader(cluster, {A0: 0}, until={A0: 10}) as reader,
            ):
                found = [await soon(reader.next())]
                fake.broker().sessions.clear()
                fake.broker().next(ApiKey.FETCH, *refusals)
                found += [columns async for columns in reader]
                assert values(found) == expected()

    run(test())


def _partition_error(fake: FakeCluster, code: int) -> FetchResponse:
    data = PartitionData(partition_index=0, error_code=code, high_watermark=-1)
    topic = fake.topics["a"]
    return FetchResponse(
        responses=[FetchableTopicResponse(topic="a", topic_id=topic.topic_id, partitions=[data])]
    )


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_errors_that_pass_are_got_over(run: Run, code: ErrorCode) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            refusal = saying(_partition_error(fake, code))
            fake.broker().next(ApiKey.FETCH, refusal, refusal, refusal)
            async with connected(fake) as cluster:
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 10}))) == expected()

    run(test())


@pytest.mark.parametrize("hinted", [True, False])
def test_a_new_leader_is_followed(run: Run, hinted: bool) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            if not hinted:
                for broker in fake.brokers.values():
                    broker.versions[ApiKey.FETCH] = (4, 11)
                    broker.versions[ApiKey.METADATA] = (0, 9)
            async with (
                connected(fake, **SMALL) as cluster,
                ColumnReader(cluster, {A0: 0}, until={A0: 10}) as reader,
            ):
                found = [await soon(reader.next())]
                moved = fake.partition("a")
                moved.leader, moved.epoch = 2, 1
                found += [columns async for columns in reader]
                assert values(found) == expected()
                assert fake.broker(2).seen[ApiKey.FETCH]

    run(test())


def test_a_leader_that_dies_is_replaced(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake, leaders=(1, 2))
            ends = {A0: 10, A1: 10}
            async with (
                connected(fake, **SMALL) as cluster,
                ColumnReader(cluster, dict.fromkeys(ends, 0), until=ends) as reader,
            ):
                found: list[Columns] = [await soon(reader.next())]
                await fake.broker(1).stop()
                fake.broker(1).is_listed = False
                moved = fake.partition("a")
                moved.leader, moved.epoch = 2, 1
                found += [columns async for columns in reader]
                assert values(found) == values(found, A1) == expected()

    run(test())


def test_a_partition_without_leader_does_not_hold_up_the_others(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake, leaders=(1, 1))
            fake.partition("a").leader = -1
            ends = {A0: 10, A1: 10}
            async with (
                connected(fake, **SMALL) as cluster,
                ColumnReader(cluster, dict.fromkeys(ends, 0), until=ends) as reader,
            ):
                found: list[Columns] = []
                while len(values(found, A1)) < 10:
                    found.append(await soon(reader.next()))
                assert not values(found)
                fake.partition("a").leader, fake.partition("a").epoch = 1, 1
                found += [columns async for columns in reader]
                assert values(found) == expected()

    run(test())


def test_trouble_that_does_not_pass_is_told_in_bounded_time(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            async with (
                connected(fake, **SMALL) as cluster,
                ColumnReader(cluster, {A0: 0}, until={A0: NEVER}, give_up_ms=100) as reader,
            ):
                await fake.broker().asked(ApiKey.FETCH, 12)
                await fake.broker().stop()
                found: list[Columns] = []
                with pytest.raises((Unreachable, ConnectionLost)) as failure:
                    await read_on(reader, found)
                assert values(found) == expected()
                with pytest.raises(type(failure.value)):
                    await reader.next()

    run(test())


# Positions


@pytest.mark.parametrize(("position", "word"), [(3, "has been deleted"), (11, "is beyond the end")])
def test_a_position_that_is_gone_is_told_with_what_there_is(run: Run, position: int, word: str) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            fake.partition("a").start = 5
            async with connected(fake) as cluster:
                with pytest.raises(PositionOutOfRange, match=f"a-0: offset {position} {word}") as gone:
                    await soon(read_all(cluster, {A0: position}))
            assert (gone.value.position, gone.value.earliest, gone.value.latest) == (position, 5, 10)

    run(test())


def test_what_was_read_before_comes_before_the_error(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake, leaders=(1, 1))
            fake.partition("a", 1).start = 5
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0, A1: 0}) as reader:
                found: list[Columns] = []
                with pytest.raises(PositionOutOfRange, match="a-1"):
                    await read_on(reader, found)
                assert values(found) == expected()

    run(test())


def test_a_topic_that_was_created_again_is_noticed_by_its_id(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            old = fake.topics["a"].topic_id
            async with connected(fake, **SMALL) as cluster:
                async with ColumnReader(cluster, {A0: 0}) as reader:
                    await soon(reader.next())
                    filled(fake, 20)
                    new = fake.topics["a"].topic_id
                    with pytest.raises(TopicRecreated, match="was deleted and created again") as recreated:
                        await read_on(reader)
                    assert (recreated.value.expected, recreated.value.found) == (old, new)
                with pytest.raises(TopicRecreated):
                    await soon(read_all(cluster, {A0: 0}, expected_ids={"a": old}))
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 20}, expected_ids={"a": new}))
                assert len(offsets(found)) == 20

    run(test())


def test_a_topic_that_was_deleted_is_told(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            async with connected(fake, **SMALL) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                await soon(reader.next())
                del fake.topics["a"]
                with pytest.raises(TopicRecreated, match="is gone"):
                    await read_on(reader)

    run(test())


def test_a_topic_that_was_deleted_is_told_without_ids_too(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            fake.broker().versions[ApiKey.METADATA] = (0, 9)
            async with connected(fake, **SMALL) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                await soon(reader.next())
                del fake.topics["a"]
                with pytest.raises(UnknownTopics):
                    await read_on(reader)

    run(test())


@pytest.mark.parametrize(("answer", "diverged_at"), [((0, 4), 4), ((-1, -1), -1)])
def test_a_log_that_was_cut_back_below_the_position_is_told(
    run: Run, answer: tuple[int, int], diverged_at: int
) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                assert len(await soon(reader.next())) == 10
                partition = fake.partition("a")
                partition.leader, partition.epoch = 2, 3
                partition.epoch_ends = {0: answer}
                with pytest.raises(PositionDiverged, match="a-0: the log was cut back") as diverged:
                    await soon(reader.next())
                assert (diverged.value.position, diverged.value.diverged_at) == (10, diverged_at)

    run(test())


def test_a_new_leader_with_the_same_history_is_asked_once_and_read_from(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                assert len(await soon(reader.next())) == 10
                partition = fake.partition("a")
                partition.leader, partition.epoch = 2, 3
                fake.broker(2).next(ApiKey.OFFSET_FOR_LEADER_EPOCH, hang_up)
                partition.append(b"more")
                assert values([await soon(reader.next())]) == [b"more"]
                partition.append(b"and more")
                assert values([await soon(reader.next())]) == [b"and more"]
                asked: list[Any] = fake.broker(2).seen[ApiKey.OFFSET_FOR_LEADER_EPOCH]
                assert len(asked) == 2
                question = asked[0].topics[0].partitions[0]
                assert (question.leader_epoch, question.current_leader_epoch) == (0, 3)

    run(test())


# Damage


def test_a_batch_with_a_wrong_checksum_is_told_after_all_before_it(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake, 3)
            partition = fake.partition("a")
            damaged = bytearray(good(2, base_offset=3).encode())
            damaged[-2] ^= 1
            partition.append_raw(bytes(damaged))
            partition.append(b"behind")
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                assert values([await soon(reader.next())]) == expected(3)
                with pytest.raises(
                    CorruptRecords, match=r"a-0: the records at offset 3 are corrupt: .*checksum"
                ):
                    await soon(reader.next())
                assert reader.positions == {A0: 3}
            async with connected(fake, check_crcs=False) as cluster:
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 6}))
                assert len(offsets(found)) == 6

    run(test())


def test_records_that_do_not_parse_are_told_after_all_before_them(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake, 3)
            partition = fake.partition("a")
            broken = good(2, base_offset=3, payload=record(0) + record(1, length=99))
            partition.append_raw(broken.encode())
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 1}) as reader:
                found: list[Columns] = []
                with pytest.raises(CorruptRecords, match="at offset 3 are corrupt"):
                    await read_on(reader, found)
                assert offsets(found) == [1, 2]
                with pytest.raises(CorruptRecords):
                    await soon(reader.next())

    run(test())


def test_a_broker_that_finds_its_log_damaged_is_believed(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            fake.broker().next(ApiKey.FETCH, saying(_partition_error(fake, ErrorCode.CORRUPT_MESSAGE)))
            async with connected(fake) as cluster:
                with pytest.raises(CorruptRecords, match="a-0: the records at offset 4"):
                    await soon(read_all(cluster, {A0: 4}))

    run(test())


def test_a_refusal_for_good_is_told(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            fake.broker().next(ApiKey.FETCH, saying(_partition_error(fake, code)))
            async with connected(fake) as cluster:
                with pytest.raises(
                    BrokerRefused, match="fetching a-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"
                ):
                    await soon(read_all(cluster, {A0: 0}))

    run(test())


# Replicas nearby


def test_the_replica_that_the_leader_names_is_read_from(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            partition = fake.partition("a")
            partition.read_replica, partition.followers = 2, {2}
            async with connected(fake, client_rack="near", **SMALL) as cluster:
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 10}))) == expected()
            leader: list[Any] = fake.broker(1).seen[ApiKey.FETCH]
            assert [request.rack_id for request in leader] == ["near"]
            assert len(fake.broker(2).seen[ApiKey.FETCH]) == 10

    run(test())


def test_a_replica_in_trouble_sends_back_to_the_leader(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            partition = fake.partition("a")
            partition.read_replica, partition.followers = 2, {2}
            async with (
                connected(fake, client_rack="near", **SMALL) as cluster,
                ColumnReader(cluster, {A0: 0}, until={A0: 10}) as reader,
            ):
                found = [await soon(reader.next())]
                partition.followers = set()
                partition.read_replica = -1
                await fake.broker(2).stop()
                found += [columns async for columns in reader]
                assert values(found) == expected()

    run(test())


def test_a_replica_that_is_behind_does_not_make_a_position_invalid(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            filled(fake)
            partition = fake.partition("a")
            partition.read_replica, partition.followers = 2, {2}
            behind = saying(_partition_error(fake, ErrorCode.OFFSET_OUT_OF_RANGE))
            fake.broker(2).next(ApiKey.FETCH, behind)
            async with connected(fake, client_rack="near") as cluster:
                assert values(await soon(read_all(cluster, {A0: 0}, until={A0: 10}))) == expected()

    run(test())


def test_nothing_is_left_running_after_a_failure(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            filled(fake)
            async with connected(fake) as cluster:
                for _ in range(3):
                    with pytest.raises(PositionOutOfRange):
                        await soon(read_all(cluster, {A0: 99}))
                left = [task.get_name() for task in asyncio.all_tasks()]
                assert not [name for name in left if "reader" in name]

    run(test())
