"""What is counted about the requests of one API, and how Prometheus reads it.

Counting is on the way of every request, so it adds to numbers and does no more.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from headrace.errors import ErrorCode
from headrace.metrics.instruments import Histogram
from headrace.metrics.names import mbean_name
from headrace.metrics.registry import Labels, Registry
from headrace.protocol.message import Message

ErrorCodes: TypeAlias = Callable[[Any], list[int]]

_NS_PER_MS: Final = 1_000_000


class RequestStats:
    """Requests of one API since the start, from the first byte handled to the reply handed over."""

    __slots__ = ("errors", "request_bytes", "time_ms")

    def __init__(self) -> None:
        self.time_ms = Histogram()
        self.request_bytes = 0
        #: How often each code other than 0 was told, counted per item of a reply.
        self.errors: dict[int, int] = {}

    @property
    def count(self) -> int:
        """How many requests there were."""
        return self.time_ms.count

    def add(self, elapsed_ns: int, request_bytes: int) -> None:
        """One more request, answered (or known to need no answer) after so long."""
        self.request_bytes += request_bytes
        self.time_ms.record(elapsed_ns / _NS_PER_MS)

    def add_errors(self, codes: list[int]) -> None:
        """The error codes of one reply, one for each item that has one."""
        for code in codes:
            self.errors[code] = self.errors.get(code, 0) + 1


def register_requests(registry: Registry, stats_by_role: Mapping[str, Mapping[str, RequestStats]]) -> None:
    """Show the requests of brokers' and controllers' listeners: `{"broker": dispatch.stats, ...}`."""
    labels = ("request", "role")
    times = registry.histograms(_name("TotalTimeMs"), "Time until the reply was ready, in ms.", labels)
    for role, stats in stats_by_role.items():
        for api, each in stats.items():
            times.children[api, role] = each.time_ms

    def read(value: Callable[[RequestStats], int]) -> Iterator[tuple[Labels, int]]:
        for role, stats in stats_by_role.items():
            for api, each in stats.items():
                yield (api, role), value(each)

    def errors() -> Iterator[tuple[Labels, int]]:
        for role, stats in stats_by_role.items():
            for api, each in stats.items():
                for code, count in each.errors.items():
                    yield (api, role, ErrorCode(code).name), count

    registry.counts(
        _name("RequestsPerSec") + "_total", "Requests.", labels, lambda: read(lambda each: each.count)
    )
    registry.counts(
        _name("RequestBytes") + "_total",
        "Bytes of requests.",
        labels,
        lambda: read(lambda each: each.request_bytes),
    )
    registry.counts(
        _name("ErrorsPerSec") + "_total", "Errors told, per item of a reply.", (*labels, "error"), errors
    )


def _name(name: str) -> str:
    return mbean_name("kafka.network", "RequestMetrics", name)


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
