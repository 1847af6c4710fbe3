"""A cluster where two things happen at once: closing, cancelling, refreshing, losing connections."""

import asyncio
from typing import Any

import pytest

from headrace.client.cluster import Cluster
from headrace.client.errors import ConnectionLost, Unreachable
from headrace.client.link import Link
from headrace.client.metadata import Broker
from headrace.protocol.api_table import ApiKey
from headrace.protocol.messages.metadata import MetadataRequest
from headrace.testing.entropy import SeededEntropy
from tests.client.conftest import Run
from tests.support_client import HOST, Exchange, connected, fake_cluster, hang_up, raw, soon, when


def test_a_refresh_that_began_earlier_proves_nothing_about_a_topic(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            fake.create("a")
            fake.create("b")
            async with connected(fake, topic_wait_ms=0) as cluster:
                await cluster.topics(["a"])
                answer = asyncio.Event()
                fake.broker().next(ApiKey.METADATA, when(answer))
                earlier = asyncio.create_task(cluster.refresh())
                await fake.broker().asked(ApiKey.METADATA, 3)
                wanted = asyncio.create_task(cluster.topics(["b"]))
                await asyncio.sleep(0)
                answer.set()
                assert list(await soon(wanted)) == ["b"]
                await earlier

    run(test())


def test_two_who_ask_the_bootstrap_servers_do_not_take_each_others_connection(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster(2) as fake:
            bootstrap = fake.broker(2)
            bootstrap.is_listed = False
            async with connected(fake, bootstrap_servers=[bootstrap.address]) as cluster:
                await fake.broker(1).stop()
                answer = asyncio.Event()
                bootstrap.next(ApiKey.METADATA, when(answer))
                second = asyncio.create_task(cluster.describe_all())
                await bootstrap.asked(ApiKey.METADATA, 2)
                await soon(cluster.refresh())
                answer.set()
                assert list((await soon(second)).brokers) == [1]

    run(test())


def test_who_is_cancelled_while_closing_leaves_no_connection_open(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake:
            cluster = Cluster(fake.config())
            await cluster.start()
            # What has to be waited for when closing is a refresh that will not be hurried.
            stuck = asyncio.Event()
            cluster._refreshing = asyncio.create_task(_stubborn(stuck))
            await asyncio.sleep(0)
            closing = asyncio.create_task(cluster.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            broker = fake.broker()
            await soon(broker.left_by(broker.connections))
            stuck.set()

    run(test())


async def _stubborn(end: asyncio.Event) -> Any:
    while not end.is_set():
        try:
            await end.wait()
        except asyncio.CancelledError:
            continue


def test_a_connection_that_is_lost_takes_its_timer_along(run: Run) -> None:
    async def test() -> None:
        async with fake_cluster() as fake, connected(fake) as cluster:
            (node,) = cluster.metadata.brokers
            timers = set()
            for _ in range(3):
                await cluster.send(node, MetadataRequest(topics=[]))
                timers.add(_link(cluster)._idle_timer)
                fake.broker().next(ApiKey.METADATA, hang_up)
                with pytest.raises(ConnectionLost):
                    await cluster.send(node, MetadataRequest(topics=[]))
            assert len(timers) == 3
            assert all(timer is not None and timer.cancelled() for timer in timers)

    run(test())


def _link(cluster: Cluster) -> Link:
    assert cluster._links is not None
    (broker,) = cluster.metadata.brokers.values()
    found = cluster._links.known(broker)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", b"\x00\x00\xff\xff\xff\xff\x7f\xff", b"\x00\x23\x7f\xff\xff\xff"],
    ids=["nothing", "one byte", "no error", "another version"],
)
def test_an_answer_to_the_first_question_that_makes_no_sense_is_told_as_such(run: Run, body: bytes) -> None:
    async def test() -> None:
        async def nonsense(exchange: Exchange) -> None:
            frame = exchange.header.correlation_id.to_bytes(4, "big") + body
            await raw(len(frame).to_bytes(4, "big") + frame)(exchange)

        async with fake_cluster() as fake:
            fake.broker().next(ApiKey.API_VERSIONS, nonsense)
            link = Link(Broker(1, HOST, fake.broker().port), fake.config(), SeededEntropy(1))
            with pytest.raises(Unreachable, match=r"ApiVersions cannot be read .*; is it a Kafka broker\?"):
                await soon(link.ready())
            await link.close()

    run(test())


def test_metadata_of_no_age_are_asked_for_no_faster_than_anything_is_tried_again(run: Run) -> None:
    async def test() -> None:
        pauses: list[float] = []
        async with fake_cluster() as fake:
            sleep = asyncio.sleep

            async def noted(delay: float, result: Any = None) -> Any:
                pauses.append(delay)
                return await sleep(0 if delay else delay, result)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(asyncio, "sleep", noted)
                async with connected(fake, metadata_max_age_ms=0, retry_backoff_ms=250):
                    await fake.broker().asked(ApiKey.METADATA, 5)
        assert set(pauses) - {0} == {0.25}

    run(test())
