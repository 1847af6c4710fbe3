"""Writes the straight-line encoder of one message in one version.

The encoder appends parts to a list. Neighbours of fixed width become one part by one `struct` call, together
with one short string or array of numbers among them: for these there is a table of packers, one per length.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.protocol.fields import Fresh
from headrace.protocol.message import Message
from headrace.protocol.schema import STRING_BYTES_MAX, FieldLayout, Layout, element_of, is_flexible, layout_of
from headrace.protocol.source import Source
from headrace.protocol.varint import unsigned_varint

#: Strings and arrays up to these sizes are packed together with their neighbours.
FUSED_BYTES_LIMIT = 40
FUSED_COUNT_LIMIT = 16


class BadMessage(ValueError):
    """The fast path met a value it cannot write; a checked walk then finds out which."""


@dataclass(slots=True)
class _Sized:
    """A short string or array amid a run: how its length is spelt, and what packs it."""

    lead_code: str
    lead: str
    size: str
    element_code: str
    values: str
    limit: int


def compile_encoder(cls: type[Message], version: int) -> Callable[[Any, list[Any], list[int]], None]:
    """A function of (message, parts, marks): appends to `parts`, and to `marks` where record data stands."""
    writer = _EncoderWriter()
    with writer.source.block("def encode(o, parts, marks):"):
        writer.source.add("w = parts.append")
        writer.structure(layout_of(cls, version, is_flexible(cls, version)), "o")
        writer.flush()
    return writer.finish(f"encode {cls.__name__} v{version}")


def write_tags(
    parts: list[Any], known: Sequence[tuple[int, bytes]], unknown: Sequence[tuple[int, bytes]]
) -> None:
    """The tagged fields of one structure in ascending order; a tag may be there only once."""
    tags = sorted((*known, *unknown))
    parts.append(unsigned_varint(len(tags)))
    last = -1
    for tag, data in tags:
        if tag <= last:
            raise BadMessage
        last = tag
        parts += (unsigned_varint(tag), unsigned_varint(len(data)), data)


class _EncoderWriter:
    """Emits the code; `head`, `sized` and `tail` wait to be packed by one call."""

    def __init__(self) -> None:
        self.source = Source()
        self.source.names |= {
            "varint": unsigned_varint,
            "BadMessage": BadMessage,
            "write_tags": write_tags,
            "pack": struct.pack,
            "single": tuple(bytes((value,)) for value in range(128)),
        }
        self.head: list[tuple[str, str]] = []
        self.sized: _Sized | None = None
        self.tail: list[tuple[str, str]] = []
        self.tag_functions: list[tuple[str, Layout]] = []

    def finish(self, title: str) -> Callable[[Any, list[Any], list[int]], None]:
        """Adds the functions for tagged fields, which may ask for more of them, and compiles the whole."""
        while self.tag_functions:
            self._tag_function(*self.tag_functions.pop())
        compiled: Callable[[Any, list[Any], list[int]], None] = self.source.compiled(title, "encode")
        return compiled

    # Runs of fixed width.

    def _fixed(self, code: str, value: str) -> None:
        (self.tail if self.sized else self.head).append((code, value))

    def flush(self, extra: str = "") -> None:
        """Writes what is pending, and `extra`, a code that takes no value, behind it."""
        head, sized, tail = self.head, self.sized, self.tail
        self.head, self.sized, self.tail = [], None, []
        if sized is None:
            self._write_run(head, extra)
            return
        codes = "".join(code for code, _ in head) + sized.lead_code, "".join(code for code, _ in tail) + extra
        with self.source.block(f"if {sized.size} < {sized.limit}:"):
            values = [value for _, value in head]
            if sized.lead_code:
                values.append(sized.lead)
            values.append(sized.values)
            values += [value for _, value in tail]
            self.source.add(f"w({self._table(codes, sized)}[{sized.size}]({', '.join(values)}))")
        with self.source.block("else:"):
            self._write_long(head, sized)
            self._write_run(tail, extra)

    def _table(self, codes: tuple[str, str], sized: _Sized) -> str:
        prefix, suffix = codes
        name = f"packers_{prefix}_{sized.element_code}_{suffix}_{sized.limit}".replace("?", "o")
        functions = [
            struct.Struct(f">{prefix}{size}{sized.element_code}{suffix}").pack for size in range(sized.limit)
        ]
        return self.source.table(name, functions)

    def _write_long(self, head: list[tuple[str, str]], sized: _Sized) -> None:
        if sized.lead_code == "B":
            self._write_run(head)
            self.source.add(f"w(varint({sized.lead}))")
        else:
            self._write_run([*head, (sized.lead_code, sized.lead)])
        if sized.element_code == "s":
            with self.source.block(f"if {sized.size} > {STRING_BYTES_MAX}:"):
                self.source.add("raise BadMessage")
            self.source.add(f"w({sized.values})")
        else:
            self.source.add(f"w(pack(f'>{{{sized.size}}}{sized.element_code}', {sized.values}))")

    def _write_run(self, run: list[tuple[str, str]], extra: str = "") -> None:
        codes = "".join(code for code, _ in run) + extra
        values = [value for _, value in run]
        if codes == "x":
            self.source.add("w(b'\\0')")
        elif codes:
            self.source.add(f"w({self.source.packer(codes)}({', '.join(values)}))")

    def _count(self, name: str, compact: bool) -> None:
        """Writes the count or length in `name`, as it is spelt, behind what is pending."""
        if not compact:
            self._fixed("i", name)
            self.flush()
        elif not self.head and self.sized is None:
            self.source.add(f"w(single[{name}] if {name} < 128 else varint({name}))")
        else:
            pending = [*self.head], self.sized, [*self.tail]
            with self.source.block(f"if {name} < 128:"):
                self._fixed("B", name)
                self.flush()
            self.head, self.sized, self.tail = pending
            with self.source.block("else:"):
                self.flush()
                self.source.add(f"w(varint({name}))")

    # Structures and fields.

    def structure(self, layout: Layout, name: str) -> None:
        """Writes the object called `name`; what is pending at the end is left pending."""
        refused = [
            differs(self.source, field, f"{name}.{field.name}") for field in layout.absent if _strict(field)
        ]
        if not layout.is_flexible:
            refused.append(f"{name}.unknown_tags")
        if refused:
            with self.source.block(f"if {' or '.join(refused)}:"):
                self.source.add("raise BadMessage")
        for field in layout.present:
            self._field(field, layout, f"{name}.{field.name}")
        if layout.is_flexible:
            self._tags(layout, name)

    def _field(self, field: FieldLayout, layout: Layout, value: str) -> None:
        if field.is_array:
            self._array(field, layout, value)
        elif field.structure:
            self._structure_field(field, layout, value)
        elif field.kind == "string":
            self._string(field, value)
        elif field.kind in ("bytes", "records"):
            self._bytes(field, value)
        else:
            assert field.code
            self._fixed(field.code, f"{value}.int.to_bytes(16, 'big')" if field.kind == "uuid" else value)

    def _structure_field(self, field: FieldLayout, layout: Layout, value: str) -> None:
        assert field.structure
        inner = layout_of(field.structure, layout.version, layout.is_flexible)
        name = self.source.fresh("s")
        self.source.add(f"{name} = {value}")
        if not field.is_nullable:
            self.structure(inner, name)
            return
        self.flush()
        with self.source.block(f"if {name} is None:"):
            self.source.add("w(b'\\xff')" if field.tag is None else "w(b'\\0')")
        with self.source.block("else:"):
            self.source.add("w(b'\\1')")
            self.structure(inner, name)
            self.flush()

    def _string(self, field: FieldLayout, value: str) -> None:
        text, size, lead = self.source.fresh("x"), self.source.fresh("c"), self.source.fresh("n")
        bias = 1 if field.is_compact else 0
        self._measure(field, value, text, ".encode()", size, lead, "b''")
        if self.sized:
            self.flush()
        code = "B" if bias else "h"
        self.sized = _Sized(
            code, lead if field.is_nullable or bias else size, size, "s", text, FUSED_BYTES_LIMIT
        )

    def _measure(
        self, field: FieldLayout, value: str, name: str, convert: str, size: str, lead: str, empty: str
    ) -> None:
        """Sets `name` to the value, `size` to its real size and `lead` to the size as it is spelt."""
        add = self.source.add
        spelt = f"{size} + 1" if field.is_compact else size
        if not field.is_nullable:
            add(f"{name} = {value}{convert}")
            add(f"{size} = len({name}); {lead} = {spelt}")
            return
        add(f"{name} = {value}")
        with self.source.block(f"if {name} is None:"):
            add(f"{name} = {empty}; {size} = 0; {lead} = {0 if field.is_compact else -1}")
        with self.source.block("else:"):
            if convert:
                add(f"{name} = {name}{convert}")
            add(f"{size} = len({name}); {lead} = {spelt}")

    def _bytes(self, field: FieldLayout, value: str) -> None:
        name, size, lead = self.source.fresh("x"), self.source.fresh("c"), self.source.fresh("n")
        self._measure(field, value, name, "", size, lead, "b''")
        self._count(lead, field.is_compact)
        with self.source.block(f"if {size}:"):
            if field.kind == "records":
                self.source.add("marks.append(len(parts))")
            self.source.add(f"w({name})")

    # Arrays.

    def _array(self, field: FieldLayout, layout: Layout, value: str) -> None:
        items, size, lead = self.source.fresh("a"), self.source.fresh("c"), self.source.fresh("n")
        self._measure(field, value, items, "", size, lead, "()")
        code = field.element_code
        if code and code != "16s":
            if self.sized:
                self.flush()
            code_lead = "B" if field.is_compact else "i"
            self.sized = _Sized(code_lead, lead, size, code, f"*{items}", FUSED_COUNT_LIMIT)
            return
        self._count(lead, field.is_compact)
        item = self.source.fresh("i")
        with self.source.block(f"for {item} in {items}:"):
            if field.structure:
                self.structure(layout_of(field.structure, layout.version, layout.is_flexible), item)
            elif code:
                self.source.add(f"w({item}.int.to_bytes(16, 'big'))")
            else:
                self._field(element_of(field), layout, item)
            self.flush()

    # Tagged fields.

    def _tags(self, layout: Layout, name: str) -> None:
        conditions = [f"{name}.unknown_tags"]
        conditions += [differs(self.source, field, f"{name}.{field.name}") for field in layout.tagged]
        if layout.tagged:
            function = self.source.fresh("tags")
            self.tag_functions.append((function, layout))
            call = f"{function}({name}, parts)"
        else:
            call = f"write_tags(parts, (), {name}.unknown_tags)"
        pending = [*self.head], self.sized, [*self.tail]
        with self.source.block(f"if {' or '.join(conditions)}:"):
            self.flush()
            self.source.add(call)
        self.head, self.sized, self.tail = pending
        with self.source.block("else:"):
            self.flush("x")

    def _tag_function(self, function: str, layout: Layout) -> None:
        add = self.source.add
        with self.source.block(f"def {function}(o, outer):"):
            add("known = []")
            for field in layout.tagged:
                with self.source.block(f"if {differs(self.source, field, f'o.{field.name}')}:"):
                    add("parts = []; w = parts.append")
                    self._field(field, layout, f"o.{field.name}")
                    self.flush()
                    add(f"known.append(({field.tag}, b''.join(parts)))")
            add("write_tags(outer, known, o.unknown_tags)")


def _strict(field: FieldLayout) -> bool:
    return not field.is_ignorable


def differs(source: Source, field: FieldLayout, value: str) -> str:
    """An expression that is true if the value is not the field's default."""
    if field.default is None:
        return f"{value} is not None"
    if isinstance(field.default, Fresh):
        cls = field.default.factory
        layout = layout_of(cls, 0, flexible=False)
        inner = [differs(source, part, f"{value}.{part.name}") for part in layout.present + layout.absent]
        return f"({' or '.join([f'{value} is None', *inner, f'{value}.unknown_tags'])})"
    if isinstance(field.default, list):
        return f"({value} or {value} is None)"
    if isinstance(field.default, UUID):
        zero = source.constant("uuid_", field.default)
        return f"({value} is not {zero} and {value} != {zero})"
    return f"{value} != {field.default!r}"
