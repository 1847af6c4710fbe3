"""Messages as JSON, with the field names and value forms of Kafka's own converters."""

from base64 import b64encode, urlsafe_b64encode
from functools import cache
from typing import Any
from uuid import UUID

from headrace.cli.dump.line import Fields, Json
from headrace.protocol.message import Message
from headrace.protocol.schema import FieldLayout, is_default, is_flexible, layout_of


def message_json(message: Message, version: int) -> Fields:
    """A message of one version: fields of other versions and tagged fields at their default are left out."""
    return _structure(message, version, is_flexible(type(message), version))


def camel_case(name: str) -> str:
    """A field's name as Kafka spells it."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def uuid_text(value: UUID) -> str:
    """A UUID as Kafka prints it: base64 for file names and addresses, without padding."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


@cache
def _fields_of(cls: type[Message], version: int, flexible: bool) -> tuple[tuple[str, FieldLayout], ...]:
    layout = layout_of(cls, version, flexible)
    shown = {field.name: field for field in (*layout.present, *layout.tagged) if field.is_present}
    return tuple(
        (cls.wire(name).json_name or camel_case(name), shown[name])
        for name in cls.FIELD_NAMES
        if name in shown
    )


def _structure(message: Message, version: int, flexible: bool) -> Fields:
    found: Fields = {}
    for name, field in _fields_of(type(message), version, flexible):
        value = getattr(message, field.name)
        if field.tag is None or not is_default(field, value):
            found[name] = _value(value, version, flexible)
    return found


def _value(value: Any, version: int, flexible: bool) -> Json:
    match value:
        case list():
            return [_value(item, version, flexible) for item in value]
        case Message():
            return _structure(value, version, flexible)
        case UUID():
            return uuid_text(value)
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(f"a message holds no {type(value).__name__}")
