"""EndTxn: commit or abort a transaction. It is answered when the outcome is durable; markers follow."""

from collections.abc import Awaitable
from typing import Final

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import answered, fenced_as_before, transaction_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from headrace.transactions.end_transaction import Ending
from headrace.transactions.versions import version_of_end

_FENCED_SINCE: Final = 2


def handle(
    services: Services, context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Awaitable[EndTxnResponse]:
    """From version 5 on the reply has the id and epoch that the producer goes on with."""
    version = context.version
    session = transaction_coordinator(services).end(
        Ending(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            version_of_end(version),
        )
    )
    return answered(
        session,
        lambda given: EndTxnResponse(producer_id=given.producer_id, producer_epoch=given.epoch),
        lambda code: _failure(fenced_as_before(code, version, _FENCED_SINCE)),
    )


def _failure(code: ErrorCode) -> EndTxnResponse:
    return EndTxnResponse(error_code=code)


def error_response(request: EndTxnRequest, version: int, error: KafkaError) -> EndTxnResponse:
    """The reply to a request that failed."""
    return _failure(error.code)


API = Api(
    key=26,
    name="EndTxn",
    versions=(0, 5),
    request=EndTxnRequest,
    response=EndTxnResponse,
    handle=handle,
    error_response=error_response,
)
