"""How large a record may be that a broker has refused as too large: asked, so that the error can say it."""

from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.pending_batch import PendingBatch
from headrace.errors import HeadraceError
from headrace.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

_TOPIC: Final = 2
_KEY: Final = "max.message.bytes"


async def too_large(cluster: Cluster, batch: PendingBatch) -> str:
    """What to say of a record that is too large for its topic."""
    limit = await _limit(cluster, batch.partition.topic)
    allowed = f"the topic takes {limit} at most ({_KEY})" if limit else f"see the topic's {_KEY}"
    return f"a single record takes {batch.size} bytes as a batch; {allowed}"


async def _limit(cluster: Cluster, topic: str) -> str | None:
    """The topic's limit; None if that cannot be found out, which is no reason for another error."""
    resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=[_KEY])
    try:
        reply: DescribeConfigsResponse = await cluster.send_any(DescribeConfigsRequest(resources=[resource]))
    except HeadraceError:
        return None
    found = (config for result in reply.results for config in result.configs if config.name == _KEY)
    return next((config.value for config in found), None)
