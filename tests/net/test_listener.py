"""Who is let in: limits in all, per listener, per address and per second; and what the sockets are set to."""

import asyncio
import logging
import socket

import pytest

from headrace.config.node import NodeConfig
from headrace.net.limits import UNLIMITED, ListenerLimits, NodeLimits, Rate, SocketBudget
from headrace.net.listener import CannotListen, Listener
from headrace.net.network import Network
from headrace.net.settings import ConnectionSettings
from headrace.testing.clock import ManualClock
from tests.support_net import Echo, Run, rounds, site


def test_connections_beyond_the_limit_of_their_address_are_refused(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.net")

    async def scenario() -> None:
        async with site(Echo(), limits=NodeLimits(connections_per_ip_max=2)) as place:
            first, second, third = [await place.connect() for _ in range(3)]
            assert await third.rest() == b""
            assert place.listener.refused == 1
            await first.ask(b"still here")
            assert await first.reply() == b"still here"
            second.close()
            await place.open_connections(1)
            fourth = await place.connect()
            await fourth.ask(b"let in")
            assert await fourth.reply() == b"let in"

    run(scenario())
    assert "refused a connection from 127.0.0.1, which has the maximum of 2" in caplog.text


def test_an_address_may_have_a_limit_of_its_own(run: Run) -> None:
    async def scenario() -> None:
        limits = NodeLimits(connections_per_ip_max=0, connections_per_ip_overrides={"127.0.0.1": 1})
        async with site(Echo(), limits=limits) as place:
            first, second = await place.connect(), await place.connect()
            assert await second.rest() == b""
            await first.ask(b"a")
            assert await first.reply() == b"a"

    run(scenario())


@pytest.mark.parametrize("which", ["node", "listener"])
def test_connections_beyond_the_limit_wait_until_there_is_room(
    run: Run, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        node = NodeLimits(connections_max=2 if which == "node" else UNLIMITED)
        own = ListenerLimits(connections_max=2 if which == "listener" else UNLIMITED)
        async with site(Echo(), limits=node, listener_limits=own) as place:
            first, _, third = [await place.connect() for _ in range(3)]
            await third.ask(b"patient")
            await place.accepted(2)
            await rounds()
            assert place.listener.accepted == 2
            first.close()
            assert await third.reply() == b"patient"
            assert place.network.connections == 2

    run(scenario())
    assert caplog.text.count("accepts no more connections") == 1


def test_connections_beyond_the_descriptors_wait_and_the_reason_is_told(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with site(Echo(), limits=NodeLimits(), sockets=SocketBudget(2)) as place:
            first, _, third = [await place.connect() for _ in range(3)]
            await third.ask(b"patient")
            await place.accepted(2)
            await rounds()
            assert place.listener.accepted == 2
            first.close()
            assert await third.reply() == b"patient"

    run(scenario())
    assert "it has 2 of 2 in all: the process can have 2 connections besides its files" in caplog.text


def test_a_raised_limit_lets_in_who_waited(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), limits=NodeLimits(connections_max=1)) as place:
            await place.connect()
            second = await place.connect()
            await second.ask(b"patient")
            await place.accepted(1)
            await rounds()
            place.network.limits.change(NodeLimits(connections_max=2))
            assert await second.reply() == b"patient"

    run(scenario())


def test_a_raised_limit_of_a_listener_lets_in_who_waited(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), listener_limits=ListenerLimits(connections_max=0)) as place:
            client = await place.connect()
            await client.ask(b"patient")
            await rounds()
            assert place.listener.accepted == 0
            place.network.limits.change_listener(place.listener.count, ListenerLimits())
            assert await client.reply() == b"patient"

    run(scenario())


def test_a_protected_listener_gets_in_at_the_cost_of_the_client_that_was_quiet_for_longest(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), limits=NodeLimits(connections_max=2)) as place:
            brokers = place.add_listener("BROKERS", Echo(), ListenerLimits(is_protected=True))
            quiet, lively = await place.connect(), await place.connect()
            await place.accepted(2)
            place.clock.advance(5000)
            place.network.tick()
            await lively.ask(b"a")
            assert await lively.reply() == b"a"
            broker = await place.connect(brokers)
            await broker.ask(b"b")
            assert await broker.reply() == b"b"
            assert await quiet.rest() == b""
            await lively.ask(b"c")
            assert await lively.reply() == b"c"

    run(scenario())


def test_connections_above_the_rate_are_accepted_later(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo(), limits=NodeLimits(creation_rate_max=5)) as place:
            clients = [await place.connect() for _ in range(6)]
            await place.accepted(5)
            await rounds()
            assert place.listener.accepted == 5
            # The clock of the test stands still: only when it moves is there room for the sixth.
            place.clock.advance(1000)
            await clients[5].ask(b"a")
            assert await clients[5].reply() == b"a"

    run(scenario())


def test_a_rate_allows_a_seconds_worth_at_once_and_then_one_after_the_other() -> None:
    rate = Rate(10, now_ms=0)
    for _ in range(10):
        assert rate.delay_ms(0) == 0
        rate.take()
    assert rate.delay_ms(0) == 100
    assert rate.delay_ms(60) == 40
    assert rate.delay_ms(100) == 0
    rate.take()
    assert rate.delay_ms(100) == 100
    assert rate.delay_ms(1_000_000) == 0
    for _ in range(10):
        rate.take()
    assert rate.delay_ms(1_000_000) == 100


def test_without_a_rate_nothing_waits_and_with_a_rate_of_zero_everything_does() -> None:
    free, none = Rate(UNLIMITED, 0), Rate(0, 0)
    for _ in range(1000):
        assert free.delay_ms(0) == 0
        free.take()
    assert none.delay_ms(0) > 0
    assert none.delay_ms(1_000_000) > 0


def test_a_port_that_is_taken_is_named(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            port = place.listener.port
            second = Listener(place.network, "SECOND", "127.0.0.1", port, Echo())
            with pytest.raises(CannotListen, match=f"SECOND can't listen on 127.0.0.1 port {port}"):
                second.start()

    run(scenario())


def test_an_unknown_host_is_named(run: Run) -> None:
    async def scenario() -> None:
        network = Network(asyncio.get_running_loop(), ManualClock())
        with pytest.raises(CannotListen, match=r"no\.such\.host\.invalid"):
            Listener(network, "X", "no.such.host.invalid", 0, Echo()).start()

    run(scenario())


def test_a_listener_without_host_takes_both_kinds_of_addresses_and_names_clients_plainly(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            everywhere = Listener(place.network, "EVERYWHERE", None, 0, service)
            everywhere.start()
            client = await place.connect(everywhere)
            await client.ask(b"a")
            assert await client.reply() == b"a"
            connection = service.connections[0]
            assert connection.peer_host == "127.0.0.1"
            assert connection.peer == "/127.0.0.1"
            assert connection.listener_name == "EVERYWHERE"
            assert str(connection) == f"127.0.0.1:{client.port} on EVERYWHERE"

    run(scenario())


def test_an_opened_listener_keeps_connections_waiting_until_it_is_started(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            later = Listener(place.network, "LATER", "127.0.0.1", 0, service)
            later.open()
            client = await place.connect(later)
            await client.ask(b"a")
            await rounds()
            assert service.seen == []
            later.start()
            assert await client.reply() == b"a"

    run(scenario())


def test_accepted_sockets_get_the_configured_options(run: Run) -> None:
    async def scenario() -> None:
        settings = ConnectionSettings(send_buffer_bytes=50_000, receive_buffer_bytes=60_000)
        async with site(Echo(), settings) as place:
            client = await place.connect()
            await place.accepted(1)
            sock = place.served(client)._socket
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (50_000, 100_000)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (60_000, 120_000)
            assert not sock.getblocking()

    run(scenario())


def test_running_out_of_descriptors_delays_clients_and_is_logged(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            failing = FailingOnce(place.listener._socket)
            place.listener._pause()
            place.listener._socket = failing  # type: ignore[assignment]
            place.listener._resume()
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            assert failing.failures == 1

    class FailingOnce:
        def __init__(self, sock: socket.socket | None) -> None:
            assert sock is not None
            self._sock = sock
            self.failures = 0

        def fileno(self) -> int:
            return self._sock.fileno()

        def accept(self) -> object:
            if not self.failures:
                self.failures += 1
                raise OSError(24, "Too many open files")
            return self._sock.accept()

        def close(self) -> None:
            self._sock.close()

    run(scenario())
    assert "can't accept a connection: [Errno 24] Too many open files" in caplog.text


def test_settings_come_from_the_configuration_and_a_listener_may_have_its_own() -> None:
    config = NodeConfig(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "socket.request.max.bytes": "5000",
            "socket.send.buffer.bytes": "-1",
            "listener.name.inside.socket.receive.buffer.bytes": "7000",
        }
    )
    settings = ConnectionSettings.of(config.for_listener("INSIDE"))
    assert settings.request_bytes_max == 5000
    assert settings.send_buffer_bytes == -1
    assert settings.receive_buffer_bytes == 7000
    assert settings.requests_outstanding_max == 500
    assert settings.backlog == 50


def test_a_listener_that_is_started_twice_is_counted_once(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            place.listener.start()
            client = await place.connect()
            await client.ask(b"a")
            assert await client.reply() == b"a"
            assert place.listener.network.listeners == [place.listener]
            assert place.listener.network.bytes_in == place.listener.bytes_in

    run(scenario())
