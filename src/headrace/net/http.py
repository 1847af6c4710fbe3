"""A minimal HTTP server for pages that a machine reads, such as /metrics. GET and HEAD, one request each."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.net.listener import CannotListen

HEAD_BYTES_MAX: Final = 8 * 1024
TIMEOUT_SECONDS: Final = 10.0
CONNECTIONS_MAX: Final = 32
#: Lines of a page that are made before the loop may do something else.
LINES_PER_SLICE: Final = 200

logger = logging.getLogger("headrace.net")


@dataclass(slots=True, frozen=True)
class Page:
    """A page that is made anew whenever it is asked for."""

    content_type: str
    lines: Callable[[], Iterator[str]]


class HttpEndpoint:
    """Serves a few pages by their path."""

    def __init__(
        self,
        host: str | None,
        port: int,
        pages: Mapping[str, Page],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.host = host or None
        self.port = port
        self._pages = pages
        self._timeout_seconds = timeout_seconds
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen; `port` is what the system chose if it was 0."""
        try:
            self._server = await asyncio.start_server(
                self._on_client, self.host, self.port, limit=HEAD_BYTES_MAX
            )
        except OSError as error:
            where = f"{self.host or 'all interfaces'} port {self.port}"
            raise CannotListen(f"the HTTP endpoint can't listen on {where}: {error}") from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more, and cut off who is being served."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._tasks.add(task)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._serve(reader, writer)
        except TimeoutError:
            logger.info("an HTTP client took longer than %g s", self._timeout_seconds)
        except (OSError, EOFError) as error:
            logger.debug("an HTTP client left: %s", error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            await _reply(writer, "431 Request Header Fields Too Large", "text/plain", b"headers too large\n")
            return
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            await _reply(writer, "400 Bad Request", "text/plain", b"not an HTTP/1 request\n")
        elif words[0] not in ("GET", "HEAD"):
            await _reply(
                writer, "405 Method Not Allowed", "text/plain", b"only GET and HEAD\n", "Allow: GET, HEAD\r\n"
            )
        else:
            await self._serve_page(writer, words[1].partition("?")[0], has_body=words[0] == "GET")

    async def _serve_page(self, writer: asyncio.StreamWriter, path: str, *, has_body: bool) -> None:
        page = self._pages.get(path)
        if page is None:
            known = "".join(f"{known}\n" for known in self._pages)
            await _reply(writer, "404 Not Found", "text/plain", known.encode(), has_body=has_body)
            return
        await _reply(writer, "200 OK", page.content_type, await _made(page), has_body=has_body)


async def _made(page: Page) -> bytes:
    """A page, made in slices so that a long one does not hold up the loop."""
    lines: list[str] = []
    for line in page.lines():
        lines.append(line)
        if len(lines) % LINES_PER_SLICE == 0:
            await asyncio.sleep(0)
    return "".join(lines).encode()


async def _reply(
    writer: asyncio.StreamWriter,
    status: str,
    content_type: str,
    body: bytes,
    extra: str = "",
    *,
    has_body: bool = True,
) -> None:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        f"{extra}Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + (body if has_body else b""))
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
