"""AddPartitionsToTxn: let partitions take part in a transaction, or check that they do.

Producers ask for one transaction in versions up to 3; from version 4 on brokers ask for several at once.
One partition that can't take part keeps the others of its transaction from it."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final, TypeAlias

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import fenced_as_before, transaction_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.topic_names import INTERNAL_TOPICS
from headrace.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from headrace.transactions.add_partitions import Participation
from headrace.transactions.versions import version_of_add_partitions
from headrace.types import TopicPartition

_BY_BROKERS_SINCE: Final = 4
_FENCED_SINCE: Final = 2

#: The code of each partition, or one code for all of them.
Outcome: TypeAlias = Mapping[TopicPartition, ErrorCode] | ErrorCode


def handle(
    services: Services, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Every transaction by itself."""
    transactions = request.transactions
    if context.version < _BY_BROKERS_SINCE:
        transactions = [_of_producer(request)]
    outcomes: list[Outcome | asyncio.Future[Outcome]] = [
        _ask(services, context, transaction) for transaction in transactions
    ]
    if any(isinstance(outcome, asyncio.Future) for outcome in outcomes):
        return _later(context, transactions, outcomes)
    return _response(
        context, transactions, [each for each in outcomes if not isinstance(each, asyncio.Future)]
    )


async def _later(
    context: RequestContext,
    transactions: list[AddPartitionsToTxnTransaction],
    outcomes: "list[Outcome | asyncio.Future[Outcome]]",
) -> AddPartitionsToTxnResponse:
    settled = [await each if isinstance(each, asyncio.Future) else each for each in outcomes]
    return _response(context, transactions, settled)


def _of_producer(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _ask(
    services: Services, context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> "Outcome | asyncio.Future[Outcome]":
    partitions = frozenset(
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    )
    refused = _refused(services, context, partitions)
    if refused:
        rest = dict.fromkeys(partitions - refused.keys(), ErrorCode.OPERATION_NOT_ATTEMPTED)
        return refused | rest
    wanted = Participation(
        transaction.transactional_id, transaction.producer_id, transaction.producer_epoch, partitions
    )
    coordinator = transaction_coordinator(services)
    if transaction.verify_only:
        missing = coordinator.missing_partitions(wanted)
        return _outcome(missing) if missing.done() else asyncio.ensure_future(_await_outcome(missing))
    added = coordinator.add_partitions(wanted, version_of_add_partitions(context.version))
    return _outcome(added) if added.done() else asyncio.ensure_future(_await_outcome(added))


def _refused(
    services: Services, context: RequestContext, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Partitions that nobody may add: those that are not there and, for producers, the cluster's own."""
    cluster = services.replicas.cluster
    refused = {}
    for partition in partitions:
        if context.version < _BY_BROKERS_SINCE and partition.topic in INTERNAL_TOPICS:
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif not cluster.has_partition(*partition):
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


async def _await_outcome(
    future: "asyncio.Future[frozenset[TopicPartition]] | asyncio.Future[None]",
) -> Outcome:
    await asyncio.wait([future])
    return _outcome(future)


def _outcome(future: "asyncio.Future[frozenset[TopicPartition]] | asyncio.Future[None]") -> Outcome:
    error = future.exception()
    if error is None:
        return dict.fromkeys(future.result() or (), ErrorCode.TRANSACTION_ABORTABLE)
    return error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR


def _response(
    context: RequestContext, transactions: list[AddPartitionsToTxnTransaction], outcomes: list[Outcome]
) -> AddPartitionsToTxnResponse:
    results = [
        _topic_results(transaction.topics, outcome, context.version)
        for transaction, outcome in zip(transactions, outcomes, strict=True)
    ]
    if context.version < _BY_BROKERS_SINCE:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0])
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topics)
            for transaction, topics in zip(transactions, results, strict=True)
        ]
    )


def _topic_results(
    topics: list[AddPartitionsToTxnTopic], outcome: Outcome, version: int
) -> list[AddPartitionsToTxnTopicResult]:
    if isinstance(outcome, ErrorCode):
        outcome = fenced_as_before(outcome, version, _FENCED_SINCE)
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=outcome
                    if isinstance(outcome, ErrorCode)
                    else outcome.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def error_response(
    request: AddPartitionsToTxnRequest, version: int, error: KafkaError
) -> AddPartitionsToTxnResponse:
    """The reply to a request that failed."""
    if version >= _BY_BROKERS_SINCE:
        return AddPartitionsToTxnResponse(error_code=error.code)
    results = _topic_results(request.v3_and_below_topics, error.code, version)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


API = Api(
    key=24,
    name="AddPartitionsToTxn",
    versions=(0, 5),
    request=AddPartitionsToTxnRequest,
    response=AddPartitionsToTxnResponse,
    handle=handle,
    error_response=error_response,
)
