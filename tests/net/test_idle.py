"""Connections without traffic are closed after a while, whatever they are in the middle of."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from headrace.net.idle import IdleWheel
from tests.support_net import Client, Echo, Frames, Large, Run, Site, framed, rounds, site, soon

IDLE_MS = 16_000


class Idle:
    """A connection, as far as idleness is concerned."""

    def __init__(self, wheel: IdleWheel) -> None:
        self.active_tick = wheel.tick
        self.due_tick = 0
        self.closed = False

    def close(self, reason: str, level: int = logging.WARNING) -> None:
        """Note that it was closed."""
        self.closed = True


def test_a_connection_is_closed_after_the_idle_time_and_not_before() -> None:
    wheel = IdleWheel(IDLE_MS, now_ms=1000)
    connection = Idle(wheel)
    wheel.add(connection)
    wheel.advance(1000 + IDLE_MS)
    assert not connection.closed
    wheel.advance(1000 + IDLE_MS + 2 * wheel.tick_ms)
    assert connection.closed


def test_traffic_puts_the_end_off() -> None:
    wheel = IdleWheel(IDLE_MS, now_ms=0)
    lively, quiet = Idle(wheel), Idle(wheel)
    wheel.add(lively)
    wheel.add(quiet)
    for now_ms in range(0, 10 * IDLE_MS, 1000):
        wheel.advance(now_ms)
        lively.active_tick = wheel.tick
    assert quiet.closed
    assert not lively.closed
    wheel.advance(12 * IDLE_MS)
    assert lively.closed


def test_a_long_pause_of_the_clock_is_no_harm() -> None:
    wheel = IdleWheel(IDLE_MS, now_ms=0)
    connections = [Idle(wheel) for _ in range(100)]
    for connection in connections:
        wheel.add(connection)
    wheel.advance(10**12)
    assert all(connection.closed for connection in connections)
    assert wheel._due == {}


def test_a_negative_idle_time_keeps_connections_open() -> None:
    wheel = IdleWheel(-1, now_ms=0)
    connection = Idle(wheel)
    wheel.add(connection)
    wheel.advance(10**12)
    assert not connection.closed


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    wheel = IdleWheel(600_000, now_ms=0)
    for now_ms in range(0, 100_000, 10):
        wheel.advance(now_ms)
        connection = Idle(wheel)
        wheel.add(connection)
        connection.closed = True
        wheel.remove(connection)
    assert wheel._due == {}


def test_one_closing_may_close_others() -> None:
    wheel = IdleWheel(IDLE_MS, now_ms=0)
    second = Idle(wheel)

    class Closing(Idle):
        def close(self, reason: str, level: int = logging.WARNING) -> None:
            super().close(reason, level)
            second.closed = True
            wheel.remove(second)

    first = Closing(wheel)
    wheel.add(first)
    wheel.add(second)
    wheel.advance(3 * IDLE_MS)
    assert first.closed
    assert wheel._due == {}


async def _let_idle(place: Site) -> None:
    await rounds()
    place.clock.advance(2 * IDLE_MS)
    place.network.tick()


async def _nothing(client: Client) -> None:
    """Send nothing at all."""


async def _half_a_size(client: Client) -> None:
    await client.send(b"\x00\x00")


async def _half_a_request(client: Client) -> None:
    await client.send(framed(b"x" * 100_000)[:50_000])


@pytest.mark.parametrize("before", [_nothing, _half_a_size, _half_a_request])
def test_silence_is_answered_by_closing(
    run: Run, before: Callable[[Client], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.net")

    async def scenario() -> None:
        async with site(Frames(), idle_ms_max=IDLE_MS) as place:
            client = await place.connect()
            await place.accepted(1)
            await before(client)
            await _let_idle(place)
            assert await client.rest() == b""

    run(scenario())
    assert f"no traffic for {IDLE_MS} ms" in caplog.text


def test_a_client_that_stops_taking_its_replies_is_closed(run: Run) -> None:
    async def scenario() -> None:
        service = Large()
        async with site(service, idle_ms_max=IDLE_MS) as place:
            client = await place.connect()
            await client.ask(*[b"x"] * 400)
            await soon(service.is_full.wait())
            await _let_idle(place)
            assert service.connections[0].closed
            assert place.network.connections == 0

    run(scenario())


def test_requests_keep_a_connection_open(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), idle_ms_max=IDLE_MS) as place:
            client = await place.connect()
            for _ in range(20):
                place.clock.advance(IDLE_MS // 2)
                place.network.tick()
                await client.ask(b"a")
                assert await client.reply() == b"a"

    run(scenario())


def test_the_network_looks_at_the_clock_by_itself(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), idle_ms_max=10) as place:
            client = await place.connect()
            await place.accepted(1)
            place.clock.advance(1000)
            async with asyncio.timeout(60):
                assert await client.rest() == b""

    run(scenario())
