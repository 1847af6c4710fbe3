"""Names of topics: which are the cluster's own, and which are names at all."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.image import MetadataImage

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def invalid_reason(name: str) -> str | None:
    """Why a name cannot be used; None if it can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_topic_name(name: str) -> None:
    """Refuse a name that cannot be used."""
    reason = invalid_reason(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def unified(name: str) -> str:
    """The name that metrics know a topic by, in which dots and underscores are the same."""
    return name.replace(".", "_")


def unified_names(image: MetadataImage) -> dict[str, str]:
    """The topics that others may collide with, by the name metrics know them by."""
    return {unified(name): name for name in image.topics if has_collision_characters(name)}


def has_collision_characters(name: str) -> bool:
    """Whether a name has a character that metrics do not tell from another."""
    return "." in name or "_" in name


def named_twice(names: Iterable[str]) -> dict[str, None]:
    """The names that occur more than once, each once and in order."""
    return {name: None for name, count in Counter(names).items() if count > 1}
