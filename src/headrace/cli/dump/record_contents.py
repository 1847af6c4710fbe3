"""How the keys and values of records are shown: as text, or decoded as one of Kafka's internal topics.

A decoder never fails on a bad record: it says so in place of the value, as Kafka's tool does, and goes on.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias

from headrace.cli.dump.java_text import java_json, java_utf8
from headrace.cli.dump.line import DumpError, Fields
from headrace.cli.dump.options import Contents, DumpOptions, Scalar
from headrace.records.reader import Record


@dataclass(frozen=True, slots=True)
class Described:
    """A value whose text form in Kafka's tool is not its JSON form."""

    text: str
    fields: Fields


Content: TypeAlias = bytes | str | int | Fields | Described
_INT = Struct(">i")
_LONG = Struct(">q")


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record's key and value as they will be printed; None where there is nothing to print."""

    key: Content | None
    value: Content | None


Decoder: TypeAlias = Callable[[Record], ShownRecord]


def decoder_for(options: DumpOptions) -> Decoder:
    """The decoder that the options ask for; those that need message schemas are loaded only then."""
    match options.contents:
        case Contents.TEXT:
            read_key, read_value = _SCALARS[options.key_scalar], _SCALARS[options.value_scalar]
            return lambda record: ShownRecord(
                _scalar(read_key, record.key), _scalar(read_value, record.value)
            )
        case Contents.CLUSTER_METADATA:
            from headrace.cli.dump.metadata_records import show_metadata_record

            return show_metadata_record
        case Contents.REMOTE_LOG_METADATA:
            from headrace.cli.dump.remote_log_records import show_remote_log_record

            return show_remote_log_record
        case coordinator:
            from headrace.cli.dump.coordinator_records import coordinator_decoder

            return coordinator_decoder(coordinator)


def content_text(content: Content) -> str:
    """A key or value as Kafka's tool prints it."""
    match content:
        case bytes():
            return java_utf8(content)
        case Described():
            return content.text
        case dict():
            return java_json(content)
        case _:
            return str(content)


def content_fields(name: str, content: Content | None) -> Fields:
    """A key or value for JSON: text where the bytes are text, otherwise base64 under another name."""
    if content is None:
        return {name: None}
    if isinstance(content, bytes):
        try:
            return {name: content.decode()}
        except UnicodeDecodeError:
            return {f"{name}Base64": b64encode(content).decode()}
    return {name: content.fields if isinstance(content, Described) else content}


def _scalar(read: Callable[[bytes], Content], data: bytes | None) -> Content | None:
    return None if data is None else read(data)


def _as_bytes(data: bytes) -> Content:
    return data


def _as_integer(data: bytes) -> Content:
    return _first_number(_INT, "integer", data)


def _as_long(data: bytes) -> Content:
    return _first_number(_LONG, "long", data)


def _first_number(layout: Struct, name: str, data: bytes) -> int:
    if len(data) < layout.size:
        raise DumpError(f"a key or value of {len(data)} bytes is no {name}: that takes {layout.size}")
    number: int = layout.unpack_from(data)[0]
    return number


_SCALARS = {Scalar.STRING: _as_bytes, Scalar.INTEGER: _as_integer, Scalar.LONG: _as_long}
