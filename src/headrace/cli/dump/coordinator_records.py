"""Decodes the records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

Their keys start with the record's type, their values with a version; a value of null deletes the key.
"""

from base64 import b64decode
from importlib import import_module
from struct import Struct

from headrace.cli.dump.line import DumpError, Fields, Json
from headrace.cli.dump.message_json import message_json
from headrace.cli.dump.options import Contents
from headrace.cli.dump.record_contents import Content, Decoder, ShownRecord
from headrace.protocol.codec import decode_prefix
from headrace.protocol.disk_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.message import Message
from headrace.protocol.record_table import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from headrace.records.reader import Record

_PREFIX = Struct(">h")
_TABLES = {
    Contents.OFFSETS: GROUP_RECORDS,
    Contents.TRANSACTIONS: TRANSACTION_RECORDS,
    Contents.SHARE_GROUPS: SHARE_RECORDS,
}
_CLASSIC_GROUP = "GroupMetadataValue"
_CONSUMER_PROTOCOL = "consumer"
_EMBEDDED: dict[str, type[Message]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}


class _NotReadable(DumpError):
    """A key or value that is not what the topic should hold."""


def coordinator_decoder(contents: Contents) -> Decoder:
    """The decoder for one of the coordinators' topics."""
    table = _TABLES[contents]
    return lambda record: _show(record, table)


def _show(record: Record, table: dict[int, tuple[str, str, str]]) -> ShownRecord:
    if record.key is None:
        raise DumpError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        kind = _prefix(record.key, "key")
        if kind not in table:
            return ShownRecord(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
        module, key_name, value_name = table[kind]
        messages = import_module(f"headrace.protocol.disk_records.{module}")
        key = _read(getattr(messages, key_name), 0, record.key, "key")
        shown_key: Fields = {"type": str(kind), "data": message_json(key, 0)}
        return ShownRecord(shown_key, _shown_value(getattr(messages, value_name), kind, record.value))
    except _NotReadable as error:
        return ShownRecord(f"Error at offset {record.offset}, skipping. {error}", None)


def _shown_value(cls: type[Message], kind: int, data: bytes | None) -> Content:
    if data is None:
        return "<DELETE>"
    version = _prefix(data, "value")
    if not cls.VERSION_MIN <= version <= cls.VERSION_MAX:
        raise _NotReadable(f"Found an unknown record version {version} for {kind} type")
    fields = message_json(_read(cls, version, data, "value"), version)
    if cls.__name__ == _CLASSIC_GROUP:
        _expand_consumer_protocol(fields)
    return {"version": str(version), "data": fields}


def _prefix(data: bytes, name: str) -> int:
    if len(data) < _PREFIX.size:
        raise _NotReadable(f"Could not read version from {name}'s buffer.")
    number: int = _PREFIX.unpack_from(data)[0]
    return number


def _read(cls: type[Message], version: int, data: bytes, name: str) -> Message:
    try:
        return decode_prefix(cls, version, data, _PREFIX.size)[0]
    except ProtocolError as error:
        raise _NotReadable(
            f"Could not read record with version {version} from {name}'s buffer due to: {error}."
        ) from error


def _expand_consumer_protocol(group: Fields) -> None:
    """Consumers put messages of their own into a group's members; other protocols' bytes stay bytes."""
    members = group.get("members")
    if group.get("protocolType") != _CONSUMER_PROTOCOL or not isinstance(members, list):
        return
    for member in members:
        if isinstance(member, dict):
            for name, cls in _EMBEDDED.items():
                member[name] = _expanded(member.get(name), cls)


def _expanded(encoded: Json, cls: type[Message]) -> Json:
    data = b64decode(encoded) if isinstance(encoded, str) else b""
    if len(data) < _PREFIX.size:
        return encoded
    version: int = _PREFIX.unpack_from(data)[0]
    try:
        return message_json(decode_prefix(cls, version, data, _PREFIX.size)[0], version)
    except ProtocolError:
        # Members may use any version of a protocol that is theirs: what can't be read is shown as it is.
        return encoded
