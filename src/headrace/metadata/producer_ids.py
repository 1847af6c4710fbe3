"""Blocks of producer ids: each broker hands out its own block, and no id is given out twice."""

from typing import Final

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.brokers import check_broker_epoch
from headrace.metadata.control_view import ControlView
from headrace.metadata.decision import Decision
from headrace.protocol.disk_records.cluster_metadata import ProducerIdsRecord
from headrace.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_SIZE: Final = 1000
_LONG_MAX: Final = 2**63 - 1


def allocate_producer_ids(
    view: ControlView, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """Give a broker the next block."""
    check_broker_epoch(view, request.broker_id, request.broker_epoch)
    first = max(view.image.next_producer_id, 0)
    if first > _LONG_MAX - BLOCK_SIZE:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    reply = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision(reply, [(record, 0)])
