"""What hosted partitions and their APIs need to know about the rest of the cluster: a Protocol.

The metadata image stands behind it; tests have a small one of their own."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from headrace.config.values import ConfigValue
from headrace.types import TopicId


class NodeAddress(NamedTuple):
    """Where a broker can be reached on one of its listeners."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class LeaderAndEpoch(NamedTuple):
    """Who leads a partition, -1 if nobody, and since which epoch."""

    leader: int
    leader_epoch: int


class ClusterView(Protocol):
    """The metadata as far as the data plane asks for it."""

    def has_topic(self, topic: str) -> bool: ...

    def has_partition(self, topic: str, partition: int) -> bool: ...

    def topic_id(self, topic: str) -> TopicId | None: ...

    def topic_name(self, topic_id: TopicId) -> str | None: ...

    def leader_of(self, topic: str, partition: int) -> LeaderAndEpoch | None:
        """None if there is no such partition."""

    def address_of(self, node_id: int, listener: str) -> NodeAddress | None:
        """None unless the broker is alive and has that listener."""

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is registered and not fenced."""

    def topic_config(self, topic: str) -> Mapping[str, ConfigValue]:
        """The value of every topic key, defaults included; also of a topic that does not exist."""
