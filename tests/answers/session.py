"""A scenario's view of a broker: it asks, every exchange is written down, and connections come back by name.

The recorder and the replayer run the same scenarios through the same `Session`; what differs is what they do
with the exchanges.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from headrace.protocol.apis import APIS
from headrace.protocol.frame import decode_response
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersionsRequest
from tests.answers.describing import describe
from tests.answers.masking import Masks
from tests.support_answers import Closed, Connection, Pending, framed

M = TypeVar("M", bound=Message)
MAIN = "main"
_SETTLE_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Target:
    """A broker to ask, and what its masks need to know of it."""

    host: str
    port: int
    controller_port: int
    data_dir: str
    cluster_id: str

    def masks(self) -> Masks:
        """The rules for one scenario on this broker."""
        ports = {self.port: "<address>", self.controller_port: "<controller address>"}
        return Masks(self.host, ports, self.data_dir, self.cluster_id)


@dataclass(slots=True)
class Exchange:
    """One request and what came of it, as plain data."""

    about: str
    api: str
    version: int
    request: Any
    reply: Any


@dataclass(slots=True)
class Sent:
    """A request under way on a connection of its own name."""

    about: str
    connection: str
    pending: Pending
    request: Any


@dataclass(slots=True)
class Session:
    """One scenario's run."""

    target: Target
    exchanges: list[Exchange] = field(default_factory=list)
    masks: Masks = field(init=False)
    _connections: dict[str, Connection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.masks = self.target.masks()

    def close(self) -> None:
        """Hang up all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def hang_up(self, connection: str = MAIN) -> None:
        """Close one connection; the next request under its name opens another."""
        found = self._connections.pop(connection, None)
        if found is not None:
            found.close()

    def ask(self, about: str, message: Message, version: int, connection: str = MAIN) -> Any:
        """Send a request and write down what comes back: a reply, or that the connection was closed."""
        return self.finish(self.begin(about, message, version, connection))

    def begin(self, about: str, message: Message, version: int, connection: str = MAIN) -> Sent:
        """Send a request whose reply is read by `finish`."""
        request = describe(message, version, self.masks)
        return Sent(about, connection, self._open(connection).begin(message, version), request)

    def finish(self, sent: Sent) -> Any:
        """Read the reply to a request that `begin` sent, and write it down."""
        reply = self._open(sent.connection).finish(sent.pending)
        version = sent.pending.version
        api = APIS[sent.pending.message.API_KEY].name
        if isinstance(reply, Closed):
            self.hang_up(sent.connection)
            plain: Any = "closed"
        else:
            plain = describe(reply, version, self.masks)
        self.exchanges.append(Exchange(sent.about, api, version, sent.request, plain))
        return reply

    def ask_without_reply(self, about: str, message: Message, version: int, connection: str = MAIN) -> None:
        """Send a request that gets no reply, and write down whether the next one is answered in its place."""
        request = describe(message, version, self.masks)
        opened = self._open(connection)
        opened.begin(message, version)
        probe = opened.ask(ApiVersionsRequest(), 0)
        if isinstance(probe, Closed):
            self.hang_up(connection)
        plain = "closed" if isinstance(probe, Closed) else "nothing"
        self.exchanges.append(Exchange(about, APIS[message.API_KEY].name, version, request, plain))

    def send_raw(
        self, about: str, payload: bytes, reply: type[Message] | None = None, version: int = 0
    ) -> None:
        """Send a frame of any bytes on a connection of its own; a reply is read as `reply` in `version`."""
        self.send_unframed(about, framed(payload), reply, version)

    def send_unframed(
        self, about: str, data: bytes, reply: type[Message] | None = None, version: int = 0
    ) -> None:
        """Send any bytes, length included, on a connection of its own, and write down what comes back."""
        with Connection(self.target.host, self.target.port) as connection:
            connection.send(data)
            frame = connection.receive()
        plain: Any = "closed"
        if frame is not None:
            plain = self._describe_frame(frame, reply, version)
        self.exchanges.append(Exchange(about, "raw", version, data.hex(), plain))

    def _describe_frame(self, frame: bytes, reply: type[Message] | None, version: int) -> Any:
        if reply is None:
            return {"bytes": frame.hex()}
        correlation_id, message = decode_response(reply, version, frame)
        return {"correlation_id": correlation_id} | describe(message, version, self.masks)

    def settle(self, message: Message, version: int, is_ready: Callable[[Any], bool]) -> Any:
        """Ask, without writing down, until the answer is as it should be: brokers learn of changes late."""
        deadline = time.monotonic() + _SETTLE_TIMEOUT_S
        while time.monotonic() < deadline:
            reply = self._open("settling").ask(message, version)
            if isinstance(reply, Closed):
                self.hang_up("settling")
            elif is_ready(reply):
                return reply
        raise AssertionError(f"{type(message).__name__} was not answered as it should be in time: {reply}")

    def named(self, topic_id: UUID) -> UUID:
        """Give an id its name now, so that names do not depend on the order of replies."""
        self.masks.identity("uuid", topic_id)
        return topic_id

    def _open(self, name: str) -> Connection:
        found = self._connections.get(name)
        if found is None:
            found = self._connections[name] = Connection(self.target.host, self.target.port)
        return found
