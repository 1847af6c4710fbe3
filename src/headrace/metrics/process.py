"""Metrics of the process itself, under the names that every Prometheus client uses."""

from collections.abc import Callable
from typing import Protocol

from headrace.metrics.registry import Registry


class ProcessUsage(Protocol):
    """What the operating system says about the process; -1 where it does not."""

    @property
    def resident_bytes(self) -> int: ...
    @property
    def virtual_bytes(self) -> int: ...
    @property
    def cpu_seconds(self) -> float: ...
    @property
    def open_descriptors(self) -> int: ...
    @property
    def descriptors_max(self) -> int: ...
    @property
    def start_seconds(self) -> float: ...


def register_process(registry: Registry, usage: Callable[[], ProcessUsage]) -> None:
    """Add the process's metrics."""
    registry.gauge(
        "process_resident_memory_bytes", "Resident memory in bytes.", lambda: usage().resident_bytes
    )
    registry.gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", lambda: usage().virtual_bytes)
    registry.count(
        "process_cpu_seconds_total", "User and system time spent, in seconds.", lambda: usage().cpu_seconds
    )
    registry.gauge("process_open_fds", "Open file descriptors.", lambda: usage().open_descriptors)
    registry.gauge("process_max_fds", "File descriptors that may be open.", lambda: usage().descriptors_max)
    registry.gauge(
        "process_start_time_seconds",
        "When the process started, in seconds since the epoch.",
        lambda: usage().start_seconds,
    )
