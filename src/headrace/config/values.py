"""The values a configuration key can have, and how Kafka writes them down."""

from enum import IntEnum
from math import isinf, isnan
from typing import Final, TypeAlias

HIDDEN: Final = "[hidden]"


class Kind(IntEnum):
    """The type of a key's value, by the code that DescribeConfigs uses."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Password:
    """A secret that does not show itself: only `reveal` gives it away."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        """The secret itself, for the code that must use it."""
        return self._secret

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other._secret == self._secret

    def __hash__(self) -> int:
        return hash(self._secret)


ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...] | Password | None


def render(value: ConfigValue) -> str | None:
    """The value as DescribeConfigs and the metadata log write it; None for an absent value or a secret."""
    if value is None or isinstance(value, Password):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ",".join(value)
    return _scalar_text(value)


def reveal(value: ConfigValue) -> str | None:
    """Like `render`, but with a secret in clear: for values that are compared or used, never shown."""
    return value.reveal() if isinstance(value, Password) else render(value)


def shown_in_error(value: ConfigValue) -> str:
    """The value as it stands in an error message: lists in brackets, secrets hidden."""
    if value is None:
        return "null"
    if isinstance(value, Password):
        return HIDDEN
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return value if isinstance(value, str) else _scalar_text(value)


def _scalar_text(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else str(value)


def java_double(value: float) -> str:
    """A double as Java prints it: plain between 10^-3 and 10^7, else with a capital E."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = _decimal_parts(value)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _decimal_parts(value: float) -> tuple[str, str, int]:
    """Sign, significant digits and decimal exponent of the shortest text that reads back as `value`."""
    sign = "-" if value < 0 else ""
    mantissa, _, power = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    exponent = int(power or 0) + len(whole) - 1 - leading_zeros
    return sign, digits.rstrip("0") or "0", exponent
