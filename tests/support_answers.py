"""A blocking client for the comparison of answers: one socket, our codec, no retries and no opinions."""

import socket
from dataclasses import dataclass
from types import TracebackType

from headrace.protocol.apis import APIS
from headrace.protocol.codec import encode
from headrace.protocol.frame import SIZE_BYTES, decode_response, encode_request
from headrace.protocol.message import Message
from headrace.protocol.messages.headers import RequestHeader

CLIENT_ID = "answers"
_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Closed:
    """What is there instead of a reply when the peer closed the connection."""


@dataclass(slots=True)
class Pending:
    """A request that was sent and whose reply was not read yet."""

    message: Message
    version: int
    correlation_id: int


class Connection:
    """One connection to a broker."""

    __slots__ = ("_correlation_id", "_socket", "_stream")

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._socket.close()

    def begin(self, message: Message, version: int) -> Pending:
        """Send a request without reading its reply."""
        self._correlation_id += 1
        self.send(encode_request(message, version, self._correlation_id, CLIENT_ID))
        return Pending(message, version, self._correlation_id)

    def finish(self, pending: Pending) -> Message | Closed:
        """The reply to a request; replies come in the order of the requests."""
        frame = self.receive()
        if frame is None:
            return Closed()
        reply_class = APIS[pending.message.API_KEY].response_class()
        correlation_id, reply = decode_response(reply_class, pending.version, frame)
        if correlation_id != pending.correlation_id:
            raise AssertionError(f"reply {correlation_id} came for request {pending.correlation_id}")
        return reply

    def ask(self, message: Message, version: int) -> Message | Closed:
        """Send a request and read its reply."""
        return self.finish(self.begin(message, version))

    def send(self, data: bytes) -> None:
        """Send bytes as they are. A peer that hung up shows when its reply is read."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> bytes | None:
        """The next frame without its length, or nothing when the peer closed the connection."""
        try:
            size = self._stream.read(SIZE_BYTES)
            if len(size) < SIZE_BYTES:
                return None
            frame = self._stream.read(int.from_bytes(size, "big"))
        except ConnectionResetError:
            return None
        return frame


def request_head(api_key: int, version: int, header_version: int, correlation_id: int = 1) -> bytes:
    """The bytes of a request's header, for versions and APIs that may not exist."""
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=CLIENT_ID,
    )
    return encode(header, header_version)


def framed(payload: bytes) -> bytes:
    """Bytes with their length before them."""
    return len(payload).to_bytes(SIZE_BYTES, "big") + payload


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("localhost", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
