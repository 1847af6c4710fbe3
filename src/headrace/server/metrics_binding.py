"""Everything that is counted in a node, under the names that Kafka's metrics have."""

from dataclasses import dataclass

from headrace.api.dispatch import Dispatch
from headrace.api.services import Services
from headrace.metadata.service import MetadataService
from headrace.metrics.process import register_process
from headrace.metrics.registry import Registry
from headrace.net.network import Network
from headrace.net.network_metrics import register_network
from headrace.replication.housekeeping import Housekeeping
from headrace.system.process import process_state


@dataclass(slots=True, frozen=True)
class MeasuredParts:
    """The parts of a node that count."""

    network: Network
    dispatch: Dispatch
    services: Services
    metadata: MetadataService
    housekeeping: Housekeeping


def bind_metrics(registry: Registry, parts: MeasuredParts) -> None:
    """Let a registry read what the parts of a node count."""
    register_process(registry, process_state)
    register_network(registry, parts.network)
