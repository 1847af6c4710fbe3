"""The identity of an idempotent producer: asked of a broker, and asked again until there is one."""

import asyncio
from typing import Final

from headrace.client.backoff import backoff_ms
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
    failures = 0
    while True:
        code = await _asked(cluster, request)
        if isinstance(code, Identity):
            return code
        if code not in RETRIABLE:
            raise BrokerRefused(code, None, "a producer id for idempotent writes")
        failures += 1
        await pause(cluster, failures)


async def pause(cluster: Cluster, failures: int) -> None:
    """Wait before the next attempt, however many there were."""
    config = cluster.config
    wait_ms = backoff_ms(config.retry_backoff_ms, config.retry_backoff_max_ms, failures, cluster.entropy)
    await asyncio.sleep(wait_ms / 1000)


async def _asked(cluster: Cluster, request: InitProducerIdRequest) -> Identity | int:
    try:
        reply: InitProducerIdResponse = await cluster.send_any(request)
    except (Unreachable, ConnectionLost, RequestTimedOut):
        return ErrorCode.NETWORK_EXCEPTION
    return reply.error_code or Identity(reply.producer_id, reply.producer_epoch)
