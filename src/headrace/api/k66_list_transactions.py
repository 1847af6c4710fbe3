"""ListTransactions: the transactional ids that this broker coordinates, by state, producer, age or name."""

from collections.abc import Callable

from headrace.api.context import RequestContext
from headrace.api.coordinator_answers import transaction_coordinator
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.states import STATES_BY_LABEL


def handle(
    services: Services, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """Filters that are given must all hold; a state that does not exist is told, and nothing is in it."""
    coordinator = transaction_coordinator(services)
    try:
        known = list(coordinator.all_transactions())
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    is_wanted = _filter_of(request, services.clock.now_ms())
    return ListTransactionsResponse(
        unknown_state_filters=sorted(set(request.state_filters) - STATES_BY_LABEL.keys()),
        transaction_states=[
            TransactionState(
                transactional_id=metadata.transactional_id,
                producer_id=metadata.producer_id,
                transaction_state=metadata.state.label,
            )
            for metadata in known
            if is_wanted(metadata)
        ],
    )


def _filter_of(request: ListTransactionsRequest, now_ms: int) -> Callable[[TransactionMetadata], bool]:
    producers = frozenset(request.producer_id_filters)
    states = frozenset(STATES_BY_LABEL.get(label) for label in request.state_filters)
    name_matches = _pattern_of(request.transactional_id_pattern)
    age_ms = request.duration_filter

    def is_wanted(metadata: TransactionMetadata) -> bool:
        if producers and metadata.producer_id not in producers:
            return False
        if states and metadata.state not in states:
            return False
        if age_ms >= 0 and now_ms - metadata.start_ms <= age_ms:
            return False
        return name_matches is None or name_matches(metadata.transactional_id)

    return is_wanted


def _pattern_of(pattern: str | None) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    # It takes a while to load, and hardly any request needs it.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{pattern}` is not a valid regular expression: {reason}.",
        ) from error
    return lambda name: compiled.fullmatch(name) is not None


def error_response(
    request: ListTransactionsRequest, version: int, error: KafkaError
) -> ListTransactionsResponse:
    """The reply to a request that failed."""
    return ListTransactionsResponse(error_code=error.code)


API = Api(
    key=66,
    name="ListTransactions",
    versions=(0, 2),
    request=ListTransactionsRequest,
    response=ListTransactionsResponse,
    handle=handle,
    error_response=error_response,
)
