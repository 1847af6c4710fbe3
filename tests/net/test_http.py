"""The page for Prometheus: what it answers, and what it does not put up with."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from headrace.metrics.exposition import CONTENT_TYPE, render
from headrace.metrics.registry import Registry
from headrace.net.http import CONNECTIONS_MAX, HEAD_BYTES_MAX, HttpEndpoint, Page
from headrace.net.listener import CannotListen
from headrace.net.network_metrics import register_network
from tests.support_net import Echo, Run, site, soon

LINES = [f"line {index}\n" for index in range(1000)]


@asynccontextmanager
async def endpoint(timeout_seconds: float = 60) -> AsyncIterator[HttpEndpoint]:
    """An endpoint with one page."""

    def lines() -> Iterator[str]:
        yield from LINES

    pages = {"/metrics": Page("text/plain", lines)}
    serving = HttpEndpoint("127.0.0.1", 0, pages, timeout_seconds=timeout_seconds)
    await serving.start()
    try:
        yield serving
    finally:
        await serving.stop()


async def exchange(port: int, request: bytes) -> tuple[str, dict[str, str], bytes]:
    """Status, headers and body of the answer to a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *headers = head.decode().split("\r\n")
    return status, dict(header.split(": ", 1) for header in headers), body


def test_a_page_is_served(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            request = b"GET /metrics?name=x HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n"
            status, headers, body = await exchange(serving.port, request)
            assert status == "HTTP/1.1 200 OK"
            assert body == "".join(LINES).encode()
            assert headers == {
                "Content-Type": "text/plain",
                "Content-Length": str(len(body)),
                "Connection": "close",
            }

    run(scenario())


def test_the_head_of_a_page_has_no_body(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            status, headers, body = await exchange(serving.port, b"HEAD /metrics HTTP/1.1\r\n\r\n")
            assert status == "HTTP/1.1 200 OK"
            assert headers["Content-Length"] == str(len("".join(LINES)))
            assert body == b""

    run(scenario())


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", "404 Not Found"),
        (b"GET /metrics/ HTTP/1.0", "404 Not Found"),
        (b"POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        (b"GET /metrics", "400 Bad Request"),
        (b"GET /metrics SPDY/9", "400 Bad Request"),
        (b"\x00\x00\x00\x10 \xff\xfe", "400 Bad Request"),
        (
            b"GET /metrics HTTP/1.1\r\nX: " + b"x" * (2 * HEAD_BYTES_MAX),
            "431 Request Header Fields Too Large",
        ),
    ],
)
def test_what_is_not_a_request_for_a_page_is_refused(run: Run, request_line: bytes, status: str) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            answer, _, _ = await exchange(serving.port, request_line + b"\r\n\r\n")
            assert answer == f"HTTP/1.1 {status}"

    run(scenario())


def test_a_client_that_says_nothing_is_cut_off(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint(timeout_seconds=0.01) as serving:
            assert await exchange(serving.port, b"GET /met") == ("", {}, b"")

    run(scenario())


def test_only_so_many_clients_are_served_at_once(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            waiting = [
                await asyncio.open_connection("127.0.0.1", serving.port) for _ in range(CONNECTIONS_MAX)
            ]
            assert await exchange(serving.port, b"") == ("", {}, b"")
            for _, writer in waiting:
                writer.close()

    run(scenario())


def test_stopping_cuts_off_who_is_being_served(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            writer.write(b"GET /half")
            await writer.drain()
            await soon(serving.stop())
            async with asyncio.timeout(60):
                assert await reader.read() == b""
            writer.close()

    run(scenario())


def test_a_port_that_is_taken_is_named(run: Run) -> None:
    async def scenario() -> None:
        async with endpoint() as serving:
            second = HttpEndpoint("127.0.0.1", serving.port, {})
            with pytest.raises(CannotListen, match=f"HTTP endpoint can't listen on .* port {serving.port}"):
                await second.start()

    run(scenario())


def test_the_networks_own_metrics_can_be_read(run: Run) -> None:
    async def scenario() -> None:
        async with site(Echo()) as place:
            registry = Registry()
            register_network(registry, place.network)
            client = await place.connect()
            await client.ask(b"1", b"2")
            assert [await client.reply() for _ in range(2)] == [b"1", b"2"]
            page = "".join(render(registry))
            for line in (
                'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"} 1',
                'kafka_server_socket_server_metrics_connection_creation_total{listener="PLAINTEXT"} 1',
                'kafka_server_socket_server_metrics_request_total{listener="PLAINTEXT"} 2',
                'kafka_server_socket_server_metrics_incoming_byte_total{listener="PLAINTEXT"} 10',
                'kafka_server_socket_server_metrics_outgoing_byte_total{listener="PLAINTEXT"} 10',
            ):
                assert line in page.splitlines()
            assert "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent " in page
            assert "kafka_network_socketserver_networkprocessoravgidlepercent " in page
            serving = HttpEndpoint("127.0.0.1", 0, {"/metrics": Page(CONTENT_TYPE, lambda: render(registry))})
            await serving.start()
            _, headers, body = await exchange(serving.port, b"GET /metrics HTTP/1.1\r\n\r\n")
            assert headers["Content-Type"] == CONTENT_TYPE
            assert b"# TYPE kafka_server_socket_server_metrics_connection_count gauge" in body
            await serving.stop()

    run(scenario())


def test_two_listeners_of_one_name_are_one_metric(run: Run) -> None:
    async def scenario() -> None:
        service = Echo()
        async with site(service) as place:
            registry = Registry()
            register_network(registry, place.network)
            again = place.add_listener("PLAINTEXT", service)
            for listener in (place.listener, again):
                client = await place.connect(listener)
                await client.ask(b"1")
                assert await client.reply() == b"1"
            lines = "".join(render(registry)).splitlines()
            name = 'kafka_server_socket_server_metrics_connection_count{listener="PLAINTEXT"}'
            assert [line for line in lines if line.startswith(name)] == [f"{name} 2"]

    run(scenario())
