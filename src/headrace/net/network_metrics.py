"""The network's counters as metrics, under the names that Kafka's have."""

from collections.abc import Callable, Iterator

from headrace.metrics.names import mbean_name
from headrace.metrics.registry import Labels, Registry
from headrace.net.listener import Listener
from headrace.net.network import Network


def register_network(registry: Registry, network: Network) -> None:
    """Add the metrics of connections, bytes and the loop's idle time."""
    per_listener = _PerListener(registry, network)
    per_listener.gauge("connection_count", "Open connections.", lambda each: len(each.connections))
    per_listener.count("connection_creation_total", "Accepted connections.", lambda each: each.accepted)
    per_listener.count("connection_refused_total", "Refused connections.", lambda each: each.refused)
    per_listener.count("request_total", "Requests received.", lambda each: each.requests)
    per_listener.count("incoming_byte_total", "Bytes received.", lambda each: each.bytes_in)
    per_listener.count("outgoing_byte_total", "Bytes sent.", lambda each: each.bytes_out)
    registry.gauge(
        mbean_name("kafka.network", "SocketServer", "NetworkProcessorAvgIdlePercent"),
        "Share of the last minute in which the event loop moved no bytes, from 0 to 1.",
        lambda: network.load.network_idle_share,
    )
    registry.gauge(
        mbean_name("kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent"),
        "Share of the last minute in which the event loop handled nothing, from 0 to 1.",
        lambda: network.load.handler_idle_share,
    )
    registry.counts(
        "headrace_loop_busy_seconds_total",
        "Time the event loop spent moving bytes (network) and on everything else (handler).",
        ("work",),
        lambda: (
            (("network",), network.load.network_ns / 1e9),
            (("handler",), network.load.handler_busy_ns / 1e9),
        ),
    )


class _PerListener:
    """Metrics with the listener's name as their label."""

    __slots__ = ("_network", "_registry")

    def __init__(self, registry: Registry, network: Network) -> None:
        self._registry = registry
        self._network = network

    def gauge(self, name: str, help: str, read: Callable[[Listener], int]) -> None:
        """A value of each listener."""
        self._registry.gauges(self._spelt(name), help, ("listener",), lambda: self._readings(read))

    def count(self, name: str, help: str, read: Callable[[Listener], int]) -> None:
        """A count of each listener."""
        self._registry.counts(self._spelt(name), help, ("listener",), lambda: self._readings(read))

    def _readings(self, read: Callable[[Listener], int]) -> Iterator[tuple[Labels, int]]:
        # A listener whose address was changed lives on under the same name until its last client left.
        sums: dict[str, int] = {}
        for listener in self._network.listeners:
            sums[listener.name] = sums.get(listener.name, 0) + read(listener)
        for name, number in sums.items():
            yield (name,), number

    @staticmethod
    def _spelt(name: str) -> str:
        return mbean_name("kafka.server", "socket-server-metrics", name)
