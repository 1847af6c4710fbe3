"""Walks over a message field by field to say which value cannot be written in the version asked for.

It writes nothing: it is called after a compiled encoder has failed, and only names the culprit.
"""

import struct
from typing import Any, NoReturn
from uuid import UUID

from headrace.protocol.errors import UnencodableMessage
from headrace.protocol.fields import FIXED_CODES
from headrace.protocol.message import Message
from headrace.protocol.schema import (
    STRING_BYTES_MAX,
    FieldLayout,
    Kind,
    Layout,
    is_default,
    is_flexible,
    layout_of,
)


def find_fault(message: Message, version: int) -> UnencodableMessage:
    """The first fault of a message that could not be encoded."""
    cls = type(message)
    walk = _Walk(cls, version)
    try:
        walk.structure(message, layout_of(cls, version, is_flexible(cls, version)), "")
    except UnencodableMessage as fault:
        return fault
    return UnencodableMessage(cls.__name__, version, "", "unwritable")


class _Walk:
    """The checks, and the message they report on."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version

    def fail(self, path: str, reason: str) -> NoReturn:
        raise UnencodableMessage(self.cls.__name__, self.version, path, reason)

    def structure(self, message: Any, layout: Layout, path: str) -> None:
        if type(message) is not layout.cls:
            self.fail(path, f"{layout.cls.__name__} expected, not {type(message).__name__}")
        prefix = f"{path}." if path else ""
        for field in layout.absent:
            if not field.is_ignorable and not is_default(field, self.get(message, field, prefix)):
                self.fail(prefix + field.name, "set, but not part of this version")
        for field in layout.present:
            self.field(field, self.get(message, field, prefix), layout, prefix + field.name)
        for field in layout.tagged:
            value = self.get(message, field, prefix)
            if not is_default(field, value):
                self.field(field, value, layout, prefix + field.name)
        self.unknown_tags(message, layout, prefix + "unknown_tags")

    def get(self, message: Message, field: FieldLayout, prefix: str) -> Any:
        try:
            return getattr(message, field.name)
        except AttributeError:
            self.fail(prefix + field.name, "not set")

    def field(self, field: FieldLayout, value: Any, layout: Layout, path: str) -> None:
        if value is None:
            if not field.is_nullable:
                self.fail(path, "None, which this version has no null for")
        elif field.is_array:
            self.array(field, value, layout, path)
        elif field.structure:
            self.structure(value, layout_of(field.structure, layout.version, layout.is_flexible), path)
        else:
            self.value(field.kind, value, path)

    def array(self, field: FieldLayout, values: Any, layout: Layout, path: str) -> None:
        if not isinstance(values, list | tuple):
            self.fail(path, f"list expected, not {type(values).__name__}")
        inner = layout_of(field.structure, layout.version, layout.is_flexible) if field.structure else None
        for index, value in enumerate(values):
            if inner:
                self.structure(value, inner, f"{path}[{index}]")
            else:
                self.value(field.kind, value, f"{path}[{index}]")

    def value(self, kind: Kind, value: Any, path: str) -> None:
        assert isinstance(kind, str)
        if kind == "string":
            self.text(value, path)
        elif kind == "uuid":
            if not isinstance(value, UUID):
                self.fail(path, f"UUID expected, not {type(value).__name__}")
        elif kind == "bytes":
            if not isinstance(value, bytes | bytearray | memoryview):
                self.fail(path, f"bytes expected, not {type(value).__name__}")
        elif kind == "records":
            if not isinstance(value, bytes | bytearray | memoryview):
                self.fail(path, f"{type(value).__name__} has no bytes at hand; use encode_parts")
        else:
            try:
                struct.pack(">" + FIXED_CODES[kind], value)
            except struct.error as failure:
                self.fail(path, f"{value!r} is no {kind}: {failure}")

    def text(self, value: Any, path: str) -> None:
        if not isinstance(value, str):
            self.fail(path, f"str expected, not {type(value).__name__}")
        try:
            length = len(value.encode())
        except UnicodeEncodeError as failure:
            self.fail(path, f"cannot be spelt in UTF-8: {failure.reason}")
        if length > STRING_BYTES_MAX:
            self.fail(path, f"string of {length} bytes exceeds {STRING_BYTES_MAX}")

    def unknown_tags(self, message: Message, layout: Layout, path: str) -> None:
        if message.unknown_tags and not layout.is_flexible:
            self.fail(path, "set, but this version has no tagged fields")
        written = {
            field.tag for field in layout.tagged if not is_default(field, getattr(message, field.name))
        }
        for tag, _ in message.unknown_tags:
            if tag in written:
                self.fail(path, f"tag {tag} is there twice")
            written.add(tag)
