"""What a message looks like in one version, worked out from its annotations.

The source generators and the checked walkers read this and nothing else, so they cannot disagree on a schema.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from headrace.protocol.fields import FIXED_CODES, Fresh, is_version_in
from headrace.protocol.message import Message

Kind: TypeAlias = "str | type[Message]"

#: Java's strings are refused above this length in both directions.
STRING_BYTES_MAX = 0x7FFF


@dataclass(slots=True)
class FieldLayout:
    """One field of a structure in one version."""

    name: str
    kind: Kind
    is_array: bool
    is_present: bool
    is_nullable: bool
    is_compact: bool
    is_ignorable: bool
    tag: int | None
    default: Any

    @property
    def code(self) -> str | None:
        """The `struct` code if the field is a single value of fixed width."""
        return None if self.is_array else FIXED_CODES.get(self.kind) if isinstance(self.kind, str) else None

    @property
    def element_code(self) -> str | None:
        """The `struct` code of an array's elements if they are of fixed width."""
        return FIXED_CODES.get(self.kind) if isinstance(self.kind, str) else None

    @property
    def structure(self) -> type[Message] | None:
        """The class of the field's value or of its elements, if that is a structure."""
        return None if isinstance(self.kind, str) else self.kind


@dataclass(slots=True)
class Layout:
    """One structure in one version. `tags` are all it ever had: those of other versions are refused."""

    cls: type[Message]
    version: int
    is_flexible: bool
    present: list[FieldLayout]
    tagged: list[FieldLayout]
    absent: list[FieldLayout]
    tags: frozenset[int]


def is_flexible(cls: type[Message], version: int) -> bool:
    """Whether this version of a top-level message has compact lengths and tagged fields."""
    return cls.FLEXIBLE_SINCE is not None and version >= cls.FLEXIBLE_SINCE


def layout_of(cls: type[Message], version: int, flexible: bool) -> Layout:
    """The fields of a structure within a message of this version."""
    fields = [_field_layout(cls, name, version, flexible) for name in cls.FIELD_NAMES]
    return Layout(
        cls=cls,
        version=version,
        is_flexible=flexible,
        present=[field for field in fields if field.is_present and field.tag is None],
        tagged=sorted((field for field in fields if field.tag is not None), key=_tag),
        absent=[field for field in fields if not field.is_present],
        tags=frozenset(cls.wire(name).tag for name in cls.FIELD_NAMES) - {-1},
    )


def _tag(field: FieldLayout) -> int:
    assert field.tag is not None
    return field.tag


def _field_layout(cls: type[Message], name: str, version: int, flexible: bool) -> FieldLayout:
    wire = cls.wire(name)
    is_array = isinstance(wire.type, list)
    kind: Any = wire.type[0] if isinstance(wire.type, list) else wire.type
    is_tagged = flexible and is_version_in(version, wire.tagged)
    return FieldLayout(
        name=name,
        kind=kind,
        is_array=is_array,
        is_present=is_version_in(version, wire.versions),
        is_nullable=is_version_in(version, wire.nullable),
        is_compact=flexible and wire.flexible,
        is_ignorable=wire.ignorable,
        tag=wire.tag if is_tagged else None,
        default=cls.DEFAULTS[name],
    )


def element_of(field: FieldLayout) -> FieldLayout:
    """The layout of one element of an array of primitives."""
    return FieldLayout(
        name=field.name,
        kind=field.kind,
        is_array=False,
        is_present=True,
        is_nullable=False,
        is_compact=field.is_compact,
        is_ignorable=False,
        tag=None,
        default=None,
    )


def size_min(layout: Layout) -> int:
    """The fewest bytes the structure can take: what an array's count is checked against."""
    total = sum(_field_size_min(field, layout) for field in layout.present)
    return total + (1 if layout.is_flexible else 0)


def _field_size_min(field: FieldLayout, layout: Layout) -> int:
    if field.is_array:
        return 1 if field.is_compact else 4
    if field.structure is not None:
        if field.is_nullable:
            return 1
        return size_min(layout_of(field.structure, layout.version, layout.is_flexible))
    return value_size_min(field.kind, field.is_compact)


def value_size_min(kind: Kind, compact: bool) -> int:
    """The fewest bytes one primitive value can take."""
    if kind == "string":
        return 1 if compact else 2
    if kind in ("bytes", "records"):
        return 1 if compact else 4
    assert isinstance(kind, str)
    return FIXED_SIZES[kind]


def is_default(field: FieldLayout, value: Any) -> bool:
    """Whether a value is the field's default: a tagged field leaves it out, an absent one must have it."""
    if isinstance(field.default, Fresh):
        return bool(value == field.default.factory())
    if isinstance(field.default, list):
        return value is not None and len(value) == 0
    if field.default is None:
        return value is None
    return bool(value == field.default)


FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint16": 2,
    "uint32": 4,
    "float64": 8,
    "uuid": 16,
}
