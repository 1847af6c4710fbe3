"""Writes the straight-line decoder of one message in one version.

Neighbours of fixed width are read by one `struct` call, which also takes the first byte of a varint or the
whole of a fixed length that follows them. A slice beyond the end comes out short without complaint; positions
only grow, so the caller's look at the final position catches that, and no slice need be checked.
"""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID, SafeUUID

from headrace.ports import BytesLike
from headrace.protocol.decode_shapes import Guess, is_guessable, is_numeric
from headrace.protocol.fields import Fresh
from headrace.protocol.message import Message
from headrace.protocol.schema import (
    STRING_BYTES_MAX,
    FieldLayout,
    Layout,
    element_of,
    is_flexible,
    layout_of,
    size_min,
    value_size_min,
)
from headrace.protocol.source import Source
from headrace.protocol.varint import read_unsigned_varint

#: Arrays of numbers with fewer elements than this are read together with what follows them.
FUSED_COUNT_LIMIT = 16


class BadInput(ValueError):
    """The fast path met something wrong; a checked walk then finds out what and where."""


def refuse(buffer: object, position: int) -> tuple[Any, ...]:
    """Stands where a table of readers has nothing to offer: for the null of what cannot be null."""
    raise BadInput


_new = object.__new__
_set_int = UUID.__dict__["int"].__set__
_set_safe = UUID.__dict__["is_safe"].__set__
_UNKNOWN_SAFETY = SafeUUID.unknown


def uuid_of(spelt: bytes) -> UUID:
    """A UUID of 16 bytes, without the checks that make `UUID(bytes=...)` four times as slow."""
    made = _new(UUID)
    _set_int(made, int.from_bytes(spelt, "big"))
    _set_safe(made, _UNKNOWN_SAFETY)
    return made


def read_unknown_tags(message: Message, buffer: BytesLike, position: int, count: int, end: int) -> int:
    """Reads the tagged fields of a structure that has none of its own; returns the position after them."""
    if count > 127:
        count, position = read_unsigned_varint(buffer, position - 1)
    if count * 2 > end - position:
        raise BadInput
    unknown: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        if position + size > end or tag in unknown:
            raise BadInput
        unknown[tag] = bytes(buffer[position : position + size])
        position += size
    message.unknown_tags = tuple(unknown.items())
    return position


def compile_decoder(cls: type[Message], version: int, in_place: bool) -> Callable[..., tuple[Any, int]]:
    """A function of (buffer, position) that returns the message and the position after it.

    Unless `in_place`, a buffer that is no bytes object is copied into one first, which is faster to read.
    """
    writer = _DecoderWriter(in_place)
    flexible = is_flexible(cls, version)
    with writer.source.block("def decode(b, p):"):
        writer.prologue()
        writer.structure(layout_of(cls, version, flexible), "o")
        writer.flush()
        writer.source.add("return o, p")
    decoder: Callable[..., tuple[Any, int]] = writer.finish(f"decode {cls.__name__} v{version}")
    return decoder


def holds_records(cls: type[Message], version: int, flexible: bool) -> bool:
    """Whether the message carries record data, which is never copied."""
    layout = layout_of(cls, version, flexible)
    return any(
        holds_records(field.structure, version, flexible) if field.structure else field.kind == "records"
        for field in layout.present
    )


class _DecoderWriter:
    """Emits the code; `pending` are neighbours of fixed width that wait to be read by one call."""

    def __init__(self, in_place: bool) -> None:
        self.in_place = in_place
        self.source = Source()
        self.source.names |= {
            "new": _new,
            "varint": read_unsigned_varint,
            "uuid": uuid_of,
            "unknown_tags": read_unknown_tags,
            "BadInput": BadInput,
            "unpack_from": struct.unpack_from,
        }
        self.pending: list[tuple[str, str]] = []
        self.afterwards: list[str] = []
        self.array: tuple[str, str, str, int] | None = None
        self.counts: list[str] = []
        self.tag_functions: list[tuple[str, Layout]] = []

    def prologue(self) -> None:
        if self.in_place:
            self.source.add("v = memoryview(b)")
        else:
            with self.source.block("if type(b) is not bytes:"):
                self.source.add("b = bytes(b)")
        self.source.add("end = len(b)")

    def finish(self, title: str) -> Callable[..., Any]:
        """Adds the functions for tagged fields, which may ask for more of them, and compiles the whole."""
        while self.tag_functions:
            self._tag_function(*self.tag_functions.pop())
        compiled: Callable[..., Any] = self.source.compiled(title, "decode")
        return compiled

    # Runs of fixed width.

    def flush(self, lead: str = "", target: str = "") -> None:
        """Reads what is pending, and `lead` behind it into `target`."""
        targets = [name for _, name in self.pending] + ([target] if lead else [])
        codes = "".join(code for code, _ in self.pending) + lead
        self.pending = []
        if self.array:
            self._flush_array(codes, targets)
        elif codes == "B":
            self.source.add(f"{target} = b[p]; p += 1")
        elif codes:
            self._unpack(codes, targets)
        for line in self.afterwards:
            self.source.add(line)
        self.afterwards = []

    def _unpack(self, codes: str, targets: list[str]) -> None:
        comma = "," if len(targets) == 1 else ""
        self.source.add(f"{', '.join(targets)}{comma} = {self.source.unpacker(codes)}(b, p)")
        self.source.add(f"p += {struct.calcsize('>' + codes)}")

    def _flush_array(self, codes: str, targets: list[str]) -> None:
        """A short array of numbers and what follows it in one call; its count is spelt `bias` too high."""
        assert self.array
        code, count, target, bias = self.array
        self.array = None
        width, rest = struct.calcsize(">" + code), struct.calcsize(">" + codes)
        functions: list[Any] = [refuse] * bias
        functions += [struct.Struct(f">{size}{code}{codes}").unpack_from for size in range(FUSED_COUNT_LIMIT)]
        table = self.source.table(f"arrays_{code}_{codes.replace('?', 'o')}_{bias}", functions)
        word = "if"
        if codes == "B":
            with self.source.block(f"if {count} == {bias}:"):
                self.source.add(f"{target} = []; {targets[0]} = b[p]; p += 1")
            word = "elif"
        with self.source.block(f"{word} {count} < {len(functions)}:"):
            self.source.add(f"*{target}, {''.join(name + ', ' for name in targets)} = {table}[{count}](b, p)")
            self.source.add(f"p += {width} * {count} + {rest - width * bias}")
        with self.source.block("else:"):
            self._long_array(code, width, count, bias, target)
            if codes:
                self._unpack(codes, targets)

    def _long_array(self, code: str, width: int, count: str, bias: int, target: str) -> None:
        if bias:
            self._continue_varint(count)
            self.source.add(f"c = {count} - 1")
        else:
            self.source.add(f"c = {count}")
        with self.source.block(f"if c < 0 or {width} * c > end - p:"):
            self.source.add("raise BadInput")
        self.source.add(f"{target} = list(unpack_from(f'>{{c}}{code}', b, p))")
        self.source.add(f"p += {width} * c")

    def _continue_varint(self, name: str) -> None:
        """Reads the whole of a varint if its first byte in `name` is not all of it."""
        with self.source.block(f"if {name} > 127:"):
            self.source.add(f"{name}, p = varint(b, p - 1)")

    # Structures and fields.

    def structure(self, layout: Layout, name: str) -> None:
        """Reads a structure into a new object called `name`; what is pending at the end is left pending."""
        self._start(layout, name)
        self._contents(layout, name)

    def _start(self, layout: Layout, name: str) -> None:
        self.source.add(f"{name} = new({self.source.constant(layout.cls.__name__ + '_', layout.cls)})")
        for field in (*layout.absent, *layout.tagged):
            self._set_default(field, f"{name}.{field.name}")
        self.source.add(f"{name}.unknown_tags = ()")

    def _contents(self, layout: Layout, name: str) -> None:
        for field in layout.present:
            self._field(field, layout, f"{name}.{field.name}")
        if layout.is_flexible:
            count = self.source.fresh("t")
            self.flush("B", count)
            function = "unknown_tags"
            if layout.tags:
                function = self.source.fresh("tags")
                self.tag_functions.append((function, layout))
            with self.source.block(f"if {count}:"):
                self.source.add(f"p = {function}({name}, b, p, {count}, end)")

    def _set_default(self, field: FieldLayout, target: str) -> None:
        if isinstance(field.default, Fresh):
            self._default_structure(field.default.factory, target)
        elif isinstance(field.default, list):
            self.source.add(f"{target} = []")
        elif isinstance(field.default, UUID):
            self.source.add(f"{target} = {self.source.constant('uuid_', field.default)}")
        else:
            self.source.add(f"{target} = {field.default!r}")

    def _default_structure(self, cls: type[Message], target: str) -> None:
        name = self.source.fresh("d")
        self.source.add(f"{name} = new({self.source.constant(cls.__name__ + '_', cls)})")
        for field in layout_of(cls, 0, flexible=False).present + layout_of(cls, 0, flexible=False).absent:
            self._set_default(field, f"{name}.{field.name}")
        self.source.add(f"{name}.unknown_tags = ()")
        self.source.add(f"{target} = {name}")

    def _field(self, field: FieldLayout, layout: Layout, target: str) -> None:
        if field.is_array:
            self._array(field, layout, target)
        elif field.structure:
            self._structure_field(field, layout, target)
        elif field.code:
            self._fixed(field, target)
        else:
            self._length_prefixed(field, target)

    def _fixed(self, field: FieldLayout, target: str) -> None:
        assert field.code
        if field.kind == "uuid":
            spelt = self.source.fresh("u")
            self.pending.append((field.code, spelt))
            self.afterwards.append(f"{target} = uuid({spelt})")
        else:
            self.pending.append((field.code, target))

    def _structure_field(self, field: FieldLayout, layout: Layout, target: str) -> None:
        assert field.structure
        inner = layout_of(field.structure, layout.version, layout.is_flexible)
        name = self.source.fresh("s")
        if not field.is_nullable:
            self.structure(inner, name)
            self.source.add(f"{target} = {name}")
            return
        marker = self.source.fresh("n")
        if field.tag is None:
            self.flush("b", marker)
        else:
            self._length(field, marker)
        with self.source.block(f"if {marker} {'<' if field.tag is None else '<='} 0:"):
            self.source.add(f"{target} = None")
        with self.source.block("else:"):
            self.structure(inner, name)
            self.flush()
            self.source.add(f"{target} = {name}")

    def _length(self, field: FieldLayout, name: str) -> None:
        """Reads a length or count as it is spelt: one above the real one if compact."""
        if field.is_compact:
            self.flush("B", name)
            self._continue_varint(name)
        else:
            self.flush("h" if field.kind == "string" and not field.is_array else "i", name)

    def _length_prefixed(self, field: FieldLayout, target: str) -> None:
        name = self.source.fresh("n")
        self._length(field, name)
        bias = 1 if field.is_compact else 0
        if field.kind == "string" and field.is_compact:
            with self.source.block(f"if {name} > {STRING_BYTES_MAX + 1}:"):
                self.source.add("raise BadInput")
        if field.is_nullable:
            with self.source.block(f"if {name} >= {bias}:"):
                self._slice(field, target, name, bias)
            with self.source.block(f"elif {name} == {bias - 1}:"):
                self.source.add(f"{target} = None")
            with self.source.block("else:"):
                self.source.add("raise BadInput")
        else:
            with self.source.block(f"if {name} < {bias}:"):
                self.source.add("raise BadInput")
            self._slice(field, target, name, bias)

    def _slice(self, field: FieldLayout, target: str, length: str, bias: int) -> None:
        self.source.add(f"e = p + {length}" + (" - 1" if bias else ""))
        if field.kind == "records":
            value = "v[p:e]"
        elif field.kind == "bytes":
            value = "bytes(b[p:e])" if self.in_place else "b[p:e]"
        else:
            value = 'str(b[p:e], "utf-8")' if self.in_place else "b[p:e].decode()"
        self.source.add(f"{target} = {value}; p = e")

    # Arrays.

    def _array(self, field: FieldLayout, layout: Layout, target: str) -> None:
        count = self.source.fresh("n")
        self.counts.append(count)
        bias = 1 if field.is_compact else 0
        if is_numeric(field) and field.is_compact:
            # Whoever reads the elements reads on where a byte is not all of the count; null is one byte.
            self.flush("B", count)
        else:
            self._length(field, count)
        if not field.is_nullable:
            self._elements(field, layout, target, count, bias)
            return
        with self.source.block(f"if {count} == {bias - 1}:"):
            self.source.add(f"{target} = None")
        with self.source.block("else:"):
            self._elements(field, layout, target, count, bias)
            self.flush()

    def _elements(self, field: FieldLayout, layout: Layout, target: str, count: str, bias: int) -> None:
        code = field.element_code
        if not field.is_compact or not is_numeric(field):
            with self.source.block(f"if {count} < {bias}:"):
                self.source.add("raise BadInput")
        if code and is_numeric(field):
            self.array = (code, count, target, bias)
            return
        if bias:
            self.source.add(f"{count} -= 1")
        self._check_count(field, layout, count)
        if code:
            self.source.add(f"{target} = [uuid(b[q:q + 16]) for q in range(p, p + 16 * {count}, 16)]")
            self.source.add(f"p += 16 * {count}")
            return
        items, item = self.source.fresh("a"), self.source.fresh("i")
        self.source.add(f"{target} = {items} = []")
        inner = layout_of(field.structure, layout.version, layout.is_flexible) if field.structure else None
        guess = Guess(self.source, inner) if inner and is_guessable(inner) else None
        if guess:
            guess.prepare()
        with self.source.block(f"for _ in range({count}):"):
            if inner and guess:
                self._guessed_element(inner, guess, item)
            elif inner:
                self.structure(inner, item)
            else:
                self._length_prefixed(element_of(field), item)
            self.flush()
            self.source.add(f"{items}.append({item})")

    def _guessed_element(self, layout: Layout, guess: Guess, item: str) -> None:
        self._start(layout, item)
        with self.source.block(f"if {guess.is_wrong()}:"):
            first = len(self.counts)
            self._contents(layout, item)
            self.flush()
            guess.learn(self.counts[first:])
        with self.source.block("else:"):
            guess.take(item)

    def _check_count(self, field: FieldLayout, layout: Layout, count: str) -> None:
        if field.structure:
            smallest = max(1, size_min(layout_of(field.structure, layout.version, layout.is_flexible)))
        else:
            smallest = value_size_min(field.kind, field.is_compact)
        with self.source.block(f"if {count} * {smallest} > end - p:"):
            self.source.add("raise BadInput")

    # Tagged fields.

    def _tag_function(self, function: str, layout: Layout) -> None:
        add = self.source.add
        with self.source.block(f"def {function}(o, b, p, count, end):"):
            with self.source.block("if count > 127:"):
                add("count, p = varint(b, p - 1)")
            with self.source.block("if count * 2 > end - p:"):
                add("raise BadInput")
            add("unknown = []; seen = set()")
            with self.source.block("for _ in range(count):"):
                add("tag, p = varint(b, p)")
                add("size, p = varint(b, p)")
                add("stop = p + size")
                with self.source.block("if stop > end or tag in seen:"):
                    add("raise BadInput")
                add("seen.add(tag)")
                self._tag_cases(layout)
                with self.source.block("if p != stop:"):
                    add("raise BadInput")
            add("o.unknown_tags = tuple(unknown)")
            add("return p")

    def _tag_cases(self, layout: Layout) -> None:
        word = "if"
        for field in layout.tagged:
            with self.source.block(f"{word} tag == {field.tag}:"):
                self._field(field, layout, f"o.{field.name}")
                self.flush()
            word = "elif"
        foreign = layout.tags - {field.tag for field in layout.tagged}
        if foreign:
            with self.source.block(f"{word} tag in {tuple(sorted(foreign))}:"):
                self.source.add("raise BadInput")
            word = "elif"
        with self.source.block("else:"):
            self.source.add("unknown.append((tag, bytes(b[p:stop])))")
            self.source.add("p = stop")
