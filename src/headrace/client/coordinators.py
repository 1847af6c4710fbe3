"""Which broker coordinates a group or a transactional id, looked up and kept until it moves."""

from typing import TYPE_CHECKING, Any, Final

from headrace.client.error_codes import error_codes, has_code
from headrace.client.errors import BrokerRefused, ConnectionLost, Unreachable, UnsupportedByBroker
from headrace.client.retrying import Patience
from headrace.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from headrace.client.cluster import Cluster

_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_WAIT: Final = (*_MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
#: From this version on, one request may ask for several keys.
_SINCE_MANY_KEYS: Final = 4
_KINDS: Final = ("group", "transactional id", "share key")


class Coordinators:
    """Coordinators by kind and key."""

    __slots__ = ("_cluster", "_nodes")

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._nodes: dict[tuple[int, str], int] = {}

    async def send(
        self, key: str, request: Message, kind: int, patience: Patience, options: dict[str, Any]
    ) -> Any:
        """Send to the coordinator until it is one and ready, or time is up: then its last reply counts."""
        timeout_ms = options.pop("timeout_ms", None) or self._cluster.config.request_timeout_ms
        while True:
            reply = None
            try:
                node_id = await self._find(key, kind, patience)
                bound_ms = min(timeout_ms, patience.left_ms)
                reply = await self._cluster.send(node_id, request, timeout_ms=bound_ms, **options)
            except (Unreachable, ConnectionLost):
                self._nodes.pop((kind, key), None)
                if patience.is_over:
                    raise
            except BrokerRefused as refusal:
                if refusal.code not in _WAIT or patience.is_over:
                    raise
            if reply is not None:
                if not has_code(reply, *_WAIT) or patience.is_over:
                    return reply
                if any(code in _MOVED for code in error_codes(reply)):
                    self._nodes.pop((kind, key), None)
            await patience.pause()

    async def _find(self, key: str, kind: int, patience: Patience) -> int:
        known = self._nodes.get((kind, key))
        if known is not None:
            return known
        reply = await self._ask(key, kind, patience)
        found = reply.coordinators[0] if reply.coordinators else reply
        if found.error_code:
            raise BrokerRefused(
                found.error_code, found.error_message, f"coordinator of {_KINDS[kind]} {key!r}"
            )
        self._nodes[kind, key] = found.node_id
        return found.node_id

    async def _ask(self, key: str, kind: int, patience: Patience) -> FindCoordinatorResponse:
        reply: FindCoordinatorResponse
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            reply = await self._cluster.send_any(request, patience=patience, min_version=_SINCE_MANY_KEYS)
        except UnsupportedByBroker:
            request = FindCoordinatorRequest(key_type=kind, key=key)
            reply = await self._cluster.send_any(request, patience=patience, max_version=_SINCE_MANY_KEYS - 1)
        return reply
