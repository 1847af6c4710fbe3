"""A named address that clients connect to."""

import asyncio
import errno
import logging
import socket
from typing import TYPE_CHECKING, Final

from headrace.errors import HeadraceError
from headrace.net.connection import ServerConnection
from headrace.net.limits import ListenerCount, ListenerLimits
from headrace.net.service import Service
from headrace.net.settings import LEAVE_TO_SYSTEM, ConnectionSettings

if TYPE_CHECKING:
    from headrace.net.network import Network

ACCEPTED_PER_ROUND: Final = 32
RETRY_MS: Final = 500
SAY_AGAIN_MS: Final = 60_000
MAPPED_PREFIX: Final = "::ffff:"

_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

logger = logging.getLogger("headrace.net")


class CannotListen(HeadraceError):
    """An address can't be listened on."""


class Listener:
    """Accepts connections within the limits, and hands their requests to a service.

    An empty host means every interface; port 0 lets the system choose, and `port` says what it chose."""

    def __init__(
        self,
        network: "Network",
        name: str,
        host: str | None,
        port: int,
        service: Service,
        settings: ConnectionSettings | None = None,
        limits: ListenerLimits | None = None,
    ) -> None:
        self.network = network
        self.name = name
        self.host = host or ""
        self.port = port
        self.service = service
        self.settings = settings or ConnectionSettings()
        self.count = ListenerCount(limits or ListenerLimits(), network.clock.monotonic_ms())
        self.connections: set[ServerConnection] = set()
        self.accepted = 0
        self.refused = 0
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self._socket: socket.socket | None = None
        self._is_accepting = False
        self._said_full_ms: int | None = None
        self._retry: asyncio.TimerHandle | None = None

    @property
    def is_protected(self) -> bool:
        """Whether the node's limits do not apply."""
        return self.count.limits.is_protected

    def open(self) -> None:
        """Take the address. Connections wait until `start`."""
        if self._socket is not None:
            return
        try:
            self._socket = _bound_socket(self.host, self.port, self.settings)
        except OSError as error:
            where = f"{self.host or 'all interfaces'} port {self.port}"
            raise CannotListen(f"listener {self.name} can't listen on {where}: {error}") from error
        self.port = self._socket.getsockname()[1]

    def start(self) -> None:
        """Take the address if need be, and accept connections from now on."""
        self.open()
        self.network.add(self)
        self._resume()
        logger.info("listener %s accepts connections on %s port %d", self.name, self.host or "*", self.port)

    def stop_accepting(self) -> None:
        """Give back the address; connections stay."""
        self._pause()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if not self.connections:
            self.network.forget(self)

    def on_closed(self, connection: ServerConnection) -> None:
        """A connection is gone."""
        self.connections.discard(connection)
        self.network.limits.leave(self.count, connection.peer_host)
        self.network.on_closed(connection)
        if self._socket is None and not self.connections:
            self.network.forget(self)

    def _on_acceptable(self) -> None:
        for _ in range(ACCEPTED_PER_ROUND):
            if self._socket is None or not self._may_accept():
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._on_accept_failed(error)
                return
            self._admit(sock, address)

    def _may_accept(self) -> bool:
        limits = self.network.limits
        if not limits.has_room(self.count):
            self._pause()
            limits.when_room(self._resume)
            self._say_that_full()
            return False
        delay_ms = limits.delay_ms(self.count, self.network.clock.monotonic_ms())
        if delay_ms:
            self._pause_for(delay_ms)
        return not delay_ms

    def _say_that_full(self) -> None:
        """Once a minute is enough where clients come and go at the limit."""
        now_ms = self.network.clock.monotonic_ms()
        if self._said_full_ms is None or now_ms - self._said_full_ms >= SAY_AGAIN_MS:
            self._said_full_ms = now_ms
            logger.warning(
                "listener %s accepts no more connections, it has %d of %d in all: %s",
                self.name,
                self.count.connections,
                self.network.limits.connections,
                self.network.limits.what_is_full(self.count),
            )

    def _on_accept_failed(self, error: OSError) -> None:
        if error.errno in _OUT_OF_RESOURCES:
            logger.error("listener %s can't accept a connection: %s", self.name, error)
            self._pause_for(RETRY_MS)
        else:
            # The client was gone before it was accepted.
            logger.debug("listener %s lost a connection before it was accepted: %s", self.name, error)

    def _admit(self, sock: socket.socket, address: tuple[str, int]) -> None:
        host = address[0].removeprefix(MAPPED_PREFIX)
        limits = self.network.limits
        if not limits.admit(self.count, host):
            self.refused += 1
            logger.info(
                "listener %s refused a connection from %s, which has the maximum of %d",
                self.name,
                host,
                limits.per_ip_max(host),
            )
            sock.close()
            return
        self.accepted += 1
        try:
            _prepare(sock, self.settings)
            connection = ServerConnection(self, sock, host, address[1])
        except OSError as error:
            logger.info("listener %s lost the connection from %s: %s", self.name, host, error)
            limits.leave(self.count, host)
            sock.close()
            return
        self.connections.add(connection)
        self.network.idle.add(connection)
        if self.is_protected:
            self.network.make_room()

    def _resume(self) -> None:
        if not self._is_accepting and self._socket is not None:
            self._is_accepting = True
            self.network.loop.add_reader(self._socket, self._on_acceptable)

    def _pause(self) -> None:
        if self._is_accepting and self._socket is not None:
            self._is_accepting = False
            self.network.loop.remove_reader(self._socket)

    def _pause_for(self, delay_ms: int) -> None:
        self._pause()
        self._retry = self.network.loop.call_later(delay_ms / 1000, self._resume)


def _bound_socket(host: str, port: int, settings: ConnectionSettings) -> socket.socket:
    if host:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # Of a name's addresses Java takes an IPv4 one, and so do many clients.
        family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        sock = socket.socket(family, kind, protocol)
    elif socket.has_dualstack_ipv6():
        sock, address = socket.socket(socket.AF_INET6, socket.SOCK_STREAM), ("::", port)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    else:
        sock, address = socket.socket(socket.AF_INET, socket.SOCK_STREAM), ("0.0.0.0", port)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.receive_buffer_bytes != LEAVE_TO_SYSTEM:
            # Accepted sockets inherit it, and the window scale is agreed on before they are accepted.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.receive_buffer_bytes)
        sock.bind(address)
        sock.listen(settings.backlog)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _prepare(sock: socket.socket, settings: ConnectionSettings) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if settings.send_buffer_bytes != LEAVE_TO_SYSTEM:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.send_buffer_bytes)
