"""The short words that the tables of keys are written in."""

from typing import Final

from headrace.config.definition import ConfigKey, Importance, Update
from headrace.config.rules import Rule
from headrace.config.values import ConfigValue, Kind

BOOLEAN: Final = Kind.BOOLEAN
STRING: Final = Kind.STRING
INT: Final = Kind.INT
SHORT: Final = Kind.SHORT
LONG: Final = Kind.LONG
DOUBLE: Final = Kind.DOUBLE
LIST: Final = Kind.LIST
CLASS: Final = Kind.CLASS
PASSWORD: Final = Kind.PASSWORD

HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW

PER_BROKER: Final = Update.PER_BROKER
CLUSTER_WIDE: Final = Update.CLUSTER_WIDE

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
DOUBLE_MAX: Final = 1.7976931348623157e308


class key:  # noqa: N801 it reads as a word of the tables, not as a class of its own
    """A key whose meaning is still to be told: `key(...).means("...")`."""

    __slots__ = ("_facts", "_flags", "_rule", "_update")

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: ConfigValue,
        importance: Importance,
        rule: Rule | None = None,
        update: Update = Update.READ_ONLY,
        *,
        required: bool = False,
        internal: bool = False,
        inert: bool = False,
    ) -> None:
        self._facts = (name, kind, default, importance)
        self._rule = rule
        self._update = update
        self._flags = (required, internal, inert)

    def means(self, documentation: str) -> ConfigKey:
        """The whole key, with the sentences that tell a user what it does."""
        return ConfigKey(*self._facts, documentation, self._rule, self._update, *self._flags)
