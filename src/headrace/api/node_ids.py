"""Node ids as they stand in requests: texts that have to be the number of the node that was asked."""

import re
from typing import Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


def node_id_of(text: str) -> int | None:
    """The number that a text stands for; None if it is no number of 32 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(1 << 31) <= number < 1 << 31 else None
