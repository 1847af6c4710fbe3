"""A network on loopback, services that say what they saw, and clients that read only when told to."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from headrace.net.connection import ServerConnection
from headrace.net.limits import ListenerLimits, NodeLimits, SocketBudget
from headrace.net.listener import Listener
from headrace.net.network import Network
from headrace.net.service import Service
from headrace.net.settings import ConnectionSettings
from headrace.net.slots import Slot
from headrace.ports import File
from headrace.system.disk import RealDisk
from headrace.testing.clock import ManualClock

PATIENCE_SECONDS = 60
REPLY_BYTES = 100_000
UNSENT_BYTES_MAX = 1_000_000


class Run(Protocol):
    """Runs a test's coroutine on one of the loops."""

    def __call__(self, coroutine: Coroutine[Any, Any, None]) -> None: ...


async def soon(event: Awaitable[Any]) -> None:
    """Wait for what has to happen; a test that waits in vain fails."""
    await asyncio.wait_for(event, PATIENCE_SECONDS)


async def rounds(count: int = 20) -> None:
    """Let the loop go round, so that what was going to happen next did."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        passed = loop.create_future()
        loop.call_soon(passed.set_result, None)
        await passed


def framed(body: bytes) -> bytes:
    """A frame: length and body."""
    return struct.pack(">i", len(body)) + body


class Frames:
    """Keeps the requests, and wakes whoever waits for a number of them. Subclasses answer."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.connections: list[ServerConnection] = []
        self._wanted: list[tuple[int, asyncio.Event]] = []

    def on_frame(self, connection: ServerConnection, frame: memoryview) -> None:
        """Note a request and answer it."""
        self.seen.append(bytes(frame))
        if connection not in self.connections:
            self.connections.append(connection)
        self.answer(connection, self.seen[-1])
        for count, event in self._wanted:
            if len(self.seen) >= count:
                event.set()

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """Nothing: no reply is owed."""

    async def arrived(self, count: int) -> None:
        """Wait until so many requests were handled."""
        event = asyncio.Event()
        if len(self.seen) >= count:
            return
        self._wanted.append((count, event))
        await soon(event.wait())


class Echo(Frames):
    """Answers at once with what was asked."""

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """Echo."""
        connection.reserve().complete([framed(body)])


class Parking(Frames):
    """Takes a slot for each request and leaves the answer to the test."""

    def __init__(self) -> None:
        super().__init__()
        self.slots: list[Slot] = []

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """Later."""
        self.slots.append(connection.reserve())


class Replying(Frames):
    """Answers at once with what a function makes of the request."""

    def __init__(self, reply: Callable[[bytes], Sequence[Any]]) -> None:
        super().__init__()
        self._reply = reply

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """Answer."""
        connection.reserve().complete(self._reply(body))


class Large(Frames):
    """Gives large replies and says when the client has too much to take."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = asyncio.Event()

    def answer(self, connection: ServerConnection, body: bytes) -> None:
        """A large reply that begins with the request."""
        connection.reserve().complete([framed(body.ljust(REPLY_BYTES, b"."))])
        if connection.unsent_bytes > UNSENT_BYTES_MAX:
            self.is_full.set()


class Client:
    """A client that takes bytes only when the test wants them."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()

    @property
    def port(self) -> int:
        """The client's own port, by which the server knows it."""
        return int(self.socket.getsockname()[1])

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        await soon(self._loop.sock_sendall(self.socket, data))

    async def ask(self, *bodies: bytes) -> None:
        """Send requests in one go."""
        await self.send(b"".join(map(framed, bodies)))

    async def take(self, size: int) -> bytes:
        """Take exactly so many bytes."""
        taken = bytearray()
        while len(taken) < size:
            async with asyncio.timeout(PATIENCE_SECONDS):
                data = await self._loop.sock_recv(self.socket, min(1 << 20, size - len(taken)))
            if not data:
                raise EOFError(f"closed after {len(taken)} of {size} bytes")
            taken += data
        return bytes(taken)

    async def reply(self) -> bytes:
        """Take one reply, without its length."""
        (size,) = struct.unpack(">i", await self.take(4))
        return await self.take(size)

    async def rest(self) -> bytes:
        """Take everything until the server closes the connection."""
        taken = bytearray()
        while True:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    data = await self._loop.sock_recv(self.socket, 1 << 20)
            except ConnectionResetError:
                return bytes(taken)
            if not data:
                return bytes(taken)
            taken += data

    def close(self) -> None:
        """Leave."""
        self.socket.close()


class Site:
    """A network with one listener on loopback, a clock that stands still, and its clients."""

    def __init__(self, network: Network, listener: Listener, clock: ManualClock) -> None:
        self.network = network
        self.listener = listener
        self.clock = clock
        self.clients: list[Client] = []

    async def connect(self, listener: Listener | None = None) -> Client:
        """A new client. That it is connected does not mean that it was accepted."""
        sock = socket.socket()
        sock.setblocking(False)
        port = (listener or self.listener).port
        try:
            await soon(asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port)))
        except OSError:
            sock.close()
            raise
        client = Client(sock)
        self.clients.append(client)
        return client

    async def accepted(self, count: int) -> None:
        """Wait until so many connections were accepted in all."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while sum(each.accepted for each in self.network.listeners) < count:
                await rounds(1)

    async def open_connections(self, count: int) -> None:
        """Wait until exactly so many connections are open."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.network.connections != count:
                await rounds(1)

    def served(self, client: Client) -> ServerConnection:
        """The server's side of a client."""
        return next(each for each in self.network.all_connections() if each.peer_port == client.port)

    def add_listener(self, name: str, service: Service, limits: ListenerLimits | None = None) -> Listener:
        """Another listener."""
        listener = Listener(self.network, name, "127.0.0.1", 0, service, None, limits)
        listener.start()
        return listener


@asynccontextmanager
async def site(
    service: Service,
    settings: ConnectionSettings | None = None,
    limits: NodeLimits | None = None,
    listener_limits: ListenerLimits | None = None,
    idle_ms_max: int = 600_000,
    large_bytes_max: int = 0,
    sockets: SocketBudget | None = None,
) -> AsyncIterator[Site]:
    """A running site, taken down in the end."""
    clock = ManualClock()
    network = Network(asyncio.get_running_loop(), clock, limits, idle_ms_max, large_bytes_max, sockets)
    listener = Listener(network, "PLAINTEXT", "127.0.0.1", 0, service, settings, listener_limits)
    listener.start()
    running = Site(network, listener, clock)
    try:
        yield running
    finally:
        for client in running.clients:
            client.close()
        await network.stop(0)


class WatchedRange:
    """A range of a file that counts its pins."""

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.pins = 0
        self.was_pinned = 0
        self._length = length

    def __len__(self) -> int:
        return self._length

    def pin(self) -> AbstractContextManager[int]:
        """Pin the file, and count."""
        return self._counted()

    @contextmanager
    def _counted(self) -> Iterator[int]:
        with self.file.pin() as descriptor:
            self.pins += 1
            self.was_pinned += 1
            try:
                yield descriptor
            finally:
                self.pins -= 1


class PlainRange:
    """A range of a file and nothing more."""

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self._length = length

    def __len__(self) -> int:
        return self._length


def file_of(directory: Path, content: bytes) -> tuple[RealDisk, File]:
    """A real file with that content."""
    disk = RealDisk()
    file = disk.open(str(directory / "00000000000000000000.log"), create=True)
    file.append(content)
    return disk, file


def pattern(size: int) -> bytes:
    """Bytes that repeat nowhere near."""
    return os.urandom(size)
