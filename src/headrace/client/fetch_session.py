"""The client's side of a fetch session (KIP-227): a broker remembers what is read, and is told only changes.

Nothing is sent here. A session that the broker does not know, or that got out of step, is begun anew.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import ErrorCode
from headrace.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from headrace.types import TopicPartition

#: The last version that names topics; those after it know them by id.
LAST_VERSION_BY_NAME: Final = 12
NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What is wanted of one partition."""

    topic_id: UUID
    offset: int
    leader_epoch: int
    bytes_max: int


class SessionRequest(NamedTuple):
    """The part of a fetch request that a session decides on."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSession:
    """A session with one broker. `request` says what to send, then `answered` or `failed` what came of it."""

    __slots__ = ("_epoch", "_known", "_session_id", "_uses_ids")

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}
        self._uses_ids: bool | None = None

    @property
    def partitions(self) -> Mapping[TopicPartition, Wanted]:
        """What the broker reads for this session."""
        return self._known

    def request(self, wanted: Mapping[TopicPartition, Wanted], *, uses_ids: bool) -> SessionRequest:
        """What to ask for so that the broker reads exactly what is wanted."""
        if self._uses_ids is not None and self._uses_ids != uses_ids:
            # A session knows its topics by id or by name, never by both.
            self._begin_anew()
        self._uses_ids = uses_ids
        if self._epoch == FIRST_EPOCH:
            self._known = dict(wanted)
            return SessionRequest(self._session_id, FIRST_EPOCH, _topics(wanted), [])
        changed = {each: new for each, new in wanted.items() if self._known.get(each) != new}
        gone = {
            each: old
            for each, old in self._known.items()
            if each not in wanted or wanted[each].topic_id != old.topic_id
        }
        self._known = dict(wanted)
        return SessionRequest(self._session_id, self._epoch, _topics(changed), _forgotten(gone))

    def answered(self, error_code: int, session_id: int) -> bool:
        """Take note of a reply's outcome. Whether its partitions may be looked at."""
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = NO_SESSION
            self._begin_anew()
            return False
        if error_code:
            self._begin_anew()
            return False
        if session_id == NO_SESSION:
            # The broker has no room for a session: everything is asked for each time.
            self._session_id = NO_SESSION
            self._begin_anew()
        else:
            self._session_id = session_id
            self._epoch = self._epoch + 1 if self._epoch < _EPOCH_MAX else 1
        return True

    def failed(self) -> None:
        """No reply came: the broker may or may not have gone on to the next epoch."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        """The next request asks for everything; if the broker still has the session, it closes it."""
        self._epoch = FIRST_EPOCH
        self._known = {}


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    topics: dict[tuple[str, UUID], list[FetchPartition]] = defaultdict(list)
    for each, want in wanted.items():
        topics[each.topic, want.topic_id].append(
            FetchPartition(
                partition=each.partition,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.offset,
                partition_max_bytes=want.bytes_max,
            )
        )
    return [
        FetchTopic(topic=name, topic_id=topic_id, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]


def _forgotten(gone: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, UUID], list[int]] = defaultdict(list)
    for each, want in gone.items():
        topics[each.topic, want.topic_id].append(each.partition)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=partitions)
        for (name, topic_id), partitions in topics.items()
    ]
