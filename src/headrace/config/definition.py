"""What one configuration key is: name, type, default, rule, meaning; and how its text becomes a value."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headrace.config.refusals import InvalidConfig, invalid_value
from headrace.config.rules import ListOf, Rule
from headrace.config.values import ConfigValue, Kind, Password


class Importance(Enum):
    """How much a key matters to somebody who sets up a node."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Update(Enum):
    """When a node's key can change."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(slots=True, frozen=True, eq=False, repr=False)
class ConfigKey:
    """One key. `inert` says that Kafka knows it and Headrace takes it, but nothing here depends on it."""

    name: str
    kind: Kind
    default: ConfigValue
    importance: Importance
    documentation: str
    rule: Rule | None = None
    update: Update = Update.READ_ONLY
    required: bool = False
    internal: bool = False
    inert: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether the value is a secret."""
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> ConfigValue:
        """The typed value of a text, checked against the key's rule; InvalidConfig says what is wrong."""
        try:
            value = _PARSERS[self.kind](text.strip(_JAVA_SPACE))
        except _Unreadable as problem:
            shown: ConfigValue = Password(text) if self.sensitive else text
            raise invalid_value(self.name, shown, str(problem)) from None
        if self.kind is Kind.CLASS and value != self.default:
            # Java classes are not loaded: only the default stands for behaviour that is here.
            raise invalid_value(self.name, text, f"Class {text} could not be found.")
        if self.kind is Kind.LIST and isinstance(self.rule, ListOf):
            assert isinstance(value, tuple)
            value = tuple(dict.fromkeys(value))
        self.check(value)
        return value

    def check(self, value: ConfigValue) -> None:
        """Raise InvalidConfig if a typed value breaks the key's rule."""
        if self.rule is not None:
            self.rule.check(self.name, value)

    def initial(self) -> ConfigValue:
        """The default, or InvalidConfig for a key that must be set."""
        if self.required:
            message = f'Missing required configuration "{self.name}" which has no default value.'
            raise InvalidConfig(message, key=self.name)
        return self.default


# The characters that Java's String.trim takes off.
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))
_DOUBLE = (
    r"[+-]?(?:NaN|Infinity|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)


class _Unreadable(Exception):
    """A text that is not of the key's type."""


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise _Unreadable("Expected value to be either true or false")
    return lowered == "true"


def _parse_integer(text: str, kind: Kind, bits: int) -> int:
    # The length is bounded because Python itself refuses to read thousands of digits.
    readable = len(text) < 1000 and re.fullmatch(r"[+-]?[0-9]+", text) is not None
    if not readable or not -(1 << bits) <= int(text) < 1 << bits:
        raise _Unreadable(f"Not a number of type {kind.name}")
    return int(text)


def _parse_double(text: str) -> float:
    if re.fullmatch(_DOUBLE, text) is None:
        raise _Unreadable("Not a number of type DOUBLE")
    if "x" in text.lower():
        return float.fromhex(text.rstrip("fFdD"))
    return float(text if text.endswith("Infinity") else text.rstrip("fFdD"))


def _parse_list(text: str) -> tuple[str, ...]:
    return tuple(re.split(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*", text)) if text else ()


_PARSERS: Final[dict[Kind, Callable[[str], ConfigValue]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: str,
    Kind.INT: lambda text: _parse_integer(text, Kind.INT, 31),
    Kind.SHORT: lambda text: _parse_integer(text, Kind.SHORT, 15),
    Kind.LONG: lambda text: _parse_integer(text, Kind.LONG, 63),
    Kind.DOUBLE: _parse_double,
    Kind.LIST: _parse_list,
    Kind.CLASS: str,
    Kind.PASSWORD: Password,
}
