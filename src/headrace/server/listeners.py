"""The node's listeners: their addresses taken, made known, limited, and changed at run time."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from headrace.config.listeners import Endpoint
from headrace.config.node import NodeConfig
from headrace.net.connection import ServerConnection
from headrace.net.limits import ListenerLimits, NodeLimits, SocketBudget
from headrace.net.listener import CannotListen, Listener
from headrace.net.network import Network
from headrace.net.service import Service
from headrace.net.settings import ConnectionSettings
from headrace.ports import Clock

logger: Final = logging.getLogger("headrace.server")

_CONNECTIONS: Final = "max.connections"
_RATE: Final = "max.connection.creation.rate"

DESCRIPTORS_KEPT: Final = 48
CONNECTIONS_MIN: Final = 8


def node_limits(config: NodeConfig) -> NodeLimits:
    """How many connections all listeners together may have."""
    return NodeLimits(
        config.integer(_CONNECTIONS),
        config.integer("max.connections.per.ip"),
        config.connections_per_ip_overrides,
        config.integer(_RATE),
    )


def socket_budget(descriptors: int | None) -> SocketBudget:
    """How a node shares out the descriptors that its files leave.

    A connection takes one, and while a file is sent on it another of the disk's, which the disk gives up. A
    few are kept for all that is neither: listeners, workers, metrics, threads in the middle of a sync."""
    if descriptors is None:
        return SocketBudget()
    connections = max(CONNECTIONS_MIN, descriptors - DESCRIPTORS_KEPT)
    return SocketBudget(connections, connections // 4)


def node_network(
    loop: asyncio.AbstractEventLoop, clock: Clock, config: NodeConfig, descriptors: int | None = None
) -> Network:
    """The network of a node, within the bounds of its configuration and of the process's descriptors."""
    return Network(
        loop,
        clock,
        node_limits(config),
        config.integer("connections.max.idle.ms"),
        config.integer("queued.max.request.bytes"),
        socket_budget(descriptors),
    )


def listener_limits(config: NodeConfig, endpoint: Endpoint) -> ListenerLimits:
    """What holds for one listener besides. Brokers and controllers reach each other whatever clients do."""
    limits = ListenerLimits()
    values = config.for_listener(endpoint.name)
    for key, attribute in ((_CONNECTIONS, "connections_max"), (_RATE, "creation_rate_max")):
        if config.is_set(endpoint.config_prefix + key):
            setattr(limits, attribute, values[key])
    is_controllers = endpoint.name in config.controller_listener_names
    is_brokers = endpoint.name == config.inter_broker_listener[0] and len(config.broker_listeners) > 1
    limits.is_protected = is_controllers or is_brokers
    return limits


class NotServing:
    """The service of listeners that have their address and do not accept connections yet."""

    __slots__ = ()

    def on_frame(self, connection: ServerConnection, frame: memoryview) -> None:
        """Nobody can have sent anything."""
        connection.close("the node does not serve yet")


class Listeners:
    """The listeners of a node by name."""

    __slots__ = ("_by_name", "_is_serving", "_network", "_service_of")

    def __init__(self, network: Network) -> None:
        self._network = network
        self._by_name: dict[str, Listener] = {}
        self._is_serving = False
        self._service_of: Callable[[str], Service] = lambda name: NotServing()

    def open(self, config: NodeConfig, endpoints: Iterable[Endpoint]) -> None:
        """Take the addresses, so that a port that is not free is known early; nobody is served yet."""
        for endpoint in endpoints:
            listener = Listener(
                self._network,
                endpoint.name,
                endpoint.host,
                endpoint.port,
                self._service_of(endpoint.name),
                ConnectionSettings.of(config.for_listener(endpoint.name)),
                listener_limits(config, endpoint),
            )
            listener.open()
            self._by_name[endpoint.name] = listener

    def start(self, service_of: Callable[[str], Service]) -> None:
        """Serve whoever connects; `service_of` says who answers on the listener of that name."""
        self._service_of, self._is_serving = service_of, True
        for name, listener in self._by_name.items():
            listener.service = service_of(name)
            listener.start()

    def release(self) -> None:
        """Give the addresses back."""
        for listener in self._by_name.values():
            listener.stop_accepting()

    def bound(self, endpoints: Iterable[Endpoint], local_name: Callable[[], str]) -> list[Endpoint]:
        """The addresses to tell others: the port that the system chose, and a name where none is given."""
        return [
            Endpoint(
                each.name,
                each.protocol,
                each.host or local_name(),
                each.port or self._by_name[each.name].port,
            )
            for each in endpoints
        ]

    def reconfigure(self, old: NodeConfig, new: NodeConfig) -> None:
        """Take over changed limits, and listeners that came or went."""
        self._network.limits.change(node_limits(new))
        for endpoint in new.broker_listeners + new.controller_listeners:
            listener = self._by_name.get(endpoint.name)
            if listener is not None:
                self._network.limits.change_listener(listener.count, listener_limits(new, endpoint))
        before = {each.name: each for each in old.listeners}
        after = {each.name: each for each in new.listeners}
        for name in before.keys() - after.keys():
            self._stop(name)
        for name in after.keys() - before.keys():
            self._add(new, after[name])
        for name in before.keys() & after.keys():
            if before[name] != after[name] and not self._is_at(after[name]):
                self._stop(name)
                self._add(new, after[name])

    def _is_at(self, endpoint: Endpoint) -> bool:
        """Whether a listener is there already: a port that the system chose may have been written down."""
        listener = self._by_name.get(endpoint.name)
        return listener is not None and (listener.host, listener.port) == (endpoint.host or "", endpoint.port)

    def _add(self, config: NodeConfig, endpoint: Endpoint) -> None:
        try:
            self.open(config, [endpoint])
        except CannotListen as error:
            logger.error("listener %s was added to the configuration, but %s", endpoint.name, error)
            return
        # A listener that is in the metadata comes before the node serves, and then waits with the others.
        if self._is_serving:
            self._by_name[endpoint.name].start()

    def _stop(self, name: str) -> None:
        listener = self._by_name.pop(name, None)
        if listener is None:
            return
        listener.stop_accepting()
        for connection in list(listener.connections):
            connection.close_when_sent("its listener was taken out of the configuration", logging.INFO)
        logger.info("listener %s accepts no more connections", name)
