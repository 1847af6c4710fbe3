"""A client that does not read its replies, or asks for too much at once, can't grow the process."""

import asyncio

from headrace.net.settings import ConnectionSettings
from tests.support_net import (
    REPLY_BYTES,
    UNSENT_BYTES_MAX,
    Large,
    Parking,
    Replying,
    Run,
    framed,
    rounds,
    site,
    soon,
)


def test_reading_stops_while_the_client_does_not_take_its_replies_and_goes_on_after(run: Run) -> None:
    bodies = [b"%d" % index for index in range(400)]

    async def scenario() -> None:
        service = Large()
        bound = ConnectionSettings(unsent_bytes_max=UNSENT_BYTES_MAX)
        async with site(service, bound) as place:
            client = await place.connect()
            await client.ask(*bodies)
            await soon(service.is_full.wait())
            await rounds()
            handled = len(service.seen)
            connection = service.connections[0]
            assert handled < len(bodies)
            assert connection.unsent_bytes <= UNSENT_BYTES_MAX + REPLY_BYTES + 4
            await rounds()
            assert len(service.seen) == handled
            for body in bodies:
                assert (await client.reply()).rstrip(b".") == body
            assert connection.unsent_bytes == 0

    run(scenario())


def test_a_client_that_only_writes_is_not_read_from_for_ever(run: Run) -> None:
    async def scenario() -> None:
        service = Replying(lambda body: [framed(body * 10)])
        async with site(service, ConnectionSettings(unsent_bytes_max=UNSENT_BYTES_MAX)) as place:
            client = await place.connect()
            body = b"z" * 10_000
            sending = asyncio.ensure_future(client.ask(*[body] * 2000))
            await service.arrived(1)
            connection = service.connections[0]
            async with asyncio.timeout(60):
                while connection._is_reading or not connection._is_writing:
                    await rounds(1)
            await rounds()
            assert not sending.done()
            assert connection.unsent_bytes <= UNSENT_BYTES_MAX + 10 * len(body) + 4
            for _ in range(2000):
                assert await client.reply() == body * 10
            await soon(sending)

    run(scenario())


def test_only_so_many_requests_wait_for_their_reply(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service, ConnectionSettings(requests_outstanding_max=10)) as place:
            client = await place.connect()
            bodies = [b"%d" % index for index in range(50)]
            await client.ask(*bodies)
            await service.arrived(10)
            await rounds()
            assert len(service.seen) == 10
            # The reply of a later one does not make room: it can't leave before the first.
            service.slots[5].complete([framed(b"5")])
            await rounds()
            assert len(service.seen) == 10
            service.slots[0].complete([framed(b"0")])
            await service.arrived(11)
            await rounds()
            assert len(service.seen) == 11
            answered = {0, 5}
            for index in range(50):
                await service.arrived(index + 1)
                if index not in answered:
                    service.slots[index].complete([framed(b"%d" % index)])
                assert await client.reply() == b"%d" % index
            assert service.seen == bodies

    run(scenario())


def test_one_request_at_a_time_is_a_bound_too(run: Run) -> None:
    async def scenario() -> None:
        service = Replying(lambda body: [framed(body)])
        async with site(service, ConnectionSettings(requests_outstanding_max=1)) as place:
            client = await place.connect()
            bodies = [b"%d" % index for index in range(300)]
            await client.ask(*bodies)
            assert [await client.reply() for _ in bodies] == bodies

    run(scenario())


def test_large_requests_behind_one_that_waits_are_not_lost(run: Run) -> None:
    bodies = [b"a" * 10, b"b" * 70_000, b"c" * 10, b"d" * 300_000, b"e" * 5000, b"f"]

    async def scenario() -> None:
        service = Parking()
        async with site(service, ConnectionSettings(requests_outstanding_max=1)) as place:
            client = await place.connect()
            sending = asyncio.ensure_future(client.ask(*bodies))
            for index, body in enumerate(bodies):
                await service.arrived(index + 1)
                await rounds(3)
                assert len(service.seen) == index + 1
                service.slots[index].complete([framed(body)])
                assert await client.reply() == body
            await soon(sending)
            assert service.seen == bodies

    run(scenario())


def test_a_client_that_is_not_read_from_and_leaves_does_no_harm(run: Run) -> None:
    async def scenario() -> None:
        service = Large()
        async with site(service, ConnectionSettings(unsent_bytes_max=UNSENT_BYTES_MAX)) as place:
            client = await place.connect()
            await client.ask(*[b"x"] * 400)
            await soon(service.is_full.wait())
            client.close()
            await place.open_connections(0)
            assert service.connections[0].unsent_bytes == 0

    run(scenario())
