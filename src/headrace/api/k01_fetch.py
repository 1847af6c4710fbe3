"""Fetch: hand out stretches of logs, as file ranges, to consumers and followers.

The whole response keeps to the client's and the broker's limits, except that a first batch larger than they
are is handed out all the same. With less than the client's minimum to tell, the request waits."""

import asyncio
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from headrace.api.context import RequestContext
from headrace.api.fetch_reading import FetchBounds, Reading, failure
from headrace.api.fetch_sessions import (
    BY_TOPIC_ID_SINCE,
    FetchContext,
    FetchTarget,
    TargetKey,
    open_context,
)
from headrace.api.leader_hints import LeaderHints
from headrace.api.services import Api, Services
from headrace.errors import ErrorCode, KafkaError
from headrace.log.log_reads import Isolation
from headrace.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from headrace.replication.parked_fetches import ParkedFetch
from headrace.types import ZERO_UUID

_REPLICA_STATE_SINCE: Final = 15
_FROM_FOLLOWERS_SINCE: Final = 11
_READ_COMMITTED: Final = 1
CONSUMER: Final = -1


def handle(
    services: Services, context: RequestContext, request: FetchRequest
) -> "FetchResponse | asyncio.Future[FetchResponse]":
    """Read once, and answer or wait."""
    fetch = open_fetch(services, context, request)
    reading = fetch.read()
    if reading is None or request.max_wait_ms <= 0 or reading.must_answer or reading.size >= fetch.min_bytes:
        return fetch.answer(reading)
    parked = ParkedFetch(
        reading.waited, fetch.bounds.isolation, fetch.min_bytes, lambda: fetch.answer(fetch.read(again=True))
    )
    if parked.is_satisfied():
        return fetch.answer(fetch.read(again=True))
    return parked.park(request.max_wait_ms)


class Fetch:
    """One request in its session; it may be read more than once. `wanted` are partitions known to exist."""

    __slots__ = ("_erroneous", "_hints", "_services", "_session", "_wanted", "bounds", "min_bytes")

    def __init__(
        self,
        services: Services,
        listener: str,
        bounds: FetchBounds,
        min_bytes: int,
        session: FetchContext,
        wanted: Iterable[FetchTarget] = (),
    ) -> None:
        self.min_bytes = min_bytes
        self.bounds = bounds
        self._services = services
        self._hints = LeaderHints(services.replicas, listener)
        self._session = session
        self._wanted = list(wanted)
        self._erroneous: list[tuple[FetchTarget, PartitionData]] = []

    def sort_out(self) -> None:
        """Find out which of the session's partitions exist."""
        for target in self._session.targets.values():
            self._sort_out(target)

    def _sort_out(self, target: FetchTarget) -> None:
        """Topics and partitions that do not exist are told at the end, and keep no others from waiting."""
        if self._session.by_topic_id and not target.topic:
            target.topic = _name_of(self._services, target.topic_id)
            if not target.topic:
                self._erroneous.append((target, failure(target.index, ErrorCode.UNKNOWN_TOPIC_ID)))
                return
        replicas = self._services.replicas
        if replicas.get(target.topic, target.index) is None and not replicas.cluster.has_partition(
            target.topic, target.index
        ):
            self._erroneous.append((target, failure(target.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
            return
        self._wanted.append(target)

    def read(self, *, again: bool = False) -> Reading | None:
        """Read all partitions that there are; None if there are none."""
        if not self._wanted:
            return None
        now_ms = self._services.clock.now_ms()
        reading = Reading(
            self._services.replicas,
            self.bounds,
            self._hints,
            now_ms,
            only_news=self._session.session is not None,
            is_repeated=again,
        )
        for target in self._wanted:
            reading.read(target)
        return reading

    def answer(self, reading: Reading | None) -> FetchResponse:
        """The response to what was read, as the session has it."""
        results = self._erroneous
        if reading is not None:
            reading.count_as_sent()
            results = reading.results + results
        error, session_id, told = self._session.settle(results, self._services.clock.now_ms())
        return FetchResponse(
            error_code=error,
            session_id=session_id,
            responses=_by_topic(told),
            node_endpoints=self._endpoints(),
        )

    def _endpoints(self) -> list[NodeEndpoint]:
        """Addresses of leaders; brokers know them from the metadata."""
        if self.bounds.is_follower:
            return []
        return [NodeEndpoint(**node) for node in self._hints.endpoints()]


def open_fetch(services: Services, context: RequestContext, request: FetchRequest) -> Fetch:
    """A request with its session and its partitions."""
    bounds = bounds_of(services, request, context.version)
    session = _open_session(services, request, context.version, is_follower=bounds.is_follower)
    fetch = Fetch(services, context.listener, bounds, min(request.min_bytes, bounds.max_bytes), session)
    fetch.sort_out()
    return fetch


def bounds_of(services: Services, request: FetchRequest, version: int) -> FetchBounds:
    """What holds for all partitions of a request."""
    replica_id = request.replica_id
    if version >= _REPLICA_STATE_SINCE:
        replica_id = request.replica_state.replica_id
    return FetchBounds(
        version,
        replica_id,
        min(request.max_bytes, services.config.integer("fetch.max.bytes")),
        isolation_of(replica_id, request.isolation_level),
        replica_id >= 0 or (replica_id == CONSUMER and version < _FROM_FOLLOWERS_SINCE),
    )


def _open_session(
    services: Services, request: FetchRequest, version: int, *, is_follower: bool
) -> FetchContext:
    wanted: dict[TargetKey, FetchTarget] = {}
    by_id = version >= BY_TOPIC_ID_SINCE
    for topic in request.topics:
        name = _name_of(services, topic.topic_id) if by_id else topic.topic
        topic_id = topic.topic_id if by_id else ZERO_UUID
        for partition in topic.partitions:
            target = FetchTarget(name, topic_id, partition)
            wanted[target.key] = target
    forgotten: list[TargetKey] = [
        (topic.topic_id if by_id else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    return open_context(
        services.fetch_sessions,
        request,
        version,
        wanted,
        forgotten,
        is_follower=is_follower,
        now_ms=services.clock.now_ms(),
    )


def _name_of(services: Services, topic_id: UUID) -> str:
    """Empty for a topic id that nobody knows."""
    hosted = services.replicas.topics_by_id.get(topic_id)
    if hosted is not None:
        return hosted.name
    return services.replicas.cluster.topic_name(topic_id) or ""


def isolation_of(replica_id: int, isolation_level: int) -> Isolation:
    """How far a reader sees; only consumers are held to what is replicated."""
    if not 0 <= isolation_level <= _READ_COMMITTED:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if replica_id != CONSUMER:
        return Isolation.LOG_END
    return Isolation.COMMITTED if isolation_level == _READ_COMMITTED else Isolation.HIGH_WATERMARK


def _by_topic(results: list[tuple[FetchTarget, PartitionData]]) -> list[FetchableTopicResponse]:
    """Neighbours of the same topic together; the order stays."""
    topics: list[FetchableTopicResponse] = []
    current: UUID | str | None = None
    for target, data in results:
        if target.key[0] != current:
            current = target.key[0]
            topics.append(
                FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id, partitions=[data])
            )
        else:
            topics[-1].partitions.append(data)
    return topics


def error_response(request: FetchRequest, version: int, error: KafkaError) -> FetchResponse:
    """An error of the whole; older clients look for it in each partition."""
    topics = []
    if version < BY_TOPIC_ID_SINCE:
        for topic in request.topics:
            results = [failure(partition.partition, error.code) for partition in topic.partitions]
            topics.append(FetchableTopicResponse(topic=topic.topic, partitions=results))
    return FetchResponse(error_code=error.code, session_id=request.session_id, responses=topics)


API = Api(
    key=1,
    name="Fetch",
    versions=(4, 18),
    request=FetchRequest,
    response=FetchResponse,
    handle=handle,
    error_response=error_response,
)
