"""A thousand clients that say nothing cost next to nothing, and do not keep others waiting."""

import asyncio
import gc
import resource
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.support_net import Client, Echo, Run, site

CONNECTIONS = 1000
DESCRIPTORS = 2 * CONNECTIONS + 200


@pytest.fixture(autouse=True)
def _enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_idle_connections_are_kept_while_one_is_served(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            clients = [await place.connect() for _ in range(CONNECTIONS)]
            await place.accepted(CONNECTIONS)
            lively = await place.connect()
            for index in range(100):
                await lively.ask(b"%d" % index)
                assert await lively.reply() == b"%d" % index
            assert place.network.connections == CONNECTIONS + 1
            for client in clients:
                await client.ask(b"me too")
            assert await asyncio.gather(*map(Client.reply, clients)) == [b"me too"] * CONNECTIONS

    run(scenario())


def test_an_idle_connection_holds_a_few_kilobytes_also_after_large_requests() -> None:
    count = 50

    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            clients = [await place.connect() for _ in range(count)]
            await place.accepted(count)
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            more = [await place.connect() for _ in range(count)]
            await place.accepted(2 * count)
            for client in (*clients, *more):
                sending = asyncio.ensure_future(client.ask(b"x" * 300_000))
                assert len(await client.reply()) == 300_000
                await sending
            service.seen.clear()
            place.network.tick()
            for _ in range(20):
                place.network.tick()
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            # Both ends are in this process: the client's is paid for too.
            assert grown / count < 8192

    asyncio.run(scenario())
