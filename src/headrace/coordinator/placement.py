"""Which partition of an internal topic has the state of a group or of a transactional id."""

from functools import lru_cache
from typing import Final

_INT_MIN: Final = -(2**31)


@lru_cache(maxsize=8192)
def partition_for(key: str, partitions: int) -> int:
    """The partition that every broker and client finds for a key."""
    code = java_hash(key)
    return (0 if code == _INT_MIN else abs(code)) % partitions


def java_hash(text: str) -> int:
    """The hash of a string in Java: over its UTF-16 units, in 32 bits with sign."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        code = (31 * code + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code
