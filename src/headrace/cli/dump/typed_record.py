"""Records that start with a frame version, their type and their version: metadata and tiered storage."""

from importlib import import_module

from headrace.cli.dump.line import DumpError
from headrace.protocol.codec import decode
from headrace.protocol.errors import ProtocolError
from headrace.protocol.message import Message
from headrace.protocol.varint import read_unsigned_varint

_FRAME_VERSION = 1
_SHORT_MAX = 0x7FFF


class NotReadable(DumpError):
    """A record that is not what it is taken for; the dump says so and goes on."""


def read_typed_record(value: bytes | None, table: dict[int, tuple[str, str]]) -> tuple[Message, int]:
    """The message in a record's value, and its version."""
    value = value or b""
    frame, position = _short(value, 0, "frame version")
    if frame == 0:
        raise NotReadable(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
            "release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != _FRAME_VERSION:
        raise NotReadable(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            f"(only frame version {_FRAME_VERSION} is supported)"
        )
    kind, position = _short(value, position, "type")
    version, position = _short(value, position, "version")
    if kind not in table:
        raise NotReadable(
            f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {kind}"
        )
    module, name = table[kind]
    cls: type[Message] = getattr(import_module(f"headrace.protocol.disk_records.{module}"), name)
    try:
        return decode(cls, version, value, position), version
    except ProtocolError as error:
        raise NotReadable(f"Failed to deserialize record with type {kind}: {error}") from error


def _short(value: bytes, position: int, what: str) -> tuple[int, int]:
    try:
        number, position = read_unsigned_varint(value, position)
    except (IndexError, ProtocolError, ValueError):
        raise NotReadable(f"Error while reading {what}") from None
    if number > _SHORT_MAX:
        raise NotReadable(f"Value for {what} was too large.")
    return number, position
