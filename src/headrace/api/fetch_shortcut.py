"""The short way of fetches of one partition that are like earlier ones of their connection.

A consumer asks the same over and over: only the correlation id, the offset and the epoch of its session
change. So the bytes of such a request are remembered together with the partition they meant; one that has
the same bytes around these numbers needs no decoding, and its reply is written around the new ones. The log
is read in the same way as ever. With too little to tell, the request waits here as well.

It answers exactly as the way through the handler does, or not at all: whatever is unusual, and every
refusal, is left to the handler, or to what the handler would do on waking. Whoever makes the handler look at
more than the request, its session and the partition (rights, quotas) has to keep such requests from being
remembered, or to have `forget` called when the answer changes.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.api.fetch_form import ReplyForm, RequestForm, request_form, spelt
from headrace.api.fetch_reading import FetchBounds
from headrace.api.fetch_sessions import (
    BY_TOPIC_ID_SINCE,
    FINAL_EPOCH,
    NO_SESSION,
    FetchContext,
    FetchSession,
    FetchTarget,
)
from headrace.api.k01_fetch import CONSUMER, Fetch, bounds_of
from headrace.api.services import Services
from headrace.config.node import NodeConfig
from headrace.errors import KafkaError
from headrace.log.log_position import LogPosition
from headrace.log.log_reads import FileRange, Isolation
from headrace.log.partition_log import PartitionLog
from headrace.protocol.fields import RecordData
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from headrace.replication.parked_fetches import WaitedPartition, WaitingFetch
from headrace.replication.partition import Partition
from headrace.types import NO_LEADER_EPOCH, ZERO_UUID

if TYPE_CHECKING:
    from headrace.api.dispatch import Dispatch, Route
    from headrace.net.connection import ServerConnection
    from headrace.net.slots import Slot

#: Kinds of requests of one connection that are remembered: with and without news of the offset, say.
REMEMBERED_MAX: Final = 4
#: So many kinds in a row may be remembered for nothing; then the client is too fickle.
UNUSED_MAX: Final = 16


class Known:
    """One kind of request: whom it means, what it wants, and what the replies to it look like."""

    __slots__ = (
        "asked",
        "bounds",
        "client_id",
        "config",
        "form",
        "is_used",
        "leader_epoch",
        "max_wait_ms",
        "min_bytes",
        "nothing_new",
        "partition",
        "reply",
        "route",
        "session",
        "target",
    )

    def __init__(
        self,
        route: "Route",
        form: RequestForm,
        config: NodeConfig,
        client_id: str | None,
        request: FetchRequest,
        bounds: FetchBounds,
        partition: Partition,
        target: FetchTarget,
        session: FetchSession | None,
    ) -> None:
        session_id = NO_SESSION if session is None else session.id
        self.route = route
        self.form = form
        self.config = config
        self.client_id = client_id
        self.bounds = bounds
        self.min_bytes = min(request.min_bytes, bounds.max_bytes)
        self.max_wait_ms = request.max_wait_ms
        self.partition = partition
        self.session = session
        #: The session's own, or one that says what requests without a session ask for.
        self.target = target
        #: What the request says about the partition, if it names it.
        self.asked = request.topics[0].partitions[0] if request.topics else None
        self.leader_epoch = NO_LEADER_EPOCH
        if self.asked is not None:
            self.leader_epoch = max(self.asked.current_leader_epoch, NO_LEADER_EPOCH)
        self.reply = ReplyForm(
            route,
            session_id,
            target.topic,
            target.topic_id,
            target.index,
            is_committed=bounds.isolation is Isolation.COMMITTED,
        )
        self.nothing_new = spelt(route, FetchResponse(session_id=session_id))
        self.is_used = False

    def read(
        self, offset: int, max_bytes: int, leader_epoch: int, fetched_epoch: int
    ) -> tuple[PartitionLog, LogPosition, FileRange | None] | None:
        """What the handler would find, or None if it would not simply find records or their absence."""
        partition, bounds = self.partition, self.bounds
        if partition.is_offline:
            return None
        try:
            log = partition.log_for(leader_epoch, leader_only=bounds.leader_only)
            if fetched_epoch >= 0 and partition.diverging_epoch(log, fetched_epoch, offset) is not None:
                return None
            start, records, is_cut, aborted = log.read(
                offset, min(max_bytes, bounds.max_bytes), bounds.isolation, True
            )
        except KafkaError:
            return None
        return None if is_cut or aborted else (log, start, records)

    def parts(
        self, correlation_id: int, log: PartitionLog, records: FileRange | None
    ) -> Sequence[RecordData]:
        """The reply with what was found, as the session has it."""
        high_watermark, log_start = log.high_watermark, log.log_start_offset
        if self.session is not None:
            target = self.target
            if target.high_watermark != high_watermark or target.log_start_offset != log_start:
                target.high_watermark = high_watermark
                target.log_start_offset = log_start
            elif records is None:
                nothing = self.nothing_new
                return (nothing[:4] + correlation_id.to_bytes(4, "big", signed=True) + nothing[8:],)
        reply = self.reply
        after = reply.after
        if records is None:
            return (reply.head(correlation_id, high_watermark, log.last_stable_offset, log_start, 0) + after,)
        size = len(records)
        self.partition.counters.bytes_out += size
        head = reply.head(correlation_id, high_watermark, log.last_stable_offset, log_start, size)
        return (head, records, after) if after else (head, records)


class FetchMemory:
    """What is remembered of the fetches of one connection."""

    __slots__ = ("_dispatch", "_known", "_now_ns", "_services", "_unused")

    def __init__(self, dispatch: "Dispatch", now_ns: Callable[[], int]) -> None:
        self._dispatch = dispatch
        self._services = dispatch.services
        self._now_ns = now_ns
        self._known: dict[int, Known] = {}
        self._unused = 0

    def forget(self) -> None:
        """Have every request go through the handler once more."""
        self._known.clear()

    def answers(self, connection: "ServerConnection", frame: memoryview) -> bool:
        """Whether this was one of the usual requests: then it is done, and answered or waiting."""
        started_ns = self._now_ns()
        known = self._known.get(len(frame))
        if known is None:
            return False
        pieces = known.form.pieces(frame)
        if pieces[::2] != known.form.fixed or known.config is not self._services.config:
            return False
        target, session, asked = known.target, known.session, known.asked
        if session is not None and not self._is_next(session, pieces[3], target):
            return False
        if asked is None:
            offset, max_bytes, leader_epoch = target.fetch_offset, target.max_bytes, target.leader_epoch
            fetched_epoch = target.last_fetched_epoch
        else:
            offset, max_bytes, leader_epoch = pieces[-2], asked.partition_max_bytes, known.leader_epoch
            fetched_epoch = asked.last_fetched_epoch
        found = known.read(offset, max_bytes, leader_epoch, fetched_epoch)
        if found is None:
            return False
        log, start, records = found
        # From here on the request is taken.
        known.is_used = True
        connection.client_id = known.client_id
        known.partition.counters.fetch_requests += 1
        if session is not None:
            self._use(session, target, asked, offset)
        size = 0 if records is None else len(records)
        if size < known.min_bytes and known.max_wait_ms > 0:
            waited = WaitedPartition(known.partition, start, max_bytes, leader_epoch)
            waiting = QuickFetch(
                self._dispatch, known, waited, offset, fetched_epoch, pieces[1], frame, started_ns
            )
            if not waiting.is_satisfied():
                waiting.wait(connection.reserve())
                return True
        connection.answer_parts(known.parts(pieces[1], log, records))
        known.route.stats.add(self._now_ns() - started_ns, len(frame))
        return True

    def _is_next(self, session: FetchSession, epoch: int, target: FetchTarget) -> bool:
        """Whether a request with this epoch is the next of a session that has only this target."""
        targets = session.targets
        return (
            session.epoch == epoch
            and self._services.fetch_sessions.get(session.id) is session
            and len(targets) == 1
            and targets.get(target.key) is target
        )

    def _use(
        self, session: FetchSession, target: FetchTarget, asked: FetchPartition | None, offset: int
    ) -> None:
        if asked is not None:
            target.update(asked)
            target.fetch_offset = offset
        self._services.fetch_sessions.use(session, self._services.clock.now_ms())

    def learn(
        self, route: "Route", frame: memoryview, body_at: int, client_id: str | None, request: Any
    ) -> None:
        """Remember a request that the handler has taken, if it is of the usual kind."""
        if self._unused >= UNUSED_MAX or not _is_usual(request):
            return
        known = self._known_of(route, frame, body_at, client_id, request)
        if known is None:
            return
        replaced = self._known.get(len(frame))
        self._unused = 0 if replaced is not None and replaced.is_used else self._unused + 1
        if replaced is None and len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[len(frame)] = known

    def _known_of(
        self, route: "Route", frame: memoryview, body_at: int, client_id: str | None, request: FetchRequest
    ) -> Known | None:
        services, version = self._services, route.version
        bounds = bounds_of(services, request, version)
        by_topic_id = version >= BY_TOPIC_ID_SINCE
        session = None
        if request.session_epoch != FINAL_EPOCH:
            session = services.fetch_sessions.get(request.session_id)
            if session is None or session.by_topic_id != by_topic_id or len(session.targets) != 1:
                return None
            (target,) = session.targets.values()
            if request.topics and target.key != self._target_of(request, version).key:
                return None
        elif request.session_id == NO_SESSION and request.topics:
            target = self._target_of(request, version)
        else:
            return None
        partition = services.replicas.get(target.topic, target.index)
        if (
            bounds.replica_id != CONSUMER
            or bounds.max_bytes < 0
            or target.max_bytes < 0
            or partition is None
            or (target.topic_id != ZERO_UUID and target.topic_id != partition.topic_id)
        ):
            return None
        form = request_form(request, version, frame, body_at, in_session=session is not None)
        return Known(route, form, services.config, client_id, request, bounds, partition, target, session)

    def _target_of(self, request: FetchRequest, version: int) -> FetchTarget:
        topic = request.topics[0]
        if version < BY_TOPIC_ID_SINCE:
            return FetchTarget(topic.topic, ZERO_UUID, topic.partitions[0])
        hosted = self._services.replicas.topics_by_id.get(topic.topic_id)
        return FetchTarget("" if hosted is None else hosted.name, topic.topic_id, topic.partitions[0])


class QuickFetch(WaitingFetch):
    """A fetch of the short way that waits. What it finds on waking may be for the handler's way after all."""

    __slots__ = (
        "_correlation_id",
        "_dispatch",
        "_epoch",
        "_fetched_epoch",
        "_frame",
        "_known",
        "_offset",
        "_slot",
        "_started_ns",
    )

    def __init__(
        self,
        dispatch: "Dispatch",
        known: Known,
        waited: WaitedPartition,
        offset: int,
        fetched_epoch: int,
        correlation_id: int,
        frame: memoryview,
        started_ns: int,
    ) -> None:
        super().__init__([waited], known.bounds.isolation, known.min_bytes)
        self._dispatch = dispatch
        self._known = known
        self._offset = offset
        self._fetched_epoch = fetched_epoch
        self._epoch = FINAL_EPOCH if known.session is None else known.session.epoch
        self._correlation_id = correlation_id
        self._frame = bytes(frame)
        self._started_ns = started_ns
        self._slot: Slot | None = None

    def wait(self, slot: "Slot") -> None:
        """Answer in this slot when there is enough, or when time is up."""
        self._slot = slot
        slot.on_close = self._give_up
        self._hang(asyncio.get_running_loop(), self._known.max_wait_ms)

    def _give_up(self) -> None:
        """The client is gone."""
        self._slot = None
        self._leave()

    def _finish(self) -> None:
        slot, self._slot = self._slot, None
        if slot is None:
            return
        self._leave()
        slot.on_close = None
        connection = slot.connection
        # Somebody waits for nothing else: the reply leaves in this very turn of the loop.
        connection.hurry()
        try:
            self._answer(slot)
        finally:
            connection.flush_due()

    def _answer(self, slot: "Slot") -> None:
        known, waited = self._known, self._waited[0]
        session, found = known.session, None
        if session is None or session.epoch == self._epoch:
            found = known.read(self._offset, waited.max_bytes, waited.leader_epoch, self._fetched_epoch)
        if found is None or (
            session is not None and session.targets.get(known.target.key) is not known.target
        ):
            self._dispatch.resume(
                known.route, slot, self._frame, self._correlation_id, self._started_ns, self._as_handler
            )
            return
        log, _, records = found
        slot.complete(known.parts(self._correlation_id, log, records))
        route = known.route
        route.stats.add(self._dispatch.now_ns() - self._started_ns, len(self._frame))

    def _as_handler(self, services: Services, listener: str) -> FetchResponse:
        """What the handler's way would answer on waking."""
        known = self._known
        target, session = known.target, known.session
        if session is None:
            if known.asked is not None:
                target = FetchTarget(target.topic, target.topic_id, known.asked)
            target.fetch_offset = self._offset
        context = FetchContext(
            services.fetch_sessions,
            {target.key: target},
            by_topic_id=known.route.version >= BY_TOPIC_ID_SINCE,
            session=session,
            epoch=self._epoch,
        )
        fetch = Fetch(services, listener, known.bounds, known.min_bytes, context, [target])
        return fetch.answer(fetch.read(again=True))


def _is_usual(request: FetchRequest) -> bool:
    """Whether a request is about one partition, or about none because nothing has changed in its session."""
    topics = request.topics
    if request.forgotten_topics_data or len(topics) > 1:
        return False
    return len(topics[0].partitions) == 1 if topics else request.session_epoch > 0
