"""Encode and decode: the codec's front door.

Functions for a message and version are compiled when first needed and kept with the message's class. They
take no care to explain what is wrong with bad input; when one fails, a slow checked walk over the same bytes
does.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from headrace.ports import BytesLike
from headrace.protocol.errors import MalformedMessage, UnencodableMessage
from headrace.protocol.fields import RecordData
from headrace.protocol.message import Message

M = TypeVar("M", bound=Message)

_FAILURES = (struct.error, ValueError, IndexError, TypeError, AttributeError, OverflowError)


def decode(cls: type[M], version: int, buffer: BytesLike, position: int = 0) -> M:
    """The message that fills the buffer from `position` to its end. Record data are views of the buffer."""
    try:
        decoder = cls.DECODERS.get(version) or _compile_decoder(cls, version, in_place=False)
        message, end = decoder(buffer, position)
    except _FAILURES as failure:
        raise _explain(cls, version, buffer, position, exact=True) from failure
    if end != len(buffer):
        raise _explain(cls, version, buffer, position, exact=True)
    return message  # type: ignore[no-any-return]


def decode_prefix(cls: type[M], version: int, buffer: BytesLike, position: int = 0) -> tuple[M, int]:
    """The message at `position` and where it ends; bytes beyond are not looked at, the buffer not copied."""
    try:
        decoder = cls.DECODERS_IN_PLACE.get(version) or _compile_decoder(cls, version, in_place=True)
        message, end = decoder(buffer, position)
    except _FAILURES as failure:
        raise _explain(cls, version, buffer, position, exact=False) from failure
    if end > len(buffer):
        raise _explain(cls, version, buffer, position, exact=False)
    return message, end


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message."""
    parts: list[Any] = []
    try:
        cls = type(message)
        encoder = cls.ENCODERS.get(version) or _compile_encoder(cls, version)
        encoder(message, parts, [])
        return b"".join(parts)
    except _FAILURES as failure:
        raise _explain_encoding(message, version) from failure


def encode_parts(message: Message, version: int) -> list[RecordData]:
    """The bytes of a message in pieces; record data stay the objects they are, views or file ranges."""
    parts: list[Any] = []
    marks: list[int] = []
    try:
        cls = type(message)
        encoder = cls.ENCODERS.get(version) or _compile_encoder(cls, version)
        encoder(message, parts, marks)
        return _joined_between(parts, marks)
    except _FAILURES as failure:
        raise _explain_encoding(message, version) from failure


def prepare_decoder(cls: type[Message], version: int) -> None:
    """Compile what `decode` needs, ahead of time."""
    if version not in cls.DECODERS:
        _compile_decoder(cls, version, in_place=False)


def prepare_encoder(cls: type[Message], version: int) -> None:
    """Compile what `encode` and `encode_parts` need, ahead of time."""
    if version not in cls.ENCODERS:
        _compile_encoder(cls, version)


def _joined_between(parts: list[Any], marks: list[int]) -> list[RecordData]:
    pieces: list[RecordData] = []
    start = 0
    for mark in marks:
        if mark > start:
            pieces.append(b"".join(parts[start:mark]))
        pieces.append(parts[mark])
        start = mark + 1
    if start < len(parts):
        pieces.append(b"".join(parts[start:]))
    return pieces


def _compile_encoder(cls: type[Message], version: int) -> Callable[..., None]:
    """Compiles and keeps one encoder. The generators are imported on first use: a program that only imports
    messages has no need of them, and start-up time is a feature."""
    from headrace.protocol.encode_source import compile_encoder

    if not cls.VERSION_MIN <= version <= cls.VERSION_MAX:
        raise UnencodableMessage(cls.__name__, version, "", _unknown_version(cls))
    encoder = cls.ENCODERS[version] = compile_encoder(cls, version)
    return encoder


def _compile_decoder(cls: type[Message], version: int, in_place: bool) -> Callable[..., tuple[Any, int]]:
    from headrace.protocol.decode_source import compile_decoder, holds_records
    from headrace.protocol.schema import is_flexible

    if not cls.VERSION_MIN <= version <= cls.VERSION_MAX:
        raise MalformedMessage(cls.__name__, version, "", 0, _unknown_version(cls))
    has_views = in_place or holds_records(cls, version, is_flexible(cls, version))
    decoder = compile_decoder(cls, version, has_views)
    (cls.DECODERS_IN_PLACE if in_place else cls.DECODERS)[version] = decoder
    return decoder


def _unknown_version(cls: type[Message]) -> str:
    return f"unknown version, known are {cls.VERSION_MIN} to {cls.VERSION_MAX}"


def _explain(
    cls: type[Message], version: int, buffer: BytesLike, position: int, exact: bool
) -> MalformedMessage:
    from headrace.protocol.checked_decode import find_fault

    return find_fault(cls, version, buffer, position, exact)


def _explain_encoding(message: Message, version: int) -> UnencodableMessage:
    from headrace.protocol.checked_encode import find_fault

    return find_fault(message, version)
