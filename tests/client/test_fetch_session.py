"""The client's side of fetch sessions: only changes are told, and a session out of step is begun anew."""

from uuid import UUID

import pytest

from headrace.client.fetch_session import FetchSession, SessionRequest, Wanted
from headrace.errors import ErrorCode
from headrace.types import TopicPartition

TOPIC_ID = UUID(int=7)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def wanted(offset: int = 0, topic_id: UUID = TOPIC_ID, epoch: int = 0) -> Wanted:
    return Wanted(topic_id, offset, epoch, 1000)


def told(request: SessionRequest) -> dict[tuple[str, int], int]:
    return {
        (topic.topic, each.partition): each.fetch_offset
        for topic in request.topics
        for each in topic.partitions
    }


def forgotten(request: SessionRequest) -> list[tuple[str, int]]:
    return [(topic.topic, partition) for topic in request.forgotten for partition in topic.partitions]


def begun(*partitions: TopicPartition) -> FetchSession:
    """A session that a broker has accepted."""
    session = FetchSession()
    session.request(dict.fromkeys(partitions, wanted()), uses_ids=True)
    assert session.answered(0, 77)
    return session


def test_the_first_request_tells_everything() -> None:
    request = FetchSession().request({A0: wanted(5), A1: wanted(6)}, uses_ids=True)
    assert (request.session_id, request.epoch) == (0, 0)
    assert told(request) == {("a", 0): 5, ("a", 1): 6}
    assert request.topics[0].topic_id == TOPIC_ID
    assert request.topics[0].partitions[0].current_leader_epoch == 0
    assert not request.forgotten


def test_later_ones_tell_what_has_changed() -> None:
    session = begun(A0, A1)
    request = session.request({A0: wanted(3), A1: wanted()}, uses_ids=True)
    assert (request.session_id, request.epoch) == (77, 1)
    assert told(request) == {("a", 0): 3}
    assert session.answered(0, 77)
    request = session.request({A0: wanted(3), B0: wanted(1)}, uses_ids=True)
    assert request.epoch == 2
    assert told(request) == {("b", 0): 1}
    assert forgotten(request) == [("a", 1)]


def test_a_new_leader_epoch_is_a_change() -> None:
    session = begun(A0)
    assert told(session.request({A0: wanted(epoch=1)}, uses_ids=True)) == {("a", 0): 0}


def test_a_topic_of_another_id_replaces_the_old_one() -> None:
    session = begun(A0)
    request = session.request({A0: wanted(topic_id=UUID(int=8))}, uses_ids=True)
    assert told(request) == {("a", 0): 0}
    assert [topic.topic_id for topic in request.forgotten] == [TOPIC_ID]


def test_a_broker_without_room_for_sessions_is_told_everything_each_time() -> None:
    session = FetchSession()
    for _ in range(3):
        request = session.request({A0: wanted()}, uses_ids=True)
        assert (request.session_id, request.epoch) == (0, 0)
        assert told(request) == {("a", 0): 0}
        assert session.answered(0, 0)


def test_a_session_that_the_broker_has_forgotten_is_begun_without_an_id() -> None:
    session = begun(A0)
    session.request({A0: wanted(1)}, uses_ids=True)
    assert not session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    request = session.request({A0: wanted(1)}, uses_ids=True)
    assert (request.session_id, request.epoch, told(request)) == (0, 0, {("a", 0): 1})


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR]
)
def test_a_session_out_of_step_is_closed_by_its_id(code: ErrorCode) -> None:
    session = begun(A0)
    session.request({A0: wanted(1)}, uses_ids=True)
    assert not session.answered(code, 0)
    request = session.request({A0: wanted(1)}, uses_ids=True)
    assert (request.session_id, request.epoch, told(request)) == (77, 0, {("a", 0): 1})


def test_after_a_lost_reply_nobody_knows_the_epoch() -> None:
    session = begun(A0)
    session.request({A0: wanted(1)}, uses_ids=True)
    session.failed()
    request = session.request({A0: wanted(1)}, uses_ids=True)
    assert (request.session_id, request.epoch, told(request)) == (77, 0, {("a", 0): 1})


def test_names_and_ids_do_not_mix_in_a_session() -> None:
    session = begun(A0)
    request = session.request({A0: wanted(), B0: wanted()}, uses_ids=False)
    assert request.epoch == 0
    assert told(request) == {("a", 0): 0, ("b", 0): 0}


def test_epochs_wrap_around_to_one() -> None:
    session = begun(A0)
    session._epoch = 2**31 - 1
    assert session.request({A0: wanted()}, uses_ids=True).epoch == 2**31 - 1
    assert session.answered(0, 77)
    assert session.request({A0: wanted()}, uses_ids=True).epoch == 1
