"""The way to one broker: connected when it is needed, connected again when it was lost.

After a failure the next attempt waits, longer each time. Who waits for a connection shares one attempt; who
gives up waiting does not end it for the others.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from headrace.client.backoff import backoff_ms
from headrace.client.config import ClientConfig
from headrace.client.errors import ClientClosed, ConnectionLost, DialFailed, RequestTimedOut, Unreachable
from headrace.client.metadata import Broker
from headrace.client.sharing import result_of
from headrace.client.versions import BrokerVersions, ask_versions
from headrace.errors import HeadraceError
from headrace.net.client_connection import ClientConnection
from headrace.net.dialing import dial
from headrace.ports import Entropy
from headrace.protocol.apis import APIS
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.fields import RecordData
from headrace.protocol.frame import decode_response, encode_request_parts
from headrace.protocol.message import Message


@dataclass(slots=True, frozen=True)
class Live:
    """A connection that is ready for requests, and what the broker at its end knows."""

    connection: ClientConnection
    versions: BrokerVersions


class Link:
    """One broker, one connection. `failures` counts attempts in a row that came to nothing."""

    __slots__ = (
        "_attempt",
        "_config",
        "_entropy",
        "_has_left",
        "_idle_timer",
        "_is_closed",
        "_live",
        "_loop",
        "_not_before",
        "_throttled_until",
        "broker",
        "failures",
    )

    def __init__(self, broker: Broker, config: ClientConfig, entropy: Entropy) -> None:
        self.broker = broker
        self.failures = 0
        self._config = config
        self._entropy = entropy
        self._loop = asyncio.get_running_loop()
        self._live: Live | None = None
        self._attempt: asyncio.Task[Live] | None = None
        self._not_before = 0.0
        self._throttled_until = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._has_left = False

    @property
    def is_live(self) -> bool:
        """Whether there is a connection right now."""
        return self._live is not None and not self._live.connection.closed

    @property
    def requests_outstanding(self) -> int:
        """Requests that wait for their reply."""
        return self._live.connection.requests_outstanding if self._live is not None else 0

    async def exchange(
        self,
        request: Message,
        *,
        timeout_ms: int,
        version_min: int | None = None,
        version_max: int | None = None,
        expects_reply: bool = True,
    ) -> Any:
        """Send a request and return its reply, None where none is expected.

        Raises Unreachable, ConnectionLost, RequestTimedOut or UnsupportedByBroker."""
        live = await self._ready_within(timeout_ms)
        if self._throttled_until > self._loop.time():
            await asyncio.sleep(self._throttled_until - self._loop.time())
        version = live.versions.choose(request, version_min, version_max)
        client_id = self._config.client_id

        def build(correlation_id: int) -> list[RecordData]:
            return encode_request_parts(request, version, correlation_id, client_id)

        what = type(request).__name__.removesuffix("Request")
        if not expects_reply:
            await live.connection.tell(build, what, timeout_ms)
            return None
        frame = await live.connection.ask(build, what, timeout_ms)
        return self._read(live, request, version, frame)

    async def versions(self) -> BrokerVersions:
        """What the broker knows; connects if need be."""
        return (await self.ready()).versions

    async def ready(self) -> Live:
        """A live connection, made if need be; Unreachable if that fails."""
        live = self._live
        if live is not None and not live.connection.closed:
            return live
        if self._is_closed:
            raise self._why_closed()
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = self._loop.create_task(self._connect())
            attempt.add_done_callback(self._on_attempted)
        return await result_of(attempt, self._why_closed)

    async def _ready_within(self, timeout_ms: int) -> Live:
        live = self._live
        if live is not None and not live.connection.closed:
            return live
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self.ready()
        except TimeoutError:
            reason = f"no connection within {timeout_ms} ms"
            raise Unreachable(
                f"{self.broker} cannot be reached", {str(self.broker.address): reason}
            ) from None

    async def close(self, *, has_left: bool = False) -> None:
        """Close for good, and leave nothing running; `has_left` says that it is the broker who is gone."""
        attempt = self._attempt
        self.hang_up(has_left=has_left)
        if attempt is not None:
            await asyncio.wait([attempt])

    def hang_up(self, *, has_left: bool = False) -> None:
        """Close for good at once; an attempt to connect that is under way ends by itself."""
        if not self._is_closed and self._attempt is not None:
            self._attempt.cancel()
        self._is_closed = True
        self._has_left = has_left
        self._drop(str(self._why_closed()))

    def _why_closed(self) -> HeadraceError:
        if self._has_left:
            return Unreachable(f"{self.broker} is no longer there")
        return ClientClosed("the client was closed")

    def _drop(self, reason: str) -> None:
        self._forget_timer()
        live, self._live = self._live, None
        if live is not None:
            live.connection.close(reason)

    async def _connect(self) -> Live:
        wait = self._not_before - self._loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        try:
            live = await self._dial_and_greet()
        except (DialFailed, ConnectionLost, RequestTimedOut) as error:
            self._on_failure()
            reason = error.reason if isinstance(error, DialFailed | ConnectionLost) else str(error)
            raise Unreachable(
                f"{self.broker} cannot be reached", {str(self.broker.address): reason}
            ) from error
        self.failures = 0
        self._live = live
        self._watch_idleness()
        return live

    async def _dial_and_greet(self) -> Live:
        config = self._config
        timeout_ms = max(1, int(self._setup_timeout_ms()))
        sock = await dial(
            self.broker.address, timeout_ms, config.send_buffer_bytes, config.receive_buffer_bytes
        )
        connection = ClientConnection(self._loop, sock, str(self.broker), config.in_flight_max, self._on_lost)
        try:
            versions = await ask_versions(connection, config.client_id, timeout_ms)
        except BaseException:
            connection.close("it was not ready in time")
            raise
        return Live(connection, versions)

    def _setup_timeout_ms(self) -> float:
        config = self._config
        return backoff_ms(
            config.socket_connection_setup_timeout_ms,
            max(config.socket_connection_setup_timeout_max_ms, config.socket_connection_setup_timeout_ms),
            self.failures + 1,
            self._entropy,
        )

    def _on_attempted(self, attempt: "asyncio.Task[Live]") -> None:
        self._attempt = None
        if not attempt.cancelled():
            # Nobody may be waiting any more; the failure is then of no interest.
            attempt.exception()

    def _on_failure(self) -> None:
        self.failures += 1
        config = self._config
        wait = backoff_ms(
            config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, self.failures, self._entropy
        )
        self._not_before = self._loop.time() + wait / 1000

    def _on_lost(self, connection: ClientConnection) -> None:
        """A broker that hangs up at once is not asked again at once, either."""
        if self._live is not None and self._live.connection is connection:
            self._live = None
            self._forget_timer()
            wait = backoff_ms(
                self._config.reconnect_backoff_ms, self._config.reconnect_backoff_max_ms, 1, self._entropy
            )
            self._not_before = self._loop.time() + wait / 1000

    def _forget_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _watch_idleness(self) -> None:
        idle_ms = self._config.connections_max_idle_ms
        live = self._live
        if idle_ms < 0 or live is None:
            return
        last = self._loop.time() if live.connection.requests_outstanding else live.connection.last_used
        due = last + idle_ms / 1000
        if due <= self._loop.time():
            self._drop("it was idle")
        else:
            self._idle_timer = self._loop.call_at(due, self._watch_idleness)

    def _read(self, live: Live, request: Message, version: int, frame: memoryview) -> Any:
        try:
            _, reply = decode_response(APIS[request.API_KEY].response_class(), version, frame)
        except MalformedMessage as error:
            live.connection.close(f"its reply cannot be read: {error}")
            raise ConnectionLost(str(self.broker), f"its reply cannot be read: {error}") from error
        throttle_ms = getattr(reply, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until = self._loop.time() + throttle_ms / 1000
        return reply
