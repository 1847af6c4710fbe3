"""What the controller's parts look at when they decide: the latest image, committed or not, and the node's
configuration with what was set at run time."""

from collections.abc import Iterator
from uuid import UUID

from headrace.config.dynamic import effective_node
from headrace.config.node import NodeConfig
from headrace.config.values import ConfigValue
from headrace.metadata.delta import PartitionId
from headrace.metadata.ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from headrace.metadata.image import MetadataImage
from headrace.metadata.partitions import PartitionState
from headrace.ports import Entropy

_MIN_ISR = "min.insync.replicas"
_UNCLEAN = "unclean.leader.election.enable"


class ControlView:
    """Read access for decisions. `image` is the controller's own: it runs ahead of what is committed."""

    __slots__ = ("_node", "_node_texts", "_topic_defaults", "cluster_id", "config", "entropy", "image")

    def __init__(self, image: MetadataImage, config: NodeConfig, entropy: Entropy, cluster_id: str) -> None:
        self.image = image
        self.config = config
        self.entropy = entropy
        self.cluster_id = cluster_id
        self._node_texts: tuple[dict[str, str], dict[str, str]] | None = None
        self._node = config
        self._topic_defaults: dict[str, ConfigValue] = {}

    @property
    def node_id(self) -> int:
        return self.config.node_id

    # Configuration

    def _refresh(self) -> None:
        cluster, own = dict(self.image.broker_config(None)), dict(self.image.broker_config(self.node_id))
        if self._node_texts != (cluster, own):
            self._node_texts = (cluster, own)
            self._node = effective_node(self.config, cluster, own)
            self._topic_defaults = self._node.topic_defaults()

    @property
    def node(self) -> NodeConfig:
        """This node's configuration with what was set at run time."""
        self._refresh()
        return self._node

    @property
    def topic_defaults(self) -> dict[str, ConfigValue]:
        """What a topic gets for the keys it does not set."""
        self._refresh()
        return self._topic_defaults

    def min_isr(self, topic: str) -> int:
        """How many replicas must be in sync before a topic takes writes."""
        text = self.image.topic_config(topic).get(_MIN_ISR)
        wanted = int(text) if text is not None else self.topic_defaults[_MIN_ISR]
        assert isinstance(wanted, int)
        return wanted

    def allows_unclean_leaders(self, topic: str) -> bool:
        """Whether a topic would rather lose records than wait for a replica that has them."""
        text = self.image.topic_config(topic).get(_UNCLEAN)
        return text.lower() == "true" if text is not None else bool(self.topic_defaults[_UNCLEAN])

    # Brokers and partitions

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered, not fenced and not shutting down."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def default_directory(self, broker_id: int) -> UUID:
        """The directory of a new replica: a broker that has several chooses itself."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            return UNASSIGNED_DIRECTORY
        if not broker.log_dirs:
            return MIGRATING_DIRECTORY
        return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY

    def partitions(self) -> Iterator[tuple[PartitionId, PartitionState]]:
        """Every partition there is."""
        for topic in self.image.topics_by_id.values():
            for index, partition in topic.partitions.items():
                yield PartitionId(topic.id, index), partition
