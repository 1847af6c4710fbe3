"""The short way of produce requests that are like earlier ones of their connection.

What a producer sends over and over differs in the correlation id and the records only. So the bytes before
the records are remembered together with the partition they meant and with the reply that was given; a request
that begins with the same bytes needs neither decoding nor looking up, and its reply is the old one with new
numbers. Records take the same way into the log as ever, with every check.

It answers exactly as the way through the handler does, or not at all: whatever is unusual, and every refusal,
is left to the handler. Whoever makes the handler look at more than the request and the partition (rights,
quotas) has to keep such requests from being remembered, or to have `forget` called when the answer changes.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from headrace.api.produce_form import is_plain
from headrace.api.services import Services
from headrace.errors import KafkaError
from headrace.log.settings import LONG_MAX, LogSettings
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.codec import encode
from headrace.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.protocol.varint import unsigned_varint
from headrace.replication.partition import Partition

if TYPE_CHECKING:
    from headrace.api.dispatch import Route
    from headrace.net.connection import ServerConnection

#: Partitions that one connection produces to, as far as they are remembered.
REMEMBERED_MAX: Final = 256
#: So often may requests of another kind take the place of those remembered; then the client is too fickle.
CHANGES_MAX: Final = 16
_ACKS_REPLIED: Final = frozenset({-1, 1})
_FLEXIBLE_SINCE: Final = 9
_BY_TOPIC_ID_SINCE: Final = 13
_LOG_START_SINCE: Final = 5
_CORRELATION_END: Final = 8
_NO_TAGS: Final = b"\0\0\0"
_TAGS_BYTES: Final = len(_NO_TAGS)
_LENGTH: Final = struct.Struct(">i")
# What stands around the name or id of the topic and up to the records' length.
_FIXED_BYTES: Final = 2 + 2 + 4 + 4 + 2 + 4 + 4
_FIXED_BYTES_FLEXIBLE: Final = 1 + 2 + 4 + 1 + 1 + 4
_TOPIC_ID_BYTES: Final = 16
_MARKS: Final = (0x0123456789ABCDEF, 0x123456789ABCDEF0, 0x23456789ABCDEF01)


class Known:
    """One beginning of a request: whom it means, and what the reply to it looks like."""

    __slots__ = ("acks", "after", "before", "pack", "partition", "settings", "size")

    def __init__(
        self, partition: Partition, settings: LogSettings, acks: int, reply: bytes, version: int
    ) -> None:
        numbers, tail = _layout(version)
        start = len(reply) - tail - 8 * numbers
        self.partition = partition
        self.settings = settings
        self.acks = acks
        self.size = len(reply) - _LENGTH.size
        self.before = reply[_CORRELATION_END:start]
        self.after = reply[len(reply) - tail :]
        self.pack = _reply_struct(len(self.before), numbers, tail).pack


class ProduceMemory:
    """What is remembered of the produce requests of one connection."""

    __slots__ = (
        "_api",
        "_changes",
        "_client_id",
        "_front",
        "_has_log_start",
        "_head_end",
        "_is_flexible",
        "_known",
        "_now_ns",
        "_route",
        "_services",
        "_version",
    )

    def __init__(self, services: Services, route: "Route", now_ns: Callable[[], int]) -> None:
        self._services = services
        self._now_ns = now_ns
        self._known: dict[bytes, Known] = {}
        self._changes = -1
        self._client_id: str | None = None
        self._head_end = -1
        self._take_over(route, -1)

    def _take_over(self, route: "Route", head_end: int) -> None:
        """Requests are of another version, or their beginning is of another length: forget the others."""
        version = route.version
        self._route = route
        self._version = version
        self._api = route.api.key << 16 | version
        self._is_flexible = version >= _FLEXIBLE_SINCE
        self._has_log_start = version >= _LOG_START_SINCE
        self._head_end = head_end
        self._front = _front_struct(max(0, head_end - _CORRELATION_END)).unpack_from
        self._known.clear()
        self._changes += 1

    def forget(self) -> None:
        """Have every request go through the handler once more."""
        self._known.clear()

    def answers(self, connection: "ServerConnection", frame: memoryview) -> bool:
        """Whether this was one of the usual requests: then it is done and answered."""
        started_ns = self._now_ns()
        end = len(frame)
        start = self._head_end
        if end <= start or not self._known:
            return False
        api, correlation_id, head = self._front(frame)
        if api != self._api:
            return False
        known = self._known.get(head)
        if known is None:
            return False
        records = self._records(frame, start, end)
        partition = known.partition
        log = partition.prompt_log
        if (
            records is None
            or log is None
            or log.settings is not known.settings
            or not is_plain(records, self._version)
        ):
            return False
        try:
            info = partition.append(records, known.acks, self._services.clock.now_ms())
        except KafkaError:
            # Nothing was changed, so the handler finds the same fault, and knows how to tell of it.
            return False
        first_offset, last_offset, _, append_time, log_start, _, _, _ = info
        counters = partition.counters
        counters.produce_requests += 1
        counters.bytes_in += len(records)
        counters.messages_in += last_offset - first_offset + 1
        if self._has_log_start:
            reply = known.pack(
                known.size, correlation_id, known.before, first_offset, append_time, log_start, known.after
            )
        else:
            reply = known.pack(
                known.size, correlation_id, known.before, first_offset, append_time, known.after
            )
        connection.client_id = self._client_id
        connection.answer(reply)
        self._route.stats.add(self._now_ns() - started_ns, end)
        return True

    def _records(self, frame: memoryview, start: int, end: int) -> memoryview | None:
        """The records behind a known beginning, if they and what has to follow fill the frame."""
        if not self._is_flexible:
            if end < start + _LENGTH.size:
                return None
            (size,) = _LENGTH.unpack_from(frame, start)
            start += _LENGTH.size
            return frame[start:end] if start + size == end and size >= 0 else None
        size = frame[start]
        start += 1
        shift = 7
        while size >> shift and start < end and shift < 28:
            size += (frame[start] - 1) << shift
            start += 1
            shift += 7
        if size >> shift or start + size - 1 + _TAGS_BYTES != end or size == 0:
            return None
        stop = end - _TAGS_BYTES
        return frame[start:stop] if bytes(frame[stop:]) == _NO_TAGS else None

    def learn(
        self, route: "Route", frame: memoryview, body_at: int, client_id: str | None, request: Any, reply: Any
    ) -> None:
        """Remember a request that was answered by the handler, if it is of the usual kind."""
        if self._changes > CHANGES_MAX:
            return
        version = route.version
        found = _only_partition(self._services, request, reply, version)
        if found is None:
            return
        partition, settings = found
        head_end = body_at + _head_bytes(request, version)
        is_other = head_end != self._head_end or route is not self._route or client_id != self._client_id
        if is_other or len(self._known) >= REMEMBERED_MAX:
            self._take_over(route, head_end)
            self._client_id = client_id
        records = self._records(frame, head_end, len(frame))
        if records is None or len(records) != len(request.topic_data[0].partition_data[0].records):
            return
        encoded = b"".join(route.encode(reply, 0))  # type: ignore[arg-type] # there are no ranges in it
        known = Known(partition, settings, request.acks, encoded, version)
        self._known[bytes(frame[_CORRELATION_END:head_end])] = known


def _only_partition(
    services: Services, request: ProduceRequest, reply: ProduceResponse, version: int
) -> tuple[Partition, LogSettings] | None:
    """The one partition of a request that succeeded and had nothing to wait for."""
    topics = request.topic_data
    if request.transactional_id is not None or request.acks not in _ACKS_REPLIED or len(topics) != 1:
        return None
    topic = topics[0]
    replicas = services.replicas
    by_id = version >= _BY_TOPIC_ID_SINCE
    hosted = replicas.topics_by_id.get(topic.topic_id) if by_id else replicas.topics.get(topic.name)
    if hosted is None or hosted.name in INTERNAL_TOPICS or len(topic.partition_data) != 1:
        return None
    result = reply.responses[0].partition_responses[0]
    partition = hosted.partitions.get(topic.partition_data[0].index)
    log = None if partition is None else partition.prompt_log
    if partition is None or log is None or result.error_code:
        return None
    # Setting the log's time changes the batch, so that the handler could not look at it afresh.
    if log.settings.flush_messages != LONG_MAX or log.settings.message_timestamp_type != "CreateTime":
        return None
    return partition, log.settings


def _head_bytes(request: ProduceRequest, version: int) -> int:
    """From the start of the body to the records' length; another length than this is not to be expected."""
    name = len(request.topic_data[0].name.encode())
    if version < _FLEXIBLE_SINCE:
        return _FIXED_BYTES + name
    if version >= _BY_TOPIC_ID_SINCE:
        return _FIXED_BYTES_FLEXIBLE + _TOPIC_ID_BYTES
    return _FIXED_BYTES_FLEXIBLE + len(unsigned_varint(name + 1)) + name


@cache
def _layout(version: int) -> tuple[int, int]:
    """How many numbers a reply has for its partition (offset, time, log start), and the bytes after them."""
    offset, time, log_start = _MARKS
    result = PartitionProduceResponse(
        index=0, base_offset=offset, log_append_time_ms=time, log_start_offset=log_start
    )
    responses = [TopicProduceResponse(name="", partition_responses=[result])]
    encoded = encode(ProduceResponse(responses=responses), version)
    numbers = 3 if version >= _LOG_START_SINCE else 2
    marks = struct.pack(f">{numbers}q", *_MARKS[:numbers])
    return numbers, len(encoded) - encoded.index(marks) - len(marks)


@cache
def _front_struct(head: int) -> struct.Struct:
    """API and version, correlation id, and as much as stays the same."""
    return struct.Struct(f">ii{head}s")


@cache
def _reply_struct(before: int, numbers: int, after: int) -> struct.Struct:
    """Size, correlation id, what stands before the numbers, the numbers, what stands behind them."""
    return struct.Struct(f">ii{before}s{numbers}q{after}s")
