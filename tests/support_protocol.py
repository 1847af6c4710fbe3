"""Random messages of any class and version, and the list of all of them."""

import pkgutil
import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from uuid import UUID

from headrace.protocol.message import Message
from headrace.protocol.schema import FieldLayout, Layout, is_flexible, layout_of

PACKAGES = ("headrace.protocol.messages", "headrace.protocol.disk_records")
INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
TEXTS = ("", "a", "topic-1", "größer", "日本語", "x" * 39, "y" * 40, "z" * 126, "w" * 127, "long" * 60)


def message_modules() -> list[str]:
    """Every generated module, by its full name."""
    names = []
    for package in PACKAGES:
        path = import_module(package).__path__
        names += [f"{package}.{module.name}" for module in pkgutil.iter_modules(path)]
    return names


def message_classes(module: str) -> list[type[Message]]:
    """The top-level messages of one module."""
    found = vars(import_module(module)).values()
    return [
        cls for cls in found if isinstance(cls, type) and issubclass(cls, Message) and cls.VERSION_MAX >= 0
    ]


def versions_of(cls: type[Message]) -> range:
    """Every version of a message."""
    return range(cls.VERSION_MIN, cls.VERSION_MAX + 1)


def every_message() -> Iterator[tuple[type[Message], int]]:
    """Every message in every version."""
    for module in message_modules():
        for cls in message_classes(module):
            for version in versions_of(cls):
                yield cls, version


class MessageMaker:
    """Makes random messages. `domain` may narrow a field's values to what a peer can represent."""

    def __init__(self, seed: int, unknown_tags: bool = True) -> None:
        self.random = random.Random(seed)
        self.unknown_tags = unknown_tags

    def message(self, cls: type[Message], version: int, peer: Any = None) -> Message:
        """A message with values for all fields that its version has."""
        return self._structure(layout_of(cls, version, is_flexible(cls, version)), peer)

    def _structure(self, layout: Layout, peer: Any) -> Message:
        made = layout.cls()
        for field in layout.present + [field for field in layout.tagged if self.random.random() < 0.6]:
            setattr(made, field.name, self._field(field, layout, peer))
        if layout.is_flexible and self.unknown_tags and self.random.random() < 0.1:
            tags = sorted(self.random.sample(range(100, 70000), self.random.randint(1, 3)))
            made.unknown_tags = tuple((tag, self.random.randbytes(self.random.randint(0, 9))) for tag in tags)
        return made

    def _field(self, field: FieldLayout, layout: Layout, peer: Any) -> Any:
        if field.is_nullable and self.random.random() < 0.2:
            return None
        if field.is_array:
            count = self.random.choice((0, 1, 1, 2, 3, 17) if field.structure is None else (0, 1, 1, 2, 3))
            return [self._value(field, layout, peer) for _ in range(count)]
        return self._value(field, layout, peer)

    def _value(self, field: FieldLayout, layout: Layout, peer: Any) -> Any:
        if field.structure:
            inner = layout_of(field.structure, layout.version, layout.is_flexible)
            return self._structure(inner, peer.structure_of(layout.cls, field.name) if peer else None)
        if peer and (values := peer.values_of(layout.cls, field.name)):
            return self.random.choice(values)
        return self._primitive(str(field.kind))

    def _primitive(self, kind: str) -> Any:
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            return self.random.choice((low, high, 0, 1, self.random.randint(low, high)))
        if kind == "bool":
            return self.random.random() < 0.5
        if kind == "float64":
            return self.random.uniform(-1e9, 1e9)
        if kind == "uuid":
            return UUID(int=self.random.getrandbits(128))
        if kind == "string":
            return self.random.choice(TEXTS)
        return self.random.randbytes(self.random.choice((0, 1, 30, 127, 128, 300)))
