"""What is counted about the requests of one API: plain numbers that whoever exposes metrics reads.

Counting is on the way of every request, so it adds to integers and does no more.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from headrace.protocol.message import Message

#: The first bucket holds requests below 1,024 ns; each further one reaches twice as far.
BUCKETS: Final = 44

ErrorCodes: TypeAlias = Callable[[Any], list[int]]


class RequestStats:
    """Requests of one API since the start. `buckets[i]` counts those that took less than 2^(i + 10) ns."""

    __slots__ = ("buckets", "count", "errors", "request_bytes", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.request_bytes = 0
        self.total_ns = 0
        self.buckets = [0] * BUCKETS
        self.errors: dict[int, int] = {}

    def add(self, elapsed_ns: int, request_bytes: int) -> None:
        """One more request, answered (or known to need no answer) after so long."""
        self.count += 1
        self.request_bytes += request_bytes
        self.total_ns += elapsed_ns
        self.buckets[(elapsed_ns >> 10).bit_length()] += 1

    def add_errors(self, codes: list[int]) -> None:
        """The error codes of one reply, one for each item that has one."""
        for code in codes:
            self.errors[code] = self.errors.get(code, 0) + 1

    @staticmethod
    def upper_bounds_seconds() -> list[float]:
        """Where each bucket ends."""
        return [(1 << (index + 10)) / 1e9 for index in range(BUCKETS)]


def error_codes_of(response: type[Message]) -> ErrorCodes:
    """A function that finds the error codes, other than none, in replies of a class."""
    has_own = "error_code" in response.FIELD_NAMES
    inner = [(name, _codes_in_items(item)) for name, item in _arrays(response) if _has_error_code(item)]
    if not inner:
        return _own_code if has_own else _no_code

    def codes(reply: Any) -> list[int]:
        found = [reply.error_code] if has_own and reply.error_code else []
        for name, codes_in in inner:
            found += codes_in(getattr(reply, name) or ())
        return found

    return codes


def _own_code(reply: Any) -> list[int]:
    return [reply.error_code] if reply.error_code else []


def _no_code(reply: Any) -> list[int]:
    return []


def _codes_in_items(item: type[Message]) -> ErrorCodes:
    if not any(_has_error_code(nested) for _, nested in _arrays(item)):
        return lambda items: [code for item in items if (code := item.error_code)]
    codes_of_item = error_codes_of(item)
    return lambda items: [code for item in items for code in codes_of_item(item)]


def _has_error_code(structure: type[Message]) -> bool:
    if "error_code" in structure.FIELD_NAMES:
        return True
    return any(_has_error_code(nested) for _, nested in _arrays(structure))


def _arrays(structure: type[Message]) -> Iterator[tuple[str, type[Message]]]:
    """The fields that are arrays of structures."""
    for name in structure.FIELD_NAMES:
        kind = structure.wire(name).type
        if isinstance(kind, list) and isinstance(kind[0], type):
            yield name, kind[0]
