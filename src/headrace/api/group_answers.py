"""The group coordinator as handlers see it: who asks, and whether there is one."""

import asyncio
from typing import TypeVar

from headrace.api.context import RequestContext
from headrace.api.services import Services
from headrace.errors import ErrorCode, KafkaError
from headrace.groups.client import GroupClient
from headrace.groups.coordinator import GroupCoordinator

T = TypeVar("T")


def group_coordinator(services: Services) -> GroupCoordinator:
    """The group coordinator of this node, once there is one."""
    if services.groups is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return services.groups


def client_of(context: RequestContext) -> GroupClient:
    """Whoever sent a request, as groups remember it."""
    return GroupClient(context.version, context.client_id, context.peer)


def at_once(future: "asyncio.Future[T]") -> "T | asyncio.Future[T]":
    """The reply itself if it is there: then nobody has to wait for the next round of the loop."""
    return future.result() if future.done() else future
