"""Frames on a connection: a length, a header, a message. Bytes in, bytes out; no sockets.

A length beyond the bound is refused as soon as its four bytes are there, before anything is read or allocated
for it.
"""

import struct
from typing import TypeVar

from headrace.ports import BytesLike
from headrace.protocol.apis import APIS, Api
from headrace.protocol.codec import decode, decode_prefix, encode, encode_parts
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.fields import RecordData
from headrace.protocol.message import Message
from headrace.protocol.messages.headers import RequestHeader

M = TypeVar("M", bound=Message)

SIZE_BYTES = 4
_SIZE = struct.Struct(">i")
_KEY_AND_VERSION = struct.Struct(">hh")
_RESPONSE_HEADS = (struct.Struct(">ii"), struct.Struct(">iix"))


def frame_end(buffer: BytesLike, position: int, size_max: int) -> int | None:
    """Where the frame that starts at `position` ends, or None while its length is not all there.

    The frame's own bytes need not be there yet. A length that is negative or above `size_max` is refused.
    """
    if len(buffer) - position < SIZE_BYTES:
        return None
    (size,) = _SIZE.unpack_from(buffer, position)
    if not 0 <= size <= size_max:
        raise MalformedMessage("Frame", 0, "size", position, f"{size} is not between 0 and {size_max}")
    return position + SIZE_BYTES + int(size)


class FrameSplitter:
    """Collects received bytes and gives out the frames among them, without their lengths."""

    __slots__ = ("_received", "size_max")

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self._received = bytearray()

    def feed(self, data: BytesLike) -> list[bytes]:
        """Takes what was received and returns the frames it completes."""
        self._received += data
        frames = []
        position = 0
        with memoryview(self._received) as view:
            end = frame_end(view, position, self.size_max)
            while end is not None and end <= len(view):
                frames.append(bytes(view[position + SIZE_BYTES : end]))
                position = end
                end = frame_end(view, position, self.size_max)
        del self._received[:position]
        return frames

    @property
    def is_amid_frame(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._received)


def decode_request_header(frame: BytesLike) -> tuple[RequestHeader, int]:
    """A request's header and where its body starts. The version may be one that has no schema."""
    if len(frame) < _KEY_AND_VERSION.size:
        raise MalformedMessage("RequestHeader", 0, "request_api_key", 0, f"frame of {len(frame)} bytes")
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    api = APIS.get(key)
    if api is None or api.is_withdrawn:
        raise MalformedMessage("RequestHeader", 0, "request_api_key", 0, f"no API has key {key}")
    return decode_prefix(RequestHeader, api.request_header_version(version), frame)


def decode_request(frame: BytesLike) -> tuple[RequestHeader, Message]:
    """A request's header and message."""
    header, position = decode_request_header(frame)
    message_class = APIS[header.request_api_key].request_class()
    return header, decode(message_class, header.request_api_version, frame, position)


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request's frame, length included."""
    api = APIS[message.API_KEY]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = encode(header, api.request_header_version(version))
    body = encode(message, version)
    return b"".join((_SIZE.pack(len(head) + len(body)), head, body))


def encode_request_parts(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> list[RecordData]:
    """A request's frame in pieces to be sent one after the other; record data stay the objects they are."""
    api = APIS[message.API_KEY]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    head = encode(header, api.request_header_version(version))
    pieces = encode_parts(message, version)
    return [_SIZE.pack(len(head) + sum(map(len, pieces))) + head, *pieces]


def decode_response_header(frame: BytesLike, api: Api, version: int) -> tuple[int, int]:
    """The correlation id of a response and where its body starts."""
    from headrace.protocol.messages.headers import ResponseHeader

    header, position = decode_prefix(ResponseHeader, api.response_header_version(version), frame)
    return header.correlation_id, position


def decode_response(cls: type[M], version: int, frame: BytesLike) -> tuple[int, M]:
    """A response's correlation id and message."""
    correlation_id, position = decode_response_header(frame, APIS[cls.API_KEY], version)
    return correlation_id, decode(cls, version, frame, position)


def encode_response(message: Message, version: int, correlation_id: int) -> bytes:
    """A response's frame, length included."""
    body = encode(message, version)
    return _response_head(message, version, correlation_id, len(body)) + body


def encode_response_parts(message: Message, version: int, correlation_id: int) -> list[RecordData]:
    """A response's frame in pieces to be sent one after the other; record data stay the objects they are."""
    pieces = encode_parts(message, version)
    head = _response_head(message, version, correlation_id, sum(map(len, pieces)))
    first = pieces[0] if pieces else b""
    if isinstance(first, bytes):
        return [head + first, *pieces[1:]]
    return [head, *pieces]


def _response_head(message: Message, version: int, correlation_id: int, body_size: int) -> bytes:
    head = _RESPONSE_HEADS[APIS[message.API_KEY].response_header_version(version)]
    return head.pack(head.size - SIZE_BYTES + body_size, correlation_id)
