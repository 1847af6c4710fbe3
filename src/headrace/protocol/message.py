"""The base of every message: a slotted dataclass whose annotations are its schema.

`dataclasses.dataclass` compiles three methods per class when the class is made, which for Kafka's six hundred
structures would cost a quarter of a second at every start. Here a class costs microseconds: its annotations
are evaluated when its first codec is compiled, `__init__` when the first instance is made, and what the
`dataclasses` module needs for `fields`, `asdict` and `replace` when it asks.
"""

import sys
from collections.abc import Callable
from typing import Any, ClassVar, dataclass_transform, get_args

from headrace.protocol.fields import Fresh, Wire, version_bounds

_NO_DEFAULTS: dict[str, Any] = {}


def _annotations_of(namespace: dict[str, Any]) -> dict[str, Any]:
    """What a class body annotates; newer Pythons hand over a function that evaluates it."""
    evaluate = namespace.get("__annotate_func__") or namespace.get("__annotate__")
    if evaluate is not None:
        return dict(evaluate(1))
    return dict(namespace.get("__annotations__", _NO_DEFAULTS))


@dataclass_transform(kw_only_default=True)
class MessageType(type):
    """Turns annotations into slots and keeps defaults aside until `__init__` is compiled."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        versions: str = "none",
        flexible: str = "none",
        api_key: int = -1,
        latest_unstable: bool = False,
    ) -> "MessageType":
        if bases:
            annotations = _annotations_of(namespace)
            namespace["FIELD_NAMES"] = namespace["__slots__"] = tuple(annotations)
            namespace["DEFAULTS"] = {field: namespace.pop(field) for field in annotations}
            namespace["API_KEY"] = api_key
            namespace["VERSION_MIN"], namespace["VERSION_MAX"] = version_bounds(versions)
            namespace["FLEXIBLE_SINCE"] = None if flexible == "none" else version_bounds(flexible)[0]
            namespace["LATEST_UNSTABLE"] = latest_unstable
            for kind in ("ENCODERS", "DECODERS", "DECODERS_IN_PLACE"):
                namespace[kind] = {}
        else:
            del namespace["unknown_tags"]
        return super().__new__(mcls, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: object) -> None:
        super().__init__(name, bases, namespace)


class _DataclassFields:
    """Builds what the `dataclasses` module looks for when it looks."""

    def __get__(self, instance: object, owner: "type[Message]") -> dict[str, Any]:
        import dataclasses

        specifications: list[tuple[str, Any, Any]] = []
        for name, value in (*owner.DEFAULTS.items(), ("unknown_tags", ())):
            if isinstance(value, Fresh):
                specification: Any = dataclasses.field(default_factory=value.factory)
            elif isinstance(value, list):
                specification = dataclasses.field(default_factory=list)
            else:
                specification = dataclasses.field(default=value)
            specifications.append((name, owner.annotation(name), specification))
        made: Any = dataclasses.make_dataclass(owner.__name__, specifications, kw_only=True)
        fields: dict[str, Any] = made.__dataclass_fields__
        return fields


class Message(metaclass=MessageType):
    """One structure on the wire or on disk: a request, a response, a record, or a part of one.

    `unknown_tags` holds the tagged fields of a newer peer as (tag, bytes), to be written back as they came.
    """

    __slots__ = ("unknown_tags",)

    FIELD_NAMES: ClassVar[tuple[str, ...]] = ()
    DEFAULTS: ClassVar[dict[str, Any]] = {}
    API_KEY: ClassVar[int] = -1
    VERSION_MIN: ClassVar[int] = 0
    VERSION_MAX: ClassVar[int] = -1
    FLEXIBLE_SINCE: ClassVar[int | None] = None
    LATEST_UNSTABLE: ClassVar[bool] = False
    ENCODERS: ClassVar[dict[int, Callable[..., None]]] = {}
    DECODERS: ClassVar[dict[int, Callable[..., tuple[Any, int]]]] = {}
    DECODERS_IN_PLACE: ClassVar[dict[int, Callable[..., tuple[Any, int]]]] = {}
    __dataclass_fields__: ClassVar[Any] = _DataclassFields()
    __hash__ = None  # type: ignore[assignment]

    unknown_tags: tuple[tuple[int, bytes], ...] = ()

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = _compile_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    @classmethod
    def annotation(cls, name: str) -> Any:
        """The annotation of one field, `Wire` included; `unknown_tags` is no part of the schema."""
        if name == "unknown_tags":
            return tuple[tuple[int, bytes], ...]
        annotation = cls.__annotations__[name]
        if isinstance(annotation, str):
            annotation = eval(annotation, vars(sys.modules[cls.__module__]))
            cls.__annotations__[name] = annotation
        return annotation

    @classmethod
    def wire(cls, name: str) -> Wire:
        """How one field goes over the wire."""
        wire = get_args(cls.annotation(name))[-1]
        assert isinstance(wire, Wire)
        return wire

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = (*self.FIELD_NAMES, "unknown_tags")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.FIELD_NAMES]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"


def _compile_init(cls: type[Message]) -> Callable[..., None]:
    """A constructor with one keyword per field, as a dataclass would have it."""
    environment: dict[str, Any] = {"fresh": object()}
    parameters = ["self", "*"]
    body = []
    for name, value in cls.DEFAULTS.items():
        if isinstance(value, Fresh | list):
            environment[f"make_{name}"] = value.factory if isinstance(value, Fresh) else list
            parameters.append(f"{name}=fresh")
            body.append(f"self.{name} = make_{name}() if {name} is fresh else {name}")
        else:
            environment[f"default_{name}"] = value
            parameters.append(f"{name}=default_{name}")
            body.append(f"self.{name} = {name}")
    parameters.append("unknown_tags=()")
    body.append("self.unknown_tags = unknown_tags")
    source = f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body) + "\n"
    exec(compile(source, f"<{cls.__module__}.{cls.__name__}.__init__>", "exec"), environment)
    init: Callable[..., None] = environment["__init__"]
    return init
