"""InitProducerId: an id and an epoch for an idempotent or a transactional producer.

With a transactional id it is the transaction coordinator's to answer: it shuts out producers that had the id
before, and ends what they left open."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import answered, fenced_as_before, transaction_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.transactions.init_producer_id import NewSession, ProducerIdAndEpoch
from headrace.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_FENCED_SINCE: Final = 4


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """Without a transactional id, a fresh producer id: whatever the producer had before does not matter."""
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        return failure(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        producer_id = services.producer_ids.take()
        return _later(services) if producer_id is None else _given(producer_id)
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None
    session = transaction_coordinator(services).begin_session(
        NewSession(request.transactional_id, request.transaction_timeout_ms, expected),
        two_phase_commit=request.enable2_pc,
        keep_prepared=request.keep_prepared_txn,
    )
    return answered(
        session,
        lambda given: _given(given.producer_id, given.epoch),
        lambda code: failure(fenced_as_before(code, context.version, _FENCED_SINCE)),
    )


async def _later(services: Services) -> InitProducerIdResponse:
    return _given(await services.producer_ids.next_id())


def _given(producer_id: int, epoch: int = 0) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)


def failure(code: ErrorCode) -> InitProducerIdResponse:
    """The reply without an id."""
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def error_response(request: InitProducerIdRequest, version: int, error: KafkaError) -> InitProducerIdResponse:
    """The reply to a request that failed."""
    return failure(error.code)


API = Api(
    key=22,
    name="InitProducerId",
    versions=(0, 5),
    request=InitProducerIdRequest,
    response=InitProducerIdResponse,
    handle=handle,
    error_response=error_response,
)
