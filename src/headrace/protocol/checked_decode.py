"""Walks over bytes field by field, slowly and with every check, to say what is wrong and where.

It builds nothing: it is called after a compiled decoder has failed, and only names the culprit.
"""

from typing import NoReturn

from headrace.ports import BytesLike
from headrace.protocol.errors import MalformedMessage
from headrace.protocol.message import Message
from headrace.protocol.schema import (
    FIXED_SIZES,
    STRING_BYTES_MAX,
    FieldLayout,
    Kind,
    Layout,
    is_flexible,
    layout_of,
    size_min,
    value_size_min,
)
from headrace.protocol.varint import read_unsigned_varint


def find_fault(
    cls: type[Message], version: int, buffer: BytesLike, position: int, exact: bool
) -> MalformedMessage:
    """The first fault of a message that could not be decoded; `exact` if it should fill the buffer."""
    walk = _Walk(cls, version, memoryview(buffer), position)
    try:
        walk.structure(layout_of(cls, version, is_flexible(cls, version)), "")
        if exact and walk.position != walk.end:
            walk.fail("", f"{walk.end - walk.position} bytes left over")
    except MalformedMessage as fault:
        return fault
    return MalformedMessage(cls.__name__, version, "", walk.position, "unreadable")


class _Walk:
    """A position in the buffer, and the checks that move it on."""

    def __init__(self, cls: type[Message], version: int, buffer: memoryview, position: int) -> None:
        self.cls = cls
        self.version = version
        self.buffer = buffer
        self.position = position
        self.end = len(buffer)

    def fault(self, path: str, reason: str) -> MalformedMessage:
        return MalformedMessage(self.cls.__name__, self.version, path, self.position, reason)

    def fail(self, path: str, reason: str) -> NoReturn:
        raise self.fault(path, reason)

    def structure(self, layout: Layout, path: str) -> None:
        prefix = f"{path}." if path else ""
        for field in layout.present:
            self.field(field, layout, prefix + field.name)
        if layout.is_flexible:
            self.tags(layout, prefix)

    def field(self, field: FieldLayout, layout: Layout, path: str) -> None:
        if field.is_array:
            self.array(field, layout, path)
        elif field.structure is None:
            self.value(field.kind, field.is_compact, field.is_nullable, path)
        else:
            inner = layout_of(field.structure, layout.version, layout.is_flexible)
            if not field.is_nullable or self.is_there(field, path):
                self.structure(inner, path)

    def is_there(self, field: FieldLayout, path: str) -> bool:
        """The marker before a structure that may be null: a signed byte, but a varint in a tagged field."""
        if field.tag is not None:
            return self.varint(path) > 0
        self.skip(1, path)
        return self.buffer[self.position - 1] < 0x80

    def value(self, kind: Kind, compact: bool, nullable: bool, path: str) -> None:
        assert isinstance(kind, str)
        if kind in FIXED_SIZES:
            self.skip(FIXED_SIZES[kind], path)
            return
        started = self.position
        length = self.length(2 if kind == "string" else 4, compact, nullable, path)
        if length is None:
            return
        if kind == "string" and length > STRING_BYTES_MAX:
            self.position = started
            self.fail(path, f"string of {length} bytes exceeds {STRING_BYTES_MAX}")
        started = self.position
        self.skip(length, path)
        if kind == "string":
            self.check_text(started, path)

    def check_text(self, started: int, path: str) -> None:
        try:
            str(self.buffer[started : self.position], "utf-8")
        except UnicodeDecodeError as failure:
            self.position = started + failure.start
            self.fail(path, f"bad UTF-8: {failure.reason}")

    def array(self, field: FieldLayout, layout: Layout, path: str) -> None:
        started = self.position
        count = self.length(4, field.is_compact, field.is_nullable, path)
        if count is None:
            return
        inner = layout_of(field.structure, layout.version, layout.is_flexible) if field.structure else None
        smallest = max(1, size_min(inner)) if inner else value_size_min(field.kind, field.is_compact)
        if count * smallest > self.end - self.position:
            left = self.end - self.position
            self.position = started
            self.fail(path, f"{count} elements of at least {smallest} bytes, but only {left} bytes are left")
        for index in range(count):
            if inner:
                self.structure(inner, f"{path}[{index}]")
            else:
                self.value(field.kind, field.is_compact, False, f"{path}[{index}]")

    def length(self, width: int, compact: bool, nullable: bool, path: str) -> int | None:
        """A length or count, None for null."""
        started = self.position
        if compact:
            length = self.varint(path) - 1
        else:
            self.skip(width, path)
            length = int.from_bytes(self.buffer[started : self.position], "big", signed=True)
        if length >= 0:
            return length
        if length == -1 and nullable:
            return None
        self.position = started
        reason = "null where there must be a value" if length == -1 else f"negative length {length}"
        raise self.fault(path, reason)

    def varint(self, path: str) -> int:
        try:
            value, self.position = read_unsigned_varint(self.buffer, self.position)
        except IndexError:
            self.fail(path, "truncated varint")
        except ValueError as failure:
            self.fail(path, str(failure))
        return value

    def skip(self, size: int, path: str) -> None:
        left = self.end - self.position
        if size > left:
            self.fail(path, f"truncated: {size} bytes needed, {max(left, 0)} left")
        self.position += size

    def tags(self, layout: Layout, prefix: str) -> None:
        path = f"{prefix}tags"
        started = self.position
        count = self.varint(path)
        if count * 2 > self.end - self.position:
            self.position = started
            self.fail(path, f"{count} tagged fields cannot fit into what is left")
        known = {field.tag: field for field in layout.tagged}
        seen = set()
        for _ in range(count):
            tag, size = self.varint(path), self.varint(path)
            stop = self.position + size
            if tag in seen:
                self.fail(path, f"tag {tag} is there twice")
            seen.add(tag)
            if tag in known:
                field = known[tag]
                self.field(field, layout, prefix + field.name)
                if self.position != stop:
                    self.fail(prefix + field.name, f"tagged field should end at byte {stop}")
            elif tag in layout.tags:
                self.fail(path, f"tag {tag} is not valid in this version")
            else:
                self.skip(size, path)
