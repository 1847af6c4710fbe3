"""WriteTxnMarkers: end transactions in partitions that this broker leads.

Coordinators ask for it, and administrators who abort a transaction that hangs."""

from collections.abc import Awaitable, Iterable
from typing import TypeAlias

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from headrace.transactions.markers import Marker, MarkerOutcomes
from headrace.types import TopicPartition

Pending: TypeAlias = MarkerOutcomes | Awaitable[MarkerOutcomes]


def handle(
    services: Services, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    """Every marker by itself; the reply tells of each partition."""
    if services.markers is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if any(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in request.markers):
        # No coordinator does that, and Kafka has no better answer.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    pending = [
        (marker.producer_id, services.markers.write(_marker_of(marker), _partitions_of(marker)))
        for marker in request.markers
    ]
    settled = [(producer_id, each) for producer_id, each in pending if isinstance(each, dict)]
    return _response(settled) if len(settled) == len(pending) else _later(pending)


async def _later(pending: list[tuple[int, Pending]]) -> WriteTxnMarkersResponse:
    return _response(
        [
            (producer_id, outcomes if isinstance(outcomes, dict) else await outcomes)
            for producer_id, outcomes in pending
        ]
    )


def _marker_of(marker: WritableTxnMarker) -> Marker:
    return Marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def _partitions_of(marker: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _response(settled: Iterable[tuple[int, MarkerOutcomes]]) -> WriteTxnMarkersResponse:
    by_producer: dict[int, MarkerOutcomes] = {}
    for producer_id, outcomes in settled:
        by_producer.setdefault(producer_id, {}).update(outcomes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(outcomes))
            for producer_id, outcomes in by_producer.items()
            if outcomes
        ]
    )


def _topics(outcomes: MarkerOutcomes) -> list[WritableTxnMarkerTopicResult]:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for (name, index), code in outcomes.items():
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return list(topics.values())


def error_response(
    request: WriteTxnMarkersRequest, version: int, error: KafkaError
) -> WriteTxnMarkersResponse:
    """The same error for every partition."""
    return _response(
        (marker.producer_id, dict.fromkeys(_partitions_of(marker), error.code)) for marker in request.markers
    )


API = Api(
    key=27,
    name="WriteTxnMarkers",
    versions=(1, 2),
    request=WriteTxnMarkersRequest,
    response=WriteTxnMarkersResponse,
    handle=handle,
    error_response=error_response,
)
