"""Every message of every version against `kio`, an independent implementation, in both directions."""

import datetime
import io
import re
from dataclasses import fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schema import FieldLayout, is_flexible, layout_of
from headrace.types import ZERO_UUID
from tests.support_protocol import MessageMaker, message_classes, message_modules, versions_of

MESSAGES_PER_VERSION = 12
EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)

#: What kio's richer types can hold: known errors, spans of time, moments.
DOMAINS: dict[str, tuple[int, ...]] = {
    "error_code": tuple(int(code) for code in ErrorCode),
    "timedelta_i32": (0, 1, -1, 1500, 2**31 - 1, -(2**31)),
    "timedelta_i64": (0, 1, -1, 86_400_000, 10**12),
    "datetime_i64": (0, 1, 1_700_000_000_123, 2_000_000_000_000),
}


def kio_class(cls: type[Message], version: int) -> Any:
    """The class kio has for a message, or None."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
    for suffix in ("request", "response"):
        if name.endswith("_" + suffix):
            module = f"kio.schema.{name.removesuffix('_' + suffix)}.v{version}.{suffix}"
            return getattr(import_module(module), cls.__name__) if _exists(module) else None
    for kind in ("data", "header"):
        module = f"kio.schema.{name}.v{version}.{kind}"
        if _exists(module):
            return getattr(import_module(module), cls.__name__)
    return None


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class KioPeer:
    """Tells the maker of random messages what the fields of a kio class can hold."""

    def __init__(self, kio_cls: Any, cls: type[Message], version: int, flexible: bool) -> None:
        ours = fields_in_order(cls, version, flexible)
        theirs = fields(kio_cls)
        assert len(ours) == len(theirs), (cls.__name__, [field.name for field in theirs])
        self.version, self.flexible = version, flexible
        self.pairs = {own.name: (own, their) for own, their in zip(ours, theirs, strict=True)}
        for own, their in self.pairs.values():
            assert own.name.removesuffix("_ms") == their.name.rstrip("_").removesuffix("_ms")

    def values_of(self, cls: type[Message], name: str) -> tuple[int, ...] | None:
        """The values to choose from, if not all are fit."""
        return DOMAINS.get(self.pairs[name][1].metadata.get("kafka_type", ""))

    def structure_of(self, cls: type[Message], name: str) -> "KioPeer":
        """The peer for a field's structure."""
        own, their = self.pairs[name]
        assert own.structure
        return KioPeer(_structure_in(their.type), own.structure, self.version, self.flexible)


def _structure_in(annotation: Any) -> Any:
    """The class within `tuple[X, ...] | None`."""
    if hasattr(annotation, "__dataclass_fields__"):
        return annotation
    return next(found for inner in get_args(annotation) if (found := _structure_in(inner)) is not None)


def fields_in_order(cls: type[Message], version: int, flexible: bool) -> list[FieldLayout]:
    """The fields a version has, tagged or not, as the schema lists them."""
    layout = layout_of(cls, version, flexible)
    here = {field.name: field for field in layout.present + layout.tagged}
    return [here[name] for name in cls.FIELD_NAMES if name in here]


def plain(value: Any) -> Any:
    """A value of either side in the same simple form."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, UUID):
        return None if value == ZERO_UUID else value
    if isinstance(value, ErrorCode):
        return int(value)
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, Message):
        return None
    if hasattr(value, "__dataclass_fields__"):
        return [plain(getattr(value, field.name)) for field in fields(value)]
    return value


def plain_message(message: Message, version: int, flexible: bool) -> list[Any]:
    """One of our messages as the values of the fields its version has."""
    values = []
    for field in fields_in_order(type(message), version, flexible):
        value = getattr(message, field.name)
        if field.structure and isinstance(value, list):
            values.append([plain_message(item, version, flexible) for item in value])
        elif isinstance(value, Message):
            values.append(plain_message(value, version, flexible))
        else:
            values.append(plain(value))
    return values


def check_both_ways(cls: type[Message], version: int, kio_cls: Any) -> None:
    """What we write kio reads alike, and what kio writes is the same bytes, which we read alike."""
    flexible = is_flexible(cls, version)
    peer = KioPeer(kio_cls, cls, version, flexible)
    read, write = entity_reader(kio_cls), entity_writer(kio_cls)
    maker = MessageMaker(seed=version, unknown_tags=False)
    for _ in range(MESSAGES_PER_VERSION):
        message = maker.message(cls, version, peer)
        written = encode(message, version)
        theirs, size = read(written, 0)
        assert size == len(written)
        assert plain(theirs) == plain_message(message, version, flexible)
        rewritten = io.BytesIO()
        write(rewritten, theirs)
        assert rewritten.getvalue() == written
        assert decode(cls, version, rewritten.getvalue()) == message


@pytest.mark.parametrize("module", message_modules())
def test_every_version_means_the_same_to_kio(module: str) -> None:
    for cls in message_classes(module):
        for version in versions_of(cls):
            kio_cls = kio_class(cls, version)
            if kio_cls is not None:
                check_both_ways(cls, version, kio_cls)


def test_kio_knows_most_of_the_apis() -> None:
    known = unknown = 0
    for module in message_modules():
        for cls in message_classes(module):
            for version in versions_of(cls):
                if kio_class(cls, version) is None:
                    unknown += 1
                else:
                    known += 1
    assert known > 550, f"{known} versions compared, {unknown} not"
