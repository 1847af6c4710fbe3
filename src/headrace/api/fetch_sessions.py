"""Fetch sessions: what a client fetches and was last told, so that requests and replies carry changes only.

The rules are KIP-227's as Kafka 4.3.1 has them: who may push whom out of a full cache, which epoch comes
next, and which error says what has gone wrong. A session is keyed by topic id from version 13 of the request
on, so a topic that was made anew is never taken for the old one."""

from collections.abc import Iterable
from typing import Final, TypeAlias
from uuid import UUID

from headrace.errors import ErrorCode
from headrace.ports import Entropy
from headrace.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from headrace.types import NO_LEADER_EPOCH, ZERO_UUID

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
BY_TOPIC_ID_SINCE: Final = 13

#: A topic's id, or its name in older versions; and the partition's index.
TargetKey: TypeAlias = tuple[UUID | str, int]


class FetchTarget:
    """One partition that is fetched: what the client asks for, and what it was told last."""

    __slots__ = (
        "fetch_offset",
        "follower_log_start",
        "high_watermark",
        "index",
        "key",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: UUID, request: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = request.partition
        self.key: TargetKey = (topic_id if topic_id != ZERO_UUID else topic, request.partition)
        self.high_watermark = -1
        self.log_start_offset = -1
        self.update(request)

    def update(self, request: FetchPartition) -> None:
        """Take over what the client asks for now."""
        self.fetch_offset = request.fetch_offset
        self.max_bytes = request.partition_max_bytes
        self.leader_epoch = max(request.current_leader_epoch, NO_LEADER_EPOCH)
        self.last_fetched_epoch = request.last_fetched_epoch
        self.follower_log_start = request.log_start_offset

    def is_news(self, data: PartitionData) -> bool:
        """Whether a result has to be told; what was told is remembered."""
        is_news = bool(data.records) or data.preferred_read_replica >= 0 or data.diverging_epoch.epoch >= 0
        if self.high_watermark != data.high_watermark or self.log_start_offset != data.log_start_offset:
            self.remember(data)
            is_news = True
        if data.error_code:
            # When the error goes away, the partition has to be told again.
            self.high_watermark = -1
            is_news = True
        return is_news

    def remember(self, data: PartitionData) -> None:
        """Note what a client is told."""
        self.high_watermark = data.high_watermark
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """One client's session."""

    __slots__ = (
        "by_topic_id",
        "created_ms",
        "epoch",
        "id",
        "is_mature",
        "is_privileged",
        "size",
        "targets",
        "used_ms",
    )

    def __init__(
        self,
        session_id: int,
        targets: dict[TargetKey, FetchTarget],
        *,
        by_topic_id: bool,
        is_privileged: bool,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.targets = targets
        self.by_topic_id = by_topic_id
        self.is_privileged = is_privileged
        self.created_ms = self.used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.size = len(targets)
        self.is_mature = False

    def update(self, wanted: Iterable[FetchTarget], forgotten: Iterable[TargetKey]) -> None:
        """Take over what an incremental request adds, changes and drops."""
        for target in wanted:
            known = self.targets.get(target.key)
            if known is None:
                self.targets[target.key] = target
            else:
                known.fetch_offset = target.fetch_offset
                known.max_bytes = target.max_bytes
                known.leader_epoch = target.leader_epoch
                known.last_fetched_epoch = target.last_fetched_epoch
                known.follower_log_start = target.follower_log_start
        for key in forgotten:
            self.targets.pop(key, None)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """How dear a session is; the least dear is pushed out first."""
        return self.is_privileged, self.size, self.id


class FetchSessions:
    """The bounded cache of sessions. `evictions` is for metrics."""

    __slots__ = ("_entropy", "_sessions", "evictions", "slots")

    def __init__(self, entropy: Entropy, slots: int) -> None:
        self._entropy = entropy
        self._sessions: dict[int, FetchSession] = {}
        self.slots = slots
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions in all sessions."""
        return sum(session.size for session in self._sessions.values())

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """A session was used: it goes to the end of the line, and its size counts anew."""
        self._sessions.pop(session.id, None)
        self._sessions[session.id] = session
        session.used_ms = now_ms
        session.size = len(session.targets)
        session.is_mature = now_ms - session.created_ms > EVICTION_MS

    def use(self, session: FetchSession, now_ms: int) -> None:
        """A request of a session came: from now on the next one is expected."""
        self.touch(session, now_ms)
        session.epoch = next_epoch(session.epoch)

    def create(
        self,
        targets: dict[TargetKey, FetchTarget],
        *,
        by_topic_id: bool,
        is_privileged: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """A session, unless the cache is full of better ones."""
        if len(self._sessions) >= self.slots and not self._evict(is_privileged, len(targets), now_ms):
            return None
        session = FetchSession(
            self._new_id(), targets, by_topic_id=by_topic_id, is_privileged=is_privileged, now_ms=now_ms
        )
        self.touch(session, now_ms)
        return session

    def _new_id(self) -> int:
        while True:
            session_id = int.from_bytes(self._entropy.random_bytes(4)) & EPOCH_MAX
            if session_id != NO_SESSION and session_id not in self._sessions:
                return session_id

    def _evict(self, is_privileged: bool, size: int, now_ms: int) -> bool:
        """Push out a session that is stale, or worth less than the one that wants in."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        victim: FetchSession | None = oldest
        if now_ms - oldest.used_ms <= EVICTION_MS:
            evictable = (
                session
                for session in self._sessions.values()
                if session.is_mature or (is_privileged and not session.is_privileged)
            )
            victim = min(evictable, key=lambda session: session.rank, default=None)
            if victim is None or (is_privileged, size, 0) < victim.rank:
                return False
        if victim is not None:
            self.remove(victim.id)
            self.evictions += 1
        return True


def next_epoch(epoch: int) -> int:
    """The epoch that follows; after the last one comes 1, since 0 begins a session."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == EPOCH_MAX else epoch + 1


class FetchContext:
    """What a request is about once its session is known: the targets, and how to tell the results.

    `epoch` is the one that the session's next request will have. With an `error` there are no targets."""

    __slots__ = (
        "_epoch",
        "_is_privileged",
        "_sessions",
        "_wants_session",
        "by_topic_id",
        "error",
        "session",
        "targets",
    )

    def __init__(
        self,
        sessions: FetchSessions,
        targets: dict[TargetKey, FetchTarget],
        *,
        by_topic_id: bool,
        session: FetchSession | None = None,
        wants_session: bool = False,
        is_privileged: bool = False,
        error: ErrorCode = ErrorCode.NONE,
        epoch: int = FINAL_EPOCH,
    ) -> None:
        self._sessions = sessions
        self._wants_session = wants_session
        self._is_privileged = is_privileged
        self._epoch = epoch
        self.targets = targets
        self.by_topic_id = by_topic_id
        self.session = session
        self.error = error

    def settle(
        self, results: list[tuple[FetchTarget, PartitionData]], now_ms: int
    ) -> tuple[ErrorCode, int, list[tuple[FetchTarget, PartitionData]]]:
        """Error, session id and what to tell."""
        session = self.session
        if session is None:
            return self.error, self._begin(results, now_ms), results
        if session.epoch != self._epoch:
            # The same client has sent another request in the same session meanwhile.
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, []
        return ErrorCode.NONE, session.id, self._news(session, results)

    def _begin(self, results: list[tuple[FetchTarget, PartitionData]], now_ms: int) -> int:
        if not self._wants_session:
            return NO_SESSION
        for target, data in results:
            target.remember(data)
        session = self._sessions.create(
            {target.key: target for target, _ in results},
            by_topic_id=self.by_topic_id,
            is_privileged=self._is_privileged,
            now_ms=now_ms,
        )
        return NO_SESSION if session is None else session.id

    def _news(
        self, session: FetchSession, results: list[tuple[FetchTarget, PartitionData]]
    ) -> list[tuple[FetchTarget, PartitionData]]:
        """Only what has changed; partitions that had data go to the end, so that all get their turn."""
        news = []
        for target, data in results:
            if target.key in session.targets and target.is_news(data):
                news.append((target, data))
                if data.records:
                    session.targets[target.key] = session.targets.pop(target.key)
        return news


def open_context(
    sessions: FetchSessions,
    request: FetchRequest,
    version: int,
    wanted: dict[TargetKey, FetchTarget],
    forgotten: list[TargetKey],
    *,
    is_follower: bool,
    now_ms: int,
) -> FetchContext:
    """Find, begin or end the session that a request belongs to."""
    by_topic_id = version >= BY_TOPIC_ID_SINCE
    epoch = request.session_epoch
    if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.remove(request.session_id)
        return FetchContext(
            sessions,
            wanted,
            by_topic_id=by_topic_id,
            wants_session=epoch == INITIAL_EPOCH,
            is_privileged=is_follower,
        )
    session = sessions.get(request.session_id)
    error = _session_error(session, epoch, by_topic_id)
    if session is None or error:
        return FetchContext(sessions, {}, by_topic_id=by_topic_id, error=error)
    session.update(wanted.values(), forgotten)
    if not session.targets:
        sessions.remove(session.id)
        return FetchContext(sessions, wanted, by_topic_id=by_topic_id)
    sessions.use(session, now_ms)
    return FetchContext(
        sessions, session.targets, by_topic_id=by_topic_id, session=session, epoch=session.epoch
    )


def _session_error(session: FetchSession | None, epoch: int, by_topic_id: bool) -> ErrorCode:
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.by_topic_id != by_topic_id:
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    return ErrorCode.NONE
