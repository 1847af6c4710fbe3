"""The cluster itself: its id, its brokers, and which of them speaks for the controller."""

from dataclasses import dataclass

from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused
from headrace.client.metadata import Broker
from headrace.errors import ErrorCode
from headrace.protocol.messages.describe_cluster import DescribeClusterRequest


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster as clients see it. `controller` is the broker that passes requests on to the controller."""

    cluster_id: str
    controller: int | None
    brokers: tuple[Broker, ...]


async def describe_cluster(cluster: Cluster) -> ClusterDescription:
    """Describe the cluster."""
    reply = await cluster.send_any(DescribeClusterRequest())
    if reply.error_code != ErrorCode.NONE:
        raise BrokerRefused(reply.error_code, reply.error_message, "describing the cluster")
    brokers = (Broker(each.broker_id, each.host, each.port, each.rack) for each in reply.brokers)
    return ClusterDescription(
        cluster_id=reply.cluster_id,
        controller=None if reply.controller_id < 0 else reply.controller_id,
        brokers=tuple(sorted(brokers)),
    )
