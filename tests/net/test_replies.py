"""Replies leave in the order of their requests, whatever order they get ready in."""

import asyncio
import logging
import socket
from typing import Any

import pytest

from headrace.net.connection import FRAMES_PER_ROUND, ServerConnection
from headrace.net.slots import SlotAnswered
from tests.support_net import Echo, Frames, Parking, Run, framed, rounds, site, soon


def test_replies_leave_in_request_order_though_completed_in_another(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b", b"c", b"d")
            await service.arrived(4)
            for index in (2, 0, 3, 1):
                service.slots[index].complete([framed(b"reply %d" % index)])
                await rounds(2)
            assert [await client.reply() for _ in range(4)] == [b"reply %d" % index for index in range(4)]

    run(scenario())


def test_a_request_that_waits_does_not_hold_up_the_handling_of_the_next(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"waits for ever")
            await service.arrived(1)
            await client.ask(b"is handled meanwhile")
            await service.arrived(2)
            assert service.seen == [b"waits for ever", b"is handled meanwhile"]

    run(scenario())


def test_a_request_without_reply_never_shifts_later_replies(run: Run) -> None:
    class SomeWithoutReply(Frames):
        def answer(self, connection: ServerConnection, body: bytes) -> None:
            slot = connection.reserve()
            if body.startswith(b"quiet"):
                slot.discard()
            else:
                slot.complete([framed(body)])

    async def scenario() -> None:
        async with site(SomeWithoutReply()) as place:
            client = await place.connect()
            await client.ask(b"quiet", b"1", b"quiet", b"quiet", b"2", b"quiet", b"3")
            assert [await client.reply() for _ in range(3)] == [b"1", b"2", b"3"]

    run(scenario())


def test_discarding_a_parked_slot_lets_the_replies_behind_it_leave(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b")
            await service.arrived(2)
            service.slots[1].complete([framed(b"b")])
            service.slots[0].discard()
            assert await client.reply() == b"b"

    run(scenario())


@pytest.mark.parametrize("first", ["complete", "discard"])
def test_a_slot_is_answered_once(run: Run, first: str) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            await service.arrived(1)
            slot = service.slots[0]
            if first == "complete":
                slot.complete([framed(b"once")])
            else:
                slot.discard()
            assert slot.is_answered
            with pytest.raises(SlotAnswered):
                slot.complete([framed(b"twice")])
            await rounds()
            with pytest.raises(SlotAnswered):
                slot.discard()

    run(scenario())


def test_those_who_wait_to_answer_are_told_that_the_client_left_and_may_answer_all_the_same(run: Run) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b", b"c")
            await service.arrived(3)
            told: list[str] = []
            closed = asyncio.Event()
            service.slots[0].on_close = lambda: told.append("a")
            service.slots[1].on_close = lambda: told.append("b")
            service.slots[1].complete([framed(b"b")])
            service.slots[2].on_close = lambda: told.append("c")
            connection = service.connections[0]
            connection.when_closed(closed.set)
            assert not connection.closed
            client.close()
            await soon(closed.wait())
            assert connection.closed
            assert told == ["a", "c"]
            for slot in (service.slots[0], service.slots[2]):
                slot.complete([framed(b"too late")])
            assert connection.unsent_bytes == 0

    run(scenario())


def test_a_callback_for_the_end_is_called_at_once_on_a_closed_connection(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a")
            await service.arrived(1)
            connection = service.connections[0]
            connection.close("the test says so", logging.DEBUG)
            called: list[bool] = []
            connection.when_closed(lambda: called.append(True))
            assert called == [True]
            assert connection.close_reason == "the test says so"

    run(scenario())


def test_one_failing_callback_does_not_keep_the_others_from_being_told(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        service = Parking()
        async with site(service) as place:
            client = await place.connect()
            await client.ask(b"a", b"b")
            await service.arrived(2)
            told: list[str] = []

            def fail() -> None:
                raise ValueError("of no use")

            service.slots[0].on_close = fail
            service.slots[1].on_close = lambda: told.append("b")
            service.connections[0].close("enough")
            assert told == ["b"]

    run(scenario())
    assert "of no use" in caplog.text


class CountingSocket(socket.socket):
    """Counts the calls that send."""

    sends = 0

    def send(self, *arguments: Any) -> int:
        """Send, and count."""
        type(self).sends += 1
        return super().send(*arguments)


def test_the_replies_of_one_round_leave_in_one_send(run: Run) -> None:
    async def scenario() -> None:
        class Counting(CountingSocket):
            sends = 0

        service = Echo()
        async with site(service) as place:
            near, far = socket.socketpair()
            near.setblocking(False)
            place.network.limits.admit(place.listener.count, "near")
            connection = ServerConnection(place.listener, Counting(fileno=far.detach()), "near", 1)
            connection._socket.setblocking(False)
            place.listener.connections.add(connection)
            with near:
                near.sendall(framed(b"x") * 100)
                await service.arrived(100)
                await rounds()
                assert Counting.sends == 1
                assert near.recv(1 << 16) == framed(b"x") * 100

    run(scenario())


def test_replies_that_get_ready_together_outside_of_a_request_leave_in_one_send(run: Run) -> None:
    async def scenario() -> None:
        class Counting(CountingSocket):
            sends = 0

        service = Parking()
        async with site(service) as place:
            near, far = socket.socketpair()
            near.setblocking(False)
            place.network.limits.admit(place.listener.count, "near")
            connection = ServerConnection(place.listener, Counting(fileno=far.detach()), "near", 1)
            connection._socket.setblocking(False)
            place.listener.connections.add(connection)
            with near:
                near.sendall(framed(b"x") * 10)
                await service.arrived(10)
                for slot in service.slots:
                    slot.complete([framed(b"y")])
                await rounds()
                assert Counting.sends == 1
                assert near.recv(1 << 16) == framed(b"y") * 10

    run(scenario())


def test_a_client_with_very_many_requests_does_not_keep_others_waiting(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            greedy, modest = await place.connect(), await place.connect()
            await place.accepted(2)
            # Both are sent before the loop looks again: all of them are there in the same round.
            greedy.socket.send(framed(b"g") * (4 * FRAMES_PER_ROUND))
            modest.socket.send(framed(b"m"))
            await service.arrived(4 * FRAMES_PER_ROUND + 1)
            assert service.seen.index(b"m") <= 2 * FRAMES_PER_ROUND
            assert await greedy.take(5 * 4 * FRAMES_PER_ROUND) == framed(b"g") * (4 * FRAMES_PER_ROUND)
            assert await modest.reply() == b"m"

    run(scenario())
