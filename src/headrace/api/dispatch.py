"""From a frame to its handler, and from the handler's reply to the slot it leaves by.

A frame that is no request this node understands ends its connection, with the reason in the log. Whatever
goes wrong in a handler is answered in the form of its API and concerns this one request only. One dispatch
serves all listeners of a kind; the APIs it knows are those of the table, and no other list exists.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.api.context import RequestContext
from headrace.api.fetch_shortcut import FetchMemory
from headrace.api.k18_api_versions import names_software
from headrace.api.produce_shortcut import ProduceMemory
from headrace.api.request_stats import ErrorCodes, RequestStats, error_codes_of
from headrace.api.services import Api, Reply, Services
from headrace.api.shortcuts import RequestMemory
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.api_table import ApiKey
from headrace.protocol.apis import APIS
from headrace.protocol.codec import decode, decode_prefix, encode_parts
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.fields import RecordData
from headrace.protocol.frame import encode_response
from headrace.protocol.message import Message
from headrace.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.protocol.messages.headers import RequestHeader
from headrace.replication.parked_fetches import PromptFuture

if TYPE_CHECKING:
    from headrace.net.connection import ServerConnection
    from headrace.net.slots import Slot

logger: Final = logging.getLogger("headrace.api")

_START: Final = struct.Struct(">hhih")
_START_BYTES: Final = _START.size
# On the way of every request, a plain number is found faster than a member of an enumeration.
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_RESPONSE_HEADS: Final = (struct.Struct(">ii"), struct.Struct(">iix"))
_SIZE_BYTES: Final = 4
#: Joining costs a copy, sending apart costs a piece: up to here the copy is cheaper.
_JOINED_BYTES_MAX: Final = 16_384


class Route:
    """The way of requests of one API and version, worked out before the first of them arrives."""

    __slots__ = ("api", "codes", "handle", "head", "is_flexible", "request", "response", "stats", "version")

    def __init__(self, api: Api, version: int, stats: RequestStats) -> None:
        spoken = APIS[api.key]
        self.api = api
        self.version = version
        self.request = api.request
        self.response = api.response
        self.handle = api.handle
        self.is_flexible = spoken.request_header_version(version) >= 2
        self.head = _RESPONSE_HEADS[spoken.response_header_version(version)]
        self.stats = stats
        self.codes: ErrorCodes = self._codes_at_first

    def _codes_at_first(self, reply: Message) -> list[int]:
        """Work out where the error codes are when the first reply is there: most APIs never see one."""
        self.codes = error_codes_of(self.api.response)
        return self.codes(reply)

    def encode(self, reply: Message, correlation_id: int) -> Sequence[RecordData]:
        """A reply's frame in pieces; record data stay the objects they are."""
        pieces = encode_parts(reply, self.version)
        head = self.head
        size = sum(map(len, pieces)) if len(pieces) > 1 else len(pieces[0])
        packed = head.pack(head.size - _SIZE_BYTES + size, correlation_id)
        first = pieces[0]
        if type(first) is bytes and len(first) <= _JOINED_BYTES_MAX:
            pieces[0] = packed + first
            return pieces
        return [packed, *pieces]

    def count(self, reply: Reply, elapsed_ns: int, request_bytes: int) -> None:
        """Count a request that is done, and the errors in its reply."""
        self.stats.add(elapsed_ns, request_bytes)
        if reply is not None and (codes := self.codes(reply)):
            self.stats.add_errors(codes)

    def failure(self, request: Message, error: KafkaError) -> Reply:
        """The reply to a request that failed as a whole; None if its API has none to give."""
        respond = self.api.error_response
        return None if respond is None else respond(request, self.version, error)


class Dispatch:
    """Answers the requests of listeners of one kind. `now_ns` is a clock that never goes back."""

    __slots__ = ("_now_ns", "_routes", "services", "stats")

    def __init__(self, services: Services, apis: Iterable[Api], now_ns: Callable[[], int]) -> None:
        self.services = services
        self.stats: dict[str, RequestStats] = {}
        self._now_ns = now_ns
        self._routes: dict[int, Route] = {}
        for api in apis:
            stats = self.stats[api.name] = RequestStats()
            low, high = api.versions
            for version in range(low, high + 1):
                self._routes[api.key << 16 | version] = Route(api, version, stats)

    def on_frame(self, connection: "ServerConnection", frame: memoryview) -> None:
        """Handle one request; the frame is not looked at after this returns."""
        shortcut = connection.shortcut
        if shortcut is not None and shortcut.answers(connection, frame):
            return
        started_ns = self._now_ns()
        try:
            key, version, correlation_id, client_id_size = _START.unpack_from(frame)
            route = self._routes.get(key << 16 | version)
            if route is None:
                self._on_unsupported(connection, key, version, correlation_id)
                return
            position = _START_BYTES
            client_id = None
            if client_id_size >= 0:
                position += client_id_size
                client_id = str(frame[_START_BYTES:position], "utf-8", "replace")
            if route.is_flexible:
                position = position + 1 if frame[position] == 0 else _header_end(frame)
            request = _decoded(route, frame, position)
        except (struct.error, IndexError):
            connection.close_when_sent(f"a request of {len(frame)} bytes ends within its header")
            return
        except MalformedMessage as error:
            connection.close_when_sent(f"a request is malformed: {error}")
            return
        connection.client_id = client_id
        if key == _API_VERSIONS:
            _note_software(connection, request)
        context = RequestContext(
            key, version, client_id, connection.listener_name, connection.peer, connection
        )
        slot = connection.reserve()
        parts: Sequence[RecordData] = ()
        try:
            reply = route.handle(self.services, context, request)
            if type(reply) is route.response or isinstance(reply, Message):
                parts = route.encode(reply, correlation_id)
            elif reply is not None:
                Exchange(self, route, slot, request, correlation_id, started_ns, len(frame)).wait(reply)
                if key == _FETCH:
                    self._fetch_memory(connection).learn(route, frame, position, client_id, request)
                return
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is answered
            Exchange(self, route, slot, request, correlation_id, started_ns, len(frame)).fail(error)
            return
        slot.complete(parts)
        route.count(reply, self._now_ns() - started_ns, len(frame))
        if key == _PRODUCE and reply is not None:
            memory = self._produce_memory(connection, route)
            memory.learn(route, frame, position, client_id, request, reply)
        elif key == _FETCH:
            self._fetch_memory(connection).learn(route, frame, position, client_id, request)

    def _produce_memory(self, connection: "ServerConnection", route: Route) -> ProduceMemory:
        memory = _memory_of(connection)
        if memory.produce is None:
            memory.produce = ProduceMemory(self.services, route, self._now_ns)
        return memory.produce

    def _fetch_memory(self, connection: "ServerConnection") -> FetchMemory:
        memory = _memory_of(connection)
        if memory.fetch is None:
            memory.fetch = FetchMemory(self, self._now_ns)
        return memory.fetch

    def resume(
        self,
        route: Route,
        slot: "Slot",
        frame: bytes,
        correlation_id: int,
        started_ns: int,
        answer: Callable[[Services, str], Reply],
    ) -> None:
        """Answer a request that was taken by a short way, and turned out to be unusual while it waited."""
        header_version = 2 if route.is_flexible else 1
        request = _decoded(route, memoryview(frame), decode_prefix(RequestHeader, header_version, frame)[1])
        exchange = Exchange(self, route, slot, request, correlation_id, started_ns, len(frame))
        try:
            reply = answer(self.services, slot.connection.listener_name)
        except Exception as error:  # noqa: BLE001 - whatever it raises is answered
            exchange.fail(error)
        else:
            exchange.finish(reply)

    def now_ns(self) -> int:
        """The clock that latencies are measured by."""
        return self._now_ns()

    def _on_unsupported(
        self, connection: "ServerConnection", key: int, version: int, correlation_id: int
    ) -> None:
        """A client can't know our versions before it asked: only that question is answered in any version."""
        known = APIS.get(key)
        if key == _API_VERSIONS:
            connection.reserve().complete([_unsupported_api_versions(correlation_id)])
        elif known is None:
            connection.close_when_sent(f"API key {key} (version {version}) is unknown")
        else:
            connection.close_when_sent(f"{known.name} (API key {key}) version {version} is not supported")


class Exchange:
    """One request and the reply it is owed, where that does not come at once or comes as a failure."""

    __slots__ = (
        "_correlation_id",
        "_dispatch",
        "_request",
        "_request_bytes",
        "_route",
        "_slot",
        "_started_ns",
    )

    def __init__(
        self,
        dispatch: Dispatch,
        route: Route,
        slot: "Slot",
        request: Message,
        correlation_id: int,
        started_ns: int,
        request_bytes: int,
    ) -> None:
        self._dispatch = dispatch
        self._route = route
        self._slot = slot
        self._request = request
        self._correlation_id = correlation_id
        self._started_ns = started_ns
        self._request_bytes = request_bytes

    def finish(self, reply: Reply) -> None:
        """Send the reply, or let the slot go where there is none."""
        try:
            parts = () if reply is None else self._route.encode(reply, self._correlation_id)
        except Exception as error:  # noqa: BLE001 - the client is owed some answer
            self.fail(error)
            return
        self._slot.complete(parts)
        self._count(reply)

    def _finish_promptly(self, reply: Reply) -> None:
        """Send the reply in this very turn of the loop: somebody waits for nothing else."""
        connection = self._slot.connection
        self._slot.on_close = None
        connection.hurry()
        try:
            self.finish(reply)
        finally:
            connection.flush_due()

    def wait(self, reply: Awaitable[Reply]) -> None:
        """Finish when the reply is there; stop waiting for it when the client is gone."""
        future = asyncio.ensure_future(reply)
        if future.done():
            self._on_done(future)
            return
        self._slot.on_close = future.cancel  # type: ignore[assignment] # what it returns does not matter
        if isinstance(future, PromptFuture):
            future.on_result = self._finish_promptly
        future.add_done_callback(self._on_done)

    def fail(self, error: BaseException) -> None:
        """Answer that the request failed, in the form that its API has for that."""
        route = self._route
        if isinstance(error, KafkaError):
            refusal = error
            logger.debug("%s v%d was refused: %r", route.api.name, route.version, error)
        else:
            refusal = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            self._log_failure(error)
        try:
            reply = route.failure(self._request, refusal)
            parts = None if reply is None else route.encode(reply, self._correlation_id)
        except Exception as second:  # noqa: BLE001 - then the connection closes
            self._log_failure(second)
            reply = parts = None
        if parts is None:
            route.stats.add_errors([refusal.code])
            self._slot.connection.close_when_sent(f"{route.api.name} failed: {refusal}")
        else:
            self._slot.complete(parts)
        self._count(reply)

    def _on_done(self, future: asyncio.Future[Reply]) -> None:
        self._slot.on_close = None
        if future.cancelled():
            self._slot.connection.close_when_sent("a request was given up", logging.INFO)
            return
        error = future.exception()
        if error is None:
            self.finish(future.result())
        else:
            self.fail(error)

    def _log_failure(self, error: BaseException) -> None:
        route = self._route
        logger.error(
            "%s v%d of %s failed: %s",
            route.api.name,
            route.version,
            self._slot.connection,
            error,
            exc_info=error,
        )

    def _count(self, reply: Reply) -> None:
        elapsed_ns = self._dispatch.now_ns() - self._started_ns
        self._route.count(reply, elapsed_ns, self._request_bytes)


def _memory_of(connection: "ServerConnection") -> RequestMemory:
    memory = connection.shortcut
    if not isinstance(memory, RequestMemory):
        connection.shortcut = memory = RequestMemory()
    return memory


def _decoded(route: Route, frame: memoryview, position: int) -> Message:
    try:
        return decode(route.request, route.version, frame, position)
    except MalformedMessage:
        # Kafka does not mind bytes behind a request, and some client may count on it.
        return decode_prefix(route.request, route.version, bytes(frame), position)[0]


def _header_end(frame: memoryview) -> int:
    return decode_prefix(RequestHeader, 2, frame)[1]


def _note_software(connection: "ServerConnection", request: Any) -> None:
    is_named = names_software(request)
    connection.software_name = request.client_software_name if is_named else "unknown"
    connection.software_version = request.client_software_version if is_named else "unknown"


def _unsupported_api_versions(correlation_id: int) -> bytes:
    spoken = APIS[ApiKey.API_VERSIONS]
    own = ApiVersion(
        api_key=spoken.key, min_version=spoken.version_min, max_version=spoken.stable_version_max
    )
    reply = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    return encode_response(reply, 0, correlation_id)
