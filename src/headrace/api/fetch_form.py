"""The bytes of fetches of one partition: where in a request its numbers are, and how to spell the reply.

What is worked out here is remembered by `fetch_shortcut`; nothing here knows of logs or connections.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from headrace.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headrace.protocol.varint import read_unsigned_varint, unsigned_varint

if TYPE_CHECKING:
    from headrace.api.dispatch import Route

_SESSIONS_SINCE: Final = 7
_LEADER_EPOCH_SINCE: Final = 9
_FLEXIBLE_SINCE: Final = 12
_BY_TOPIC_ID_SINCE: Final = 13
_REPLICA_STATE_SINCE: Final = 15
_LOG_START_SINCE: Final = 5
_START_BYTES: Final = 8
_CORRELATION_AND_SIZE: Final = 8
_LENGTH: Final = struct.Struct(">i")
_SHORT_LENGTH: Final = struct.Struct(">h")
# The time and bytes to wait for, the most bytes, the isolation level; then what is not in all versions.
_FIXED_BYTES: Final = 4 + 4 + 4 + 1
_REPLICA_ID_BYTES: Final = 4
_SESSION_ID_BYTES: Final = 4
_EPOCH_BYTES: Final = 4
_INDEX_BYTES: Final = 4
_TOPIC_ID_BYTES: Final = 16
#: The length of the records, and the three ends of tagged fields in flexible versions: of the same length.
_LENGTH_AND_TAGS: Final = 4
_MARKS: Final = (0x0123456789ABCDEF, 0x123456789ABCDEF0, 0x23456789ABCDEF01)


class RequestForm:
    """What stays the same in all requests of a kind, and where the numbers are that do not.

    `pieces(frame)` are in turns what stays the same and the numbers: the correlation id, the epoch if the
    request belongs to a session, and the offset if it has a partition."""

    __slots__ = ("fixed", "pieces", "size")

    def __init__(self, frame: bytes, holes: list[tuple[int, str]]) -> None:
        spelt = ">4si"
        end = _START_BYTES
        for position, kind in holes:
            spelt += f"{position - end}s{kind}"
            end = position + struct.calcsize(f">{kind}")
        layout = _layout(f"{spelt}{len(frame) - end}s")
        self.size = len(frame)
        self.pieces: Callable[[memoryview | bytes], tuple[Any, ...]] = layout.unpack
        self.fixed = layout.unpack(frame)[::2]


def request_form(
    request: FetchRequest, version: int, frame: memoryview, body_at: int, *, in_session: bool
) -> RequestForm:
    """The form of a request of at most one partition that was decoded from `frame`."""
    position = body_at + _FIXED_BYTES + (_REPLICA_ID_BYTES if version < _REPLICA_STATE_SINCE else 0)
    holes: list[tuple[int, str]] = []
    if version >= _SESSIONS_SINCE:
        position += _SESSION_ID_BYTES
        if in_session:
            holes.append((position, "i"))
        position += _EPOCH_BYTES
    if request.topics:
        holes.append((_offset_at(version, frame, position), "q"))
    return RequestForm(bytes(frame), holes)


def _offset_at(version: int, frame: memoryview, position: int) -> int:
    """Where the offset of the first partition of the first topic is; the topics begin at `position`."""
    after_index = _INDEX_BYTES + (_EPOCH_BYTES if version >= _LEADER_EPOCH_SINCE else 0)
    if version < _FLEXIBLE_SINCE:
        (name,) = _SHORT_LENGTH.unpack_from(frame, position + _LENGTH.size)
        return position + _LENGTH.size + _SHORT_LENGTH.size + int(name) + _LENGTH.size + after_index
    _, position = read_unsigned_varint(frame, position)
    if version >= _BY_TOPIC_ID_SINCE:
        position += _TOPIC_ID_BYTES
    else:
        name_and_one, position = read_unsigned_varint(frame, position)
        position += name_and_one - 1
    _, position = read_unsigned_varint(frame, position)
    return position + after_index


class ReplyForm:
    """The reply to a fetch of one partition that went well, around its numbers and its records."""

    __slots__ = ("_before", "_between", "_fixed_bytes", "_has_log_start", "_is_flexible", "_pack", "after")

    def __init__(
        self, route: "Route", session_id: int, topic: str, topic_id: UUID, index: int, *, is_committed: bool
    ) -> None:
        version = route.version
        data = PartitionData(
            partition_index=index,
            high_watermark=_MARKS[0],
            last_stable_offset=_MARKS[1],
            log_start_offset=_MARKS[2],
            aborted_transactions=[] if is_committed else None,
            records=b"",
        )
        topics = [FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[data])]
        encoded = spelt(route, FetchResponse(session_id=session_id, responses=topics))
        numbers = 3 if version >= _LOG_START_SINCE else 2
        marks = struct.pack(f">{numbers}q", *_MARKS[:numbers])
        before, _, rest = encoded[_CORRELATION_AND_SIZE:].partition(marks)
        between, ending = rest[:-_LENGTH_AND_TAGS], rest[-_LENGTH_AND_TAGS:]
        self._is_flexible = version >= _FLEXIBLE_SINCE
        self._has_log_start = version >= _LOG_START_SINCE
        self._before = before
        self._between = between
        #: What follows the records.
        self.after = ending[1:] if self._is_flexible else b""
        self._fixed_bytes = 4 + len(before) + len(marks) + len(between) + len(self.after)
        self._pack = _layout(f">ii{len(before)}s{numbers}q{len(between)}s").pack

    def head(
        self, correlation_id: int, high_watermark: int, last_stable: int, log_start: int, size: int
    ) -> bytes:
        """Everything up to records of `size` bytes."""
        length = unsigned_varint(size + 1) if self._is_flexible else _LENGTH.pack(size)
        whole = self._fixed_bytes + len(length) + size
        if self._has_log_start:
            return (
                self._pack(
                    whole, correlation_id, self._before, high_watermark, last_stable, log_start, self._between
                )
                + length
            )
        return (
            self._pack(whole, correlation_id, self._before, high_watermark, last_stable, self._between)
            + length
        )


def spelt(route: "Route", reply: FetchResponse) -> bytes:
    """A whole reply without file ranges, with 0 for its correlation id."""
    return b"".join(route.encode(reply, 0))  # type: ignore[arg-type] # there are no ranges in it


@cache
def _layout(spelt: str) -> struct.Struct:
    return struct.Struct(spelt)
