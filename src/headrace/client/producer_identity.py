"""The identity of an idempotent producer: asked of a broker, and asked again until there is one."""

from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.errors import BrokerRefused, ConnectionLost, RequestTimedOut, Unreachable
from headrace.client.pending_batch import Identity
from headrace.client.send_queues import RETRIABLE
from headrace.errors import ErrorCode
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

# What Java's producer sends when there is no transaction that could time out.
_NO_TIMEOUT_MS: Final = 2**31 - 1


async def ask_identity(cluster: Cluster) -> Identity:
    """A producer id and epoch that nobody else has.

    A broker that is not there or not ready is asked again, for as long as the caller waits. BrokerRefused
    when it says no, UnsupportedByBroker when it knows of no producer ids."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
    patience = cluster.patience()
    while True:
        try:
            reply: InitProducerIdResponse = await cluster.send_any(request)
        except (Unreachable, ConnectionLost, RequestTimedOut):
            await patience.pause()
            continue
        if reply.error_code == ErrorCode.NONE:
            return Identity(reply.producer_id, reply.producer_epoch)
        if reply.error_code not in RETRIABLE:
            raise BrokerRefused(reply.error_code, None, "a producer id for idempotent writes")
        await patience.pause()
