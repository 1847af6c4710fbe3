"""The prefixes that say what a message on disk is: a version, a type, or both.

Logs of the coordinators have int16 types and versions in keys and values; metadata records have varints after
a frame version; snapshots, principals and what group members tell each other have an int16 version only.
"""

import struct
from functools import cache
from importlib import import_module
from typing import TypeAlias, TypeVar, cast

from headrace.ports import BytesLike
from headrace.protocol.codec import decode, decode_prefix, encode
from headrace.protocol.errors import BadVarint, MalformedMessage, UnencodableMessage
from headrace.protocol.message import Message
from headrace.protocol.record_table import (
    GROUP_RECORDS,
    METADATA_RECORDS,
    REMOTE_LOG_RECORDS,
    SHARE_RECORDS,
    TRANSACTION_RECORDS,
)
from headrace.protocol.varint import read_unsigned_varint, unsigned_varint

M = TypeVar("M", bound=Message)

#: Tables by type: module and class; or module, class of the key and class of the value.
TypeTable: TypeAlias = dict[int, tuple[str, str]]
KeyedTable: TypeAlias = dict[int, tuple[str, str, str]]

FRAME_VERSION = 1
_SHORT = struct.Struct(">h")
_SHORT_MAX = 0x7FFF


def encode_versioned(message: Message, version: int) -> bytes:
    """A message behind its int16 version."""
    return _SHORT.pack(version) + encode(message, version)


def decode_versioned(cls: type[M], buffer: BytesLike, newer_as_latest: bool = False) -> tuple[M, int]:
    """A message behind its int16 version, and that version.

    With `newer_as_latest`, a version that is not known yet is read as the latest that is, and what it has
    beyond that is left alone: members of a group may be of different releases.
    """
    version = _read_short(buffer, cls.__name__, "version")
    if newer_as_latest:
        known = min(version, cls.VERSION_MAX)
        return decode_prefix(cls, known, buffer, _SHORT.size)[0], known
    return decode(cls, version, buffer, _SHORT.size), version


def encode_metadata_record(message: Message, version: int) -> bytes:
    """The value of a record of `__cluster_metadata`."""
    return _encode_typed(METADATA_RECORDS, message, version)


def decode_metadata_record(buffer: BytesLike) -> tuple[Message, int]:
    """The message in the value of a record of `__cluster_metadata`, and its version."""
    return _decode_typed(METADATA_RECORDS, buffer, "MetadataRecord")


def encode_remote_log_record(message: Message, version: int) -> bytes:
    """The value of a record of `__remote_log_metadata`."""
    return _encode_typed(REMOTE_LOG_RECORDS, message, version)


def decode_remote_log_record(buffer: BytesLike) -> tuple[Message, int]:
    """The message in the value of a record of `__remote_log_metadata`, and its version."""
    return _decode_typed(REMOTE_LOG_RECORDS, buffer, "RemoteLogMetadataRecord")


class CoordinatorRecords:
    """The keys and values of one coordinator's log."""

    def __init__(self, name: str, table: KeyedTable) -> None:
        self.name = name
        self._table = table

    def encode_key(self, key: Message) -> bytes:
        """A record's key: its type, then its only version."""
        if self._table.get(key.API_KEY, ("", "", ""))[1] != type(key).__name__:
            raise UnencodableMessage(type(key).__name__, 0, "", f"no key of {self.name}")
        return _SHORT.pack(key.API_KEY) + encode(key, 0)

    def encode_value(self, value: Message, version: int) -> bytes:
        """A record's value behind its version; its type is in the key."""
        return encode_versioned(value, version)

    def decode_key(self, buffer: BytesLike) -> Message:
        """A record's key."""
        kind = _read_short(buffer, f"{self.name} key", "type")
        return decode(self._class(kind, 1), 0, buffer, _SHORT.size)

    def type_of(self, buffer: BytesLike) -> int:
        """The type of a record by its key, be it known or not."""
        return _read_short(buffer, f"{self.name} key", "type")

    def has_type(self, kind: int) -> bool:
        """Whether records of a type can be read: later releases have other ones."""
        return kind in self._table

    def decode_value(self, key: Message, buffer: BytesLike) -> tuple[Message, int]:
        """The value that belongs to a key, and its version. A tombstone has none: do not ask for it."""
        return decode_versioned(self._class(key.API_KEY, 2), buffer)

    def _class(self, kind: int, column: int) -> type[Message]:
        row = self._table.get(kind)
        if row is None:
            raise MalformedMessage(f"{self.name} key", 0, "type", 0, f"unknown record type {kind}")
        return _load(row[0], row[column])


GROUP_LOG = CoordinatorRecords("__consumer_offsets", GROUP_RECORDS)
TRANSACTION_LOG = CoordinatorRecords("__transaction_state", TRANSACTION_RECORDS)
SHARE_LOG = CoordinatorRecords("__share_group_state", SHARE_RECORDS)


def _encode_typed(table: TypeTable, message: Message, version: int) -> bytes:
    if table.get(message.API_KEY, ("", ""))[1] != type(message).__name__:
        raise UnencodableMessage(type(message).__name__, version, "", "no record of this log")
    body = encode(message, version)
    prefix = (unsigned_varint(number) for number in (FRAME_VERSION, message.API_KEY, version))
    return b"".join((*prefix, body))


def _decode_typed(table: TypeTable, buffer: BytesLike, name: str) -> tuple[Message, int]:
    frame, position = _read_small(buffer, 0, name, "frame_version")
    if frame != FRAME_VERSION:
        raise MalformedMessage(name, 0, "frame_version", 0, f"unknown frame version {frame}")
    kind, position = _read_small(buffer, position, name, "type")
    if kind not in table:
        raise MalformedMessage(name, 0, "type", 1, f"unknown record type {kind}")
    version, position = _read_small(buffer, position, name, "version")
    return decode(_load(*table[kind]), version, buffer, position), version


@cache
def _load(module: str, name: str) -> type[Message]:
    return cast(type[Message], getattr(import_module(f"headrace.protocol.disk_records.{module}"), name))


def _read_short(buffer: BytesLike, name: str, field: str) -> int:
    if len(buffer) < _SHORT.size:
        raise MalformedMessage(name, 0, field, 0, f"truncated: {len(buffer)} bytes")
    return int(_SHORT.unpack_from(buffer)[0])


def _read_small(buffer: BytesLike, position: int, name: str, field: str) -> tuple[int, int]:
    try:
        value, end = read_unsigned_varint(buffer, position)
    except (IndexError, BadVarint) as failure:
        raise MalformedMessage(name, 0, field, position, str(failure)) from failure
    if value > _SHORT_MAX:
        raise MalformedMessage(name, 0, field, position, f"{value} is too large")
    return value, end
