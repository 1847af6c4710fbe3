"""A reader where two things happen at once: closing, cancelling, forgetting, topics that change."""

import asyncio
from typing import Any

import pytest

from headrace.client.column_reader import ColumnReader
from headrace.client.errors import ClientClosed, PositionOutOfRange, TopicRecreated
from headrace.client.fetching import Fetcher
from headrace.client.offsets import EARLIEST, MAX_TIMESTAMP
from headrace.protocol.api_table import ApiKey
from headrace.types import TopicPartition
from tests.client.conftest import Run
from tests.client.test_column_reader import read_all, values
from tests.support_client import connected, fake_cluster, silence, soon

A0 = TopicPartition("a", 0)


def test_who_waits_for_records_is_told_that_the_reader_was_closed(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                reader = ColumnReader(cluster, {A0: 0})
                await reader.start()
                waiting = asyncio.create_task(reader.next())
                await fake.broker().asked(ApiKey.FETCH)
                await reader.close()
                with pytest.raises(ClientClosed):
                    await soon(waiting)

    run(test())


@pytest.mark.parametrize("part", ["_start_fetches", "_node_for"])
def test_a_mistake_of_our_own_is_raised_rather_than_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError(part)

    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            monkeypatch.setattr(Fetcher, part, broken)
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                with pytest.raises(ZeroDivisionError):
                    await soon(reader.next())

    run(test())


def test_a_topic_that_is_being_read_is_in_use(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster, ColumnReader(cluster, {A0: 0}) as reader:
                waiting = asyncio.create_task(reader.next())
                cluster.in_use.use("a", asyncio.get_running_loop().time() - 400)
                fetched = len(fake.broker().seen[ApiKey.FETCH])
                await fake.broker().asked(ApiKey.FETCH, fetched + 2)
                await cluster.refresh()
                assert list(cluster.metadata.topics) == ["a"]
                waiting.cancel()

    run(test())


def test_a_reader_of_a_topic_created_again_reads_the_topic_there_is(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"old")
            async with connected(fake) as cluster:
                assert values(await soon(read_all(cluster, {A0: EARLIEST}, until={A0: 1}))) == [b"old"]
                old = fake.topics["a"].topic_id
                fake.create("a").partitions[0].append(b"new")
                assert values(await soon(read_all(cluster, {A0: EARLIEST}, until={A0: 1}))) == [b"new"]
                with pytest.raises(TopicRecreated):
                    await soon(read_all(cluster, {A0: 0}, until={A0: 1}, expected_ids={"a": old}))

    run(test())


def test_an_id_that_is_newer_than_what_is_known_is_no_other_topic(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            async with connected(fake) as cluster:
                await cluster.topics(["a"])
                fake.create("a").partitions[0].append(b"new")
                expected = {"a": fake.topics["a"].topic_id}
                found = await soon(read_all(cluster, {A0: 0}, until={A0: 1}, expected_ids=expected))
                assert values(found) == [b"new"]

    run(test())


def test_an_id_that_is_known_already_is_not_asked_for_again(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            topic = fake.create("a")
            topic.partitions[0].append(b"x")
            async with connected(fake) as cluster:
                await cluster.topics(["a"])
                asked = len(fake.broker().seen[ApiKey.METADATA])
                expected = {"a": topic.topic_id}
                await soon(read_all(cluster, {A0: 0}, until={A0: 1}, expected_ids=expected))
                assert len(fake.broker().seen[ApiKey.METADATA]) == asked

    run(test())


def test_a_broker_that_goes_while_a_position_is_judged_is_waited_for(run: Run) -> None:
    """It said that the position is out of range, and then nobody could say what the range is."""

    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a").partitions[0].append(b"x")
            fake.broker().next(ApiKey.LIST_OFFSETS, silence)
            async with (
                connected(fake, default_api_timeout_ms=1000) as cluster,
                ColumnReader(cluster, {A0: 7}, give_up_ms=None) as reader,
            ):
                with pytest.raises(PositionOutOfRange):
                    await soon(reader.next())
                assert len(fake.broker().seen[ApiKey.LIST_OFFSETS]) == 3

    run(test())


def test_a_position_that_is_no_offset_is_refused(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            with pytest.raises(ValueError, match="EARLIEST or LATEST"):
                ColumnReader(cluster, {A0: MAX_TIMESTAMP})

    run(test())
