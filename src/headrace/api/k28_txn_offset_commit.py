"""TxnOffsetCommit: remember how far a group has got, once a transaction is committed.

The transaction's coordinator is asked before the group's: offsets of a transaction that it does not know
would never become visible, and would hold up everything behind them."""

import asyncio
from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.coordinator.hosted_shard import Producer
from headrace.coordinator.refusals import told
from headrace.errors import ErrorCode, KafkaError
from headrace.log.producer_entry import NO_VERIFICATION_GUARD, VerificationGuard
from headrace.metadata.auto_creation import GROUP_TOPIC
from headrace.metadata.image import MetadataImage
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from headrace.transactions.verification import Claim, Verdict, Verdicts, handling_of_commit
from headrace.types import NO_SEQUENCE, TopicPartition

_LOADING_SINCE: Final = 2


def handle(
    services: Services, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    """Commit what can be committed, and say of the rest why it can't."""
    results = Results(context.version)
    request.topics = [each for topic in request.topics if (each := _known(services.image, topic, results))]
    if not request.topics:
        return results.response()
    if not request.group_id:
        return results.failed(request, ErrorCode.INVALID_GROUP_ID)
    index = group_coordinator(services).runtime.partition_for(request.group_id)
    verdict = _verify(services, context, request, index)
    if isinstance(verdict, asyncio.Future):
        return _when_verified(services, context, request, results, index, verdict)
    return _commit(services, context, request, results, index, verdict)


def _known(
    image: MetadataImage, topic: TxnOffsetCommitRequestTopic, results: "Results"
) -> TxnOffsetCommitRequestTopic | None:
    """What there is of a topic; partitions that do not exist get their result here."""
    found = image.topics.get(topic.name)
    there: list[TxnOffsetCommitRequestPartition] = []
    for partition in topic.partitions:
        if found is None or partition.partition_index not in found.partitions:
            results.add(topic.name, partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            there.append(partition)
    return TxnOffsetCommitRequestTopic(name=topic.name, partitions=there) if there else None


def _verify(
    services: Services, context: RequestContext, request: TxnOffsetCommitRequest, index: int
) -> "Verdict | asyncio.Future[Verdicts]":
    """Whether the group's partition takes part in the transaction; it is added if the version says so."""
    if services.verifier is None:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    claim = Claim(request.transactional_id, request.producer_id, request.producer_epoch)
    name = TopicPartition(GROUP_TOPIC, index)
    verdicts = services.verifier.verify(
        claim, handling_of_commit(context.version), {name: NO_SEQUENCE}, patient=False
    )
    return verdicts.get(name, NO_VERIFICATION_GUARD) if isinstance(verdicts, dict) else verdicts


async def _when_verified(
    services: Services,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    results: "Results",
    index: int,
    verdicts: "asyncio.Future[Verdicts]",
) -> TxnOffsetCommitResponse:
    verdict = (await verdicts).get(TopicPartition(GROUP_TOPIC, index), NO_VERIFICATION_GUARD)
    reply = _commit(services, context, request, results, index, verdict)
    return reply if isinstance(reply, TxnOffsetCommitResponse) else await reply


def _commit(
    services: Services,
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    results: "Results",
    index: int,
    verdict: Verdict,
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    if not isinstance(verdict, VerificationGuard):
        return results.failed(request, told(KafkaError(verdict)).code)
    committed = group_coordinator(services).runtime.write(
        index,
        lambda shard, now_ms: shard.commits.commit_in_transaction(request, context.version, now_ms),
        refuse=lambda error: failure(request, error.code),
        producer=Producer(request.producer_id, request.producer_epoch, verdict),
    )
    return results.merged(committed.result()) if committed.done() else _later(results, committed)


async def _later(
    results: "Results", committed: "asyncio.Future[TxnOffsetCommitResponse]"
) -> TxnOffsetCommitResponse:
    return results.merged(await committed)


class Results:
    """The results of one request by topic, in codes that its version knows."""

    __slots__ = ("_topics", "_version")

    def __init__(self, version: int) -> None:
        self._version = version
        self._topics: dict[str, TxnOffsetCommitResponseTopic] = {}

    def add(self, topic: str, index: int, code: int) -> None:
        """The result of one partition."""
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < _LOADING_SINCE:
            # Producers of those times fail at the code that says so.
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        result = TxnOffsetCommitResponsePartition(partition_index=index, error_code=code)
        known = self._topics.setdefault(topic, TxnOffsetCommitResponseTopic(name=topic))
        known.partitions.append(result)

    def merged(self, reply: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        """The coordinator's results beside these."""
        for topic in reply.topics:
            for result in topic.partitions:
                self.add(topic.name, result.partition_index, result.error_code)
        return self.response()

    def failed(self, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
        """The same code for all partitions that are left."""
        return self.merged(failure(request, code))

    def response(self) -> TxnOffsetCommitResponse:
        """The reply with all results."""
        return TxnOffsetCommitResponse(topics=list(self._topics.values()))


def failure(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The same code for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def error_response(
    request: TxnOffsetCommitRequest, version: int, error: KafkaError
) -> TxnOffsetCommitResponse:
    """The reply to a request that failed."""
    return failure(request, error.code)


API = Api(
    key=28,
    name="TxnOffsetCommit",
    versions=(0, 5),
    request=TxnOffsetCommitRequest,
    response=TxnOffsetCommitResponse,
    handle=handle,
    error_response=error_response,
)
