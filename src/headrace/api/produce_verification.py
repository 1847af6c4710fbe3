"""Transactional batches of a produce request, put before the transaction's coordinator.

What it finds is a guard or a refusal for every partition that knows nothing of the transaction yet; others
need neither. The coordinator is asked before anything of the request is appended."""

import asyncio
from typing import Final, TypeAlias, cast

from headrace.api.context import RequestContext
from headrace.api.produce_form import ProducerOfBatch, check_form, is_transactional, producer_of
from headrace.api.services import Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.producer_entry import VerificationGuard
from headrace.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.transactions.verification import Claim, Handling, Verdicts, handling_of_produce
from headrace.types import TopicPartition

_BY_TOPIC_ID_SINCE: Final = 13
_PASSES: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
Findings: TypeAlias = dict[TopicPartition, "VerificationGuard | Unverified"]
NOTHING_TO_VERIFY: Final[Findings] = {}


class Unverified(KafkaError):
    """A batch that is not let in since its transaction could not be verified."""


def unverified(reason: ErrorCode, handling: Handling) -> Unverified:
    """The refusal in a code that producers of all times take the right way: most wait when replicas lack."""
    if reason is ErrorCode.INVALID_TXN_STATE:
        return Unverified(reason, "Partition was not added to the transaction")
    passes = reason in _PASSES or (reason is ErrorCode.CONCURRENT_TRANSACTIONS and not handling.adds)
    if not passes:
        return Unverified(reason)
    return Unverified(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        f"Unable to verify the partition has been added to the transaction. Underlying error: {reason.name}",
    )


def verify(
    services: Services, context: RequestContext, request: ProduceRequest
) -> "Findings | asyncio.Future[Verdicts]":
    """What is found about each partition, or what will be."""
    producers = _producers_by_partition(services, context, request)
    if not producers or request.transactional_id is None:
        return NOTHING_TO_VERIFY
    handling = handling_of_produce(context.version)
    if services.verifier is None:
        if not handling.adds and not services.config.flag("transaction.partition.verification.enable"):
            return NOTHING_TO_VERIFY
        return dict.fromkeys(producers, unverified(ErrorCode.COORDINATOR_NOT_AVAILABLE, handling))
    producer = next(iter(producers.values()))
    claim = Claim(request.transactional_id, producer.producer_id, producer.epoch)
    sequences = {name: each.base_sequence for name, each in producers.items()}
    verdicts = services.verifier.verify(claim, handling, sequences, patient=True)
    return findings_of(verdicts, context.version) if isinstance(verdicts, dict) else verdicts


def findings_of(verdicts: Verdicts, version: int) -> Findings:
    """Verdicts as a producer is told them."""
    handling = handling_of_produce(version)
    return {
        name: verdict if isinstance(verdict, VerificationGuard) else unverified(verdict, handling)
        for name, verdict in verdicts.items()
    }


def _producers_by_partition(
    services: Services, context: RequestContext, request: ProduceRequest
) -> dict[TopicPartition, ProducerOfBatch]:
    """Of each partition with a transactional batch that could be appended, who wrote it."""
    cluster = services.replicas.cluster
    found = {}
    for topic in request.topic_data:
        by_id = context.version >= _BY_TOPIC_ID_SINCE
        name = cluster.topic_name(topic.topic_id) if by_id else topic.name
        for data in topic.partition_data:
            records = cast("memoryview | None", data.records)
            if name is None or records is None or not cluster.has_partition(name, data.index):
                continue
            if is_transactional(records) and _is_well_formed(records, context.version):
                producer = producer_of(records)
                if producer.producer_id >= 0:
                    found[TopicPartition(name, data.index)] = producer
    return found


def _is_well_formed(records: memoryview, version: int) -> bool:
    try:
        check_form(records, version)
    except KafkaError:
        # Whoever appends says so; such a batch takes no part in the transaction.
        return False
    return True


def kept(request: ProduceRequest) -> ProduceRequest:
    """The request with records of its own: those that it came with are gone when others are read."""
    topics = [
        TopicProduceData(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_data=[
                PartitionProduceData(
                    index=data.index,
                    records=None
                    if data.records is None
                    else memoryview(bytearray(cast(memoryview, data.records))),
                )
                for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=topics,
    )
