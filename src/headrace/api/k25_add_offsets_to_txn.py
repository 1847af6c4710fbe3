"""AddOffsetsToTxn: let the offsets of a group take part in a transaction.

Producers of transaction version 2 do not send it: their offsets are added when they commit them."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import answered, fenced_as_before, transaction_coordinator
from headrace.api.group_answers import group_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.auto_creation import GROUP_TOPIC
from headrace.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from headrace.transactions.add_partitions import Participation
from headrace.transactions.versions import VERSION_0
from headrace.types import TopicPartition

_FENCED_SINCE: Final = 2


def handle(
    services: Services, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    """What takes part is the partition that has the state of the group."""
    index = group_coordinator(services).runtime.partition_for(request.group_id)
    wanted = Participation(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        frozenset({TopicPartition(GROUP_TOPIC, index)}),
    )
    return answered(
        transaction_coordinator(services).add_partitions(wanted, VERSION_0),
        lambda _: AddOffsetsToTxnResponse(),
        lambda code: _failure(fenced_as_before(code, context.version, _FENCED_SINCE)),
    )


def _failure(code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)


def error_response(
    request: AddOffsetsToTxnRequest, version: int, error: KafkaError
) -> AddOffsetsToTxnResponse:
    """The reply to a request that failed."""
    return _failure(error.code)


API = Api(
    key=25,
    name="AddOffsetsToTxn",
    versions=(0, 4),
    request=AddOffsetsToTxnRequest,
    response=AddOffsetsToTxnResponse,
    handle=handle,
    error_response=error_response,
)
