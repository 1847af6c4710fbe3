"""InitProducerId: an id and an epoch for an idempotent producer.

With a transactional id it is the transaction coordinator's to answer, which this node is not."""

from collections.abc import Awaitable

from headrace.api.context import RequestContext
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    """A fresh producer id; whatever id the producer had before, it does not matter without a transaction."""
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_PRODUCER_EPOCH
    if has_id != has_epoch:
        return failure(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return failure(refusal_of_transaction(services, request))
    producer_id = services.producer_ids.take()
    return _later(services) if producer_id is None else _given(producer_id)


def refusal_of_transaction(services: Services, request: InitProducerIdRequest) -> ErrorCode:
    """Why a transactional id is not taken."""
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.enable2_pc and not services.config.flag("transaction.two.phase.commit.enable"):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if request.keep_prepared_txn:
        return ErrorCode.UNSUPPORTED_VERSION
    timeout_max = services.config.integer("transaction.max.timeout.ms")
    if not 0 < request.transaction_timeout_ms <= timeout_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NOT_COORDINATOR


async def _later(services: Services) -> InitProducerIdResponse:
    return _given(await services.producer_ids.next_id())


def _given(producer_id: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


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
