"""From a coordinator's future to a reply: at once if it is done, otherwise when it is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace.api.services import Services
from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.coordinator import TransactionCoordinator

T = TypeVar("T")
R = TypeVar("R")


def transaction_coordinator(services: Services) -> TransactionCoordinator:
    """The transaction coordinator of this node, once there is one."""
    if services.transactions is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return services.transactions


def answered(
    future: "asyncio.Future[T]", on_result: Callable[[T], R], on_error: Callable[[ErrorCode], R]
) -> R | Awaitable[R]:
    """The reply to what a coordinator says or refuses."""
    if future.done():
        return _reply(future, on_result, on_error)
    return _later(future, on_result, on_error)


async def _later(
    future: "asyncio.Future[T]", on_result: Callable[[T], R], on_error: Callable[[ErrorCode], R]
) -> R:
    # What was begun goes on even if the client hangs up: only the answer is dropped then.
    await asyncio.wait([future])
    return _reply(future, on_result, on_error)


def _reply(future: "asyncio.Future[T]", on_result: Callable[[T], R], on_error: Callable[[ErrorCode], R]) -> R:
    error = future.exception()
    if error is None:
        return on_result(future.result())
    if isinstance(error, KafkaError):
        return on_error(error.code)
    raise error


def fenced_as_before(code: ErrorCode, version: int, told_since: int) -> ErrorCode:
    """Older producers know a fenced one by another code."""
    if code is ErrorCode.PRODUCER_FENCED and version < told_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
