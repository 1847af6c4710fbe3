"""DescribeTransactions: what the coordinator knows of transactional ids."""

import asyncio
from collections.abc import Awaitable

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import transaction_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.transactions.metadata import TransactionMetadata


def handle(
    services: Services, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
    """Every id by itself."""
    coordinator = transaction_coordinator(services)
    found = [(each, coordinator.describe(each)) for each in request.transactional_ids]
    return _response(found) if all(future.done() for _, future in found) else _later(found)


async def _later(
    found: "list[tuple[str, asyncio.Future[TransactionMetadata]]]",
) -> DescribeTransactionsResponse:
    await asyncio.wait([future for _, future in found])
    return _response(found)


def _response(
    found: "list[tuple[str, asyncio.Future[TransactionMetadata]]]",
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_described(transactional_id, future) for transactional_id, future in found]
    )


def _described(transactional_id: str, future: "asyncio.Future[TransactionMetadata]") -> TransactionState:
    error = future.exception()
    if error is not None:
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        return TransactionState(transactional_id=transactional_id, error_code=code)
    metadata = future.result()
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.label,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=_topics(metadata),
    )


def _topics(metadata: TransactionMetadata) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for name, index in sorted(metadata.partitions):
        topics.setdefault(name, TopicData(topic=name)).partitions.append(index)
    return list(topics.values())


def error_response(
    request: DescribeTransactionsRequest, version: int, error: KafkaError
) -> DescribeTransactionsResponse:
    """The same error for every id."""
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=each, error_code=error.code)
            for each in request.transactional_ids
        ]
    )


API = Api(
    key=65,
    name="DescribeTransactions",
    versions=(0, 0),
    request=DescribeTransactionsRequest,
    response=DescribeTransactionsResponse,
    handle=handle,
    error_response=error_response,
)
