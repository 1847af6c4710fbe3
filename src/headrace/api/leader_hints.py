"""Where to go instead: the current leader and its address, for clients that asked the wrong broker."""

from typing import TypedDict

from headrace.replication.cluster_view import LeaderAndEpoch, NodeAddress
from headrace.replication.replicas import Replicas

_NOBODY = LeaderAndEpoch(-1, -1)


class EndpointFields(TypedDict):
    """An endpoint in the terms of the two responses that have them."""

    node_id: int
    host: str
    port: int
    rack: str | None


class LeaderHints:
    """The leaders told in one response, and the addresses of those that are alive."""

    __slots__ = ("_listener", "_nodes", "_replicas")

    def __init__(self, replicas: Replicas, listener: str) -> None:
        self._replicas = replicas
        self._listener = listener
        self._nodes: dict[int, NodeAddress] = {}

    def leader_of(self, topic: str, index: int) -> LeaderAndEpoch:
        """The leader of a partition, whose address goes into the response, too."""
        partition = self._replicas.get(topic, index)
        if partition is not None and not partition.is_offline:
            leader = LeaderAndEpoch(partition.leader, partition.leader_epoch)
        else:
            leader = self._replicas.cluster.leader_of(topic, index) or _NOBODY
        address = self._replicas.cluster.address_of(leader.leader, self._listener)
        if address is not None:
            self._nodes[address.node_id] = address
        return leader

    def endpoints(self) -> list[EndpointFields]:
        """The addresses gathered."""
        return [
            EndpointFields(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in self._nodes.values()
        ]
