"""What a single value must satisfy. A rule knows no other keys; cross-checks live with their resource.

A rule's `text` is how Kafka describes the valid values.
"""

import re

from headrace.config.refusals import InvalidConfig, invalid_key, invalid_value
from headrace.config.values import ConfigValue


class Rule:
    """One check of one value; this one allows everything."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The valid values, in Kafka's notation."""
        return ""

    def check(self, name: str, value: ConfigValue) -> None:
        """Raise InvalidConfig if the value is not allowed."""


class Range(Rule):
    """A number with a lower and perhaps an upper bound, both included."""

    __slots__ = ("least", "most")

    def __init__(self, least: int, most: float | None = None) -> None:
        self.least = least
        self.most = most

    @property
    def text(self) -> str:
        return f"[{self.least},...]" if self.most is None else f"[{self.least},...,{self.most}]"

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise invalid_value(name, value, "Value must be non-null")
        assert isinstance(value, (int, float))
        if value < self.least:
            raise invalid_value(name, value, f"Value must be at least {self.least}")
        if self.most is not None and value > self.most:
            raise invalid_value(name, value, f"Value must be no more than {self.most}")


class RangeOr(Rule):
    """A number between two bounds, or one special number outside them."""

    __slots__ = ("least", "most", "special")

    def __init__(self, least: int, most: int, special: int) -> None:
        self.least = least
        self.most = most
        self.special = special

    @property
    def text(self) -> str:
        return f"[{self.least},...,{self.most}] or {self.special}"

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise invalid_value(name, value, "Value must be non-null")
        assert isinstance(value, int)
        if value > self.most or (value < self.least and value != self.special):
            bounds = f"{self.least} and {self.most} or equal to {self.special}"
            raise invalid_value(name, value, f"Value must be between {bounds}")


class OneOf(Rule):
    """A text out of a few."""

    __slots__ = ("choices",)

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    @property
    def text(self) -> str:
        return f"[{', '.join(self.choices)}]"

    def check(self, name: str, value: ConfigValue) -> None:
        if value not in self.choices:
            raise invalid_value(name, value, f"String must be one of: {', '.join(self.choices)}")


class OneOfAnyCase(Rule):
    """A text out of a few, in capitals or not."""

    __slots__ = ("choices",)

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    @property
    def text(self) -> str:
        return f"(case insensitive) [{', '.join(self.choices)}]"

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in self.choices:
            reason = f"String must be one of (case insensitive): {', '.join(self.choices)}"
            raise invalid_value(name, value, reason)


class ListOf(Rule):
    """A list without empty entries, perhaps of certain words only. Doubles are dropped before it is asked."""

    __slots__ = ("choices", "empty_allowed", "none_allowed")

    def __init__(self, *choices: str, empty: bool = True, none: bool = False) -> None:
        self.choices = choices
        self.empty_allowed = empty
        self.none_allowed = none

    @property
    def text(self) -> str:
        return f"[{', '.join(self.choices)}]" if self.choices else ""

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            if self.none_allowed:
                return
            raise invalid_key(name, f"Configuration '{name}' values must not be null.")
        assert isinstance(value, tuple)
        if not value and not self.empty_allowed:
            valid = self.text or "any non-empty value"
            raise invalid_key(
                name, f"Configuration '{name}' must not be empty. Valid values include: {valid}"
            )
        for entry in value:
            if not entry:
                raise invalid_key(name, f"Configuration '{name}' values must not be empty.")
            if self.choices and entry not in self.choices:
                raise invalid_value(name, entry, f"String must be one of: {', '.join(self.choices)}")


class NonEmptyText(Rule):
    """A text that is absent or has at least one character."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "non-empty string"

    def check(self, name: str, value: ConfigValue) -> None:
        if value == "":
            raise invalid_value(name, value, "String must be non-empty")


class AnyText(Rule):
    """A text that may be empty but not absent."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "non-null string"

    def check(self, name: str, value: ConfigValue) -> None:
        if value is None:
            raise invalid_value(name, value, "entry must be non null")


class Voters(Rule):
    """A list of `id@host:port`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "non-empty list"

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, tuple):
            raise InvalidConfig(f"Invalid value null for configuration {name}", key=name)
        from headrace.config.endpoints import parse_voters  # few nodes set this; starting up needs no address

        parse_voters(value)


class BootstrapServers(Rule):
    """A list of `host:port`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "non-empty list"

    def check(self, name: str, value: ConfigValue) -> None:
        if not isinstance(value, tuple):
            raise InvalidConfig(f"Invalid value null for configuration {name}", key=name)
        from headrace.config.endpoints import (
            host_and_port,
        )  # few nodes set this; starting up needs no address

        for entry in value:
            if host_and_port(entry) is None:
                where = f"Failed to parse host name from {entry} for the configuration {name}"
                raise invalid_key(name, f'{where}. Each entry should be in the form "{{host}}:{{port}}"')


class ThrottledReplicas(Rule):
    """`*`, or a list of `partition:broker`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def check(self, name: str, value: ConfigValue) -> None:
        assert isinstance(value, tuple)
        entries = [entry.strip() for entry in value]
        if all(re.fullmatch(r"([0-9]+:[0-9]+)?", entry) for entry in entries) or "".join(entries) == "*":
            return
        form = f"in the following format: {self.text}"
        raise invalid_value(name, value, f"{name} must be the literal '*' or a list of replicas {form}")


class OffsetReset(Rule):
    """Where a share group begins: the latest or earliest record, or a time span back."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"

    def check(self, name: str, value: ConfigValue) -> None:
        if value in ("latest", "earliest"):
            return
        if (
            isinstance(value, str)
            and value.startswith("by_duration:")
            and re.fullmatch(_DURATION, value[12:])
        ):
            return
        forms = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"
        text = "null" if value is None else value
        raise invalid_value(
            name, value, f"Invalid value `{text}` for configuration {name}. The value must be {forms}."
        )


# Days, then hours, minutes and seconds after a T; at least one part, and none of them negative.
_DURATION = (
    r"(?i)P(?=[0-9+T])(?:\+?[0-9]+D)?"
    r"(?:T(?=[0-9+])(?:\+?[0-9]+H)?(?:\+?[0-9]+M)?(?:\+?[0-9]+(?:[.,][0-9]{0,9})?S)?)?"
)
