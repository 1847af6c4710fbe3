"""The words a message's annotations are written in: `Annotated[int, Wire("int32", "0+")]`.

Nothing here reads or writes bytes. Importing the message modules evaluates hundreds of these, so a `Wire`
only keeps what it is given; it is worked out when the first codec of its message is compiled.
"""

from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from headrace.ports import BytesLike, File

if TYPE_CHECKING:
    from headrace.protocol.message import Message

T = TypeVar("T")
WireType: TypeAlias = "str | type[Message] | list[str] | list[type[Message]]"

VERSION_MAX = 32767

#: Wire types of a fixed width, with their `struct` codes.
FIXED_CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}


class FileRange(Protocol):
    """Record data that stays in its file until it is sent; the codec asks for nothing but its length."""

    @property
    def file(self) -> File:
        """The file that holds the bytes."""

    @property
    def position(self) -> int:
        """Where in the file they start."""

    def __len__(self) -> int:
        """How many they are."""


RecordData: TypeAlias = BytesLike | FileRange


class Wire:
    """How one field goes over the wire, and in which versions of its message.

    `type` is the name of a primitive, a message class, or a list holding one of these for an array. Versions
    are spelt as Kafka's schemas spell them: "3+", "2-7", "4" or "none".
    """

    __slots__ = ("flexible", "ignorable", "json_name", "nullable", "tag", "tagged", "type", "versions")

    def __init__(
        self,
        type: WireType,
        versions: str,
        nullable: str = "none",
        tagged: str = "none",
        tag: int = -1,
        ignorable: bool = False,
        flexible: bool = True,
        json_name: str = "",
    ) -> None:
        self.type = type
        self.versions = versions
        self.nullable = nullable
        self.tagged = tagged
        self.tag = tag
        self.ignorable = ignorable
        self.flexible = flexible
        self.json_name = json_name


class Fresh:
    """A default that is made anew for every message: an empty list, or a structure of defaults."""

    __slots__ = ("factory",)

    def __init__(self, factory: "type[Message]") -> None:
        self.factory = factory


def default(structure: type[T]) -> T:
    """Declares that a field starts as a new `structure` with its own defaults."""
    return Fresh(structure)  # type: ignore[return-value, arg-type]


def version_bounds(spelt: str) -> tuple[int, int]:
    """Lowest and highest version of a range as schemas spell it; the lowest is above the highest if none."""
    if spelt == "none":
        return 0, -1
    if spelt.endswith("+"):
        return int(spelt[:-1]), VERSION_MAX
    low, _, high = spelt.partition("-")
    return int(low), int(high or low)


def is_version_in(version: int, spelt: str) -> bool:
    """Whether `version` lies in the range."""
    low, high = version_bounds(spelt)
    return low <= version <= high
