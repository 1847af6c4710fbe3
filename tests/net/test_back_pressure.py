"""A client that does not read its replies, or asks for too much at once, can't grow the process."""

import asyncio

from headrace.net.connection import FRAMES_PER_ROUND, ServerConnection
from headrace.net.settings import ConnectionSettings
from headrace.net.slots import Slot
from tests.support_net import (
    REPLY_BYTES,
    UNSENT_BYTES_MAX,
    Frames,
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


def test_a_reply_that_fills_the_bound_while_requests_wait_for_their_turn_loses_none(run: Run) -> None:
    count = FRAMES_PER_ROUND + 50
    large = b"l" * 12_000_000

    class FirstLater(Parking):
        def answer(self, connection: ServerConnection, body: bytes) -> None:
            super().answer(connection, body)
            if len(self.slots) == FRAMES_PER_ROUND:
                # Ready after this round and before the rest of the requests have their turn.
                asyncio.get_running_loop().call_soon(self.slots[0].complete, [framed(large)])

    async def scenario() -> None:
        service = FirstLater()
        async with site(service) as place:
            client = await place.connect()
            await place.accepted(1)
            client.socket.send(framed(b"x") * count)
            await service.arrived(FRAMES_PER_ROUND)
            await rounds()
            assert len(service.seen) == FRAMES_PER_ROUND
            assert await client.reply() == large
            await service.arrived(count)
            for slot in service.slots[1:]:
                slot.complete([framed(b"y")])
            assert [await client.reply() for _ in range(count - 1)] == [b"y"] * (count - 1)

    run(scenario())


def test_large_requests_of_all_clients_together_are_bounded_and_wait_for_each_other(run: Run) -> None:
    size = 3_000_000

    async def scenario() -> None:
        service = Frames()
        async with site(service, large_bytes_max=size) as place:
            first, second, third = [await place.connect() for _ in range(3)]
            await first.send(framed(b"1" * size)[:10_000])
            async with asyncio.timeout(60):
                while place.network.buffers.large_bytes == 0:
                    await rounds(1)
            sending = [
                asyncio.ensure_future(client.ask(body * size))
                for client, body in ((second, b"2"), (third, b"3"))
            ]
            await first.send(framed(b"1" * size)[10_000:20_000])
            await rounds(100)
            # Whoever waits is read from a little, and then no more.
            assert place.network.buffers.large_bytes == size + 4
            assert place.listener.bytes_in < 20_000 + 2 * 300_000
            small = await place.connect()
            await small.ask(b"small ones pass")
            await service.arrived(1)
            await first.send(framed(b"1" * size)[20_000:])
            await service.arrived(4)
            assert service.seen[1] == b"1" * size
            assert sorted(service.seen[2:]) == [b"2" * size, b"3" * size]
            assert place.network.buffers.large_bytes == 0
            for task in sending:
                await soon(task)

    run(scenario())


def test_a_large_request_whose_client_leaves_makes_room_for_the_next(run: Run) -> None:
    size = 1_000_000

    async def scenario() -> None:
        service = Frames()
        async with site(service, large_bytes_max=1) as place:
            first, second = await place.connect(), await place.connect()
            await first.send(framed(b"1" * size)[:10_000])
            async with asyncio.timeout(60):
                while place.network.buffers.large_bytes == 0:
                    await rounds(1)
            sending = asyncio.ensure_future(second.ask(b"2" * size))
            await rounds()
            first.close()
            await service.arrived(1)
            assert service.seen == [b"2" * size]
            await soon(sending)

    run(scenario())


class Holding(Frames):
    """Holds the connection at requests that ask for it, and leaves their answers to the test."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[ServerConnection, Slot]] = []

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """At once, but for a request to hold."""
        slot = connection.reserve()
        if body == b"hold":
            connection.hold()
            self.held.append((connection, slot))
        else:
            slot.complete([framed(body)])


def test_nothing_overtakes_a_request_that_holds_its_connection(run: Run) -> None:
    async def scenario() -> None:
        service = Holding()
        async with site(service) as place:
            client, other = await place.connect(), await place.connect()
            await client.ask(b"a", b"hold", b"b", b"x" * 300_000)
            await service.arrived(2)
            await client.ask(b"c")
            await rounds()
            assert service.seen == [b"a", b"hold"]
            await other.ask(b"not concerned")
            assert await other.reply() == b"not concerned"
            ((connection, slot),) = service.held
            slot.complete([framed(b"held")])
            connection.release()
            replies = [await client.reply() for _ in range(5)]
            assert replies == [b"a", b"held", b"b", b"x" * 300_000, b"c"]

    run(scenario())


def test_a_held_connection_can_be_closed_from_either_side(run: Run) -> None:
    async def scenario() -> None:
        service = Holding()
        async with site(service) as place:
            clients = [await place.connect() for _ in range(2)]
            for client in clients:
                await client.ask(b"hold", b"b")
            await service.arrived(2)
            (first, _), (second, _) = service.held
            first.close("for the test")
            first.release()
            assert first.closed
            next(each for each in clients if each.port == second.peer_port).close()
            second.release()
            await soon(service.arrived(3))

    run(scenario())
