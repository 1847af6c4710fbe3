"""Fetch: every version, limits, positions, epochs, isolation, waiting and sessions."""

from uuid import UUID

from headrace.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from headrace.protocol.messages.produce import ProduceRequest
from headrace.types import ZERO_UUID
from tests.answers.requests import (
    UNKNOWN_ID,
    append,
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_topic,
    new_producer,
    produce,
    versions,
)
from tests.answers.session import Session

LATEST = FetchRequest.VERSION_MAX
BY_NAME = 12
SESSIONS_SINCE = 7


def every_version(session: Session) -> None:
    """From the start, the end and beyond, and what does not exist, by name up to 12 and by id since 13."""
    topic_id = create_topic(session, "f-every", 2)
    append(session, "f-every", batch("a", "b"), batch("c"))
    for version in versions(FetchRequest):
        session.ask("from the start", fetch(fetch_topic("f-every", {0: 0, 1: 0}, topic_id)), version)
        session.ask("from the end", fetch(fetch_topic("f-every", {0: 3}, topic_id)), version)
        session.ask("beyond the end", fetch(fetch_topic("f-every", {0: 4}, topic_id)), version)
        session.ask("an unknown partition", fetch(fetch_topic("f-every", {7: 0}, topic_id)), version)
        session.ask("an unknown topic", fetch(fetch_topic("f-nowhere", {0: 0}, UNKNOWN_ID)), version)
        session.ask("no partitions", fetch(FetchTopic(topic="f-every", topic_id=topic_id)), version)
    session.ask("the zero id", fetch(fetch_topic("", {0: 0}, ZERO_UUID)), LATEST)


def positions(session: Session) -> None:
    """A fetch from within a batch gives the whole batch; negative offsets are out of range."""
    create_topic(session, "f-positions")
    append(session, "f-positions", batch("a", "b", "c"), batch("d", "e"))
    for offset in (1, 2, 3, 4, 5, 6, -1, -2, 2**62):
        session.ask(f"from {offset}", fetch(fetch_topic("f-positions", {0: offset})), BY_NAME)


def limits(session: Session) -> None:
    """The first batch comes whole whatever the limits; after it they hold."""
    create_topic(session, "f-limits", 2)
    for partition in (0, 1):
        append(session, "f-limits", batch("a" * 100), batch("b" * 100), batch("c"), partition=partition)
    topic = "f-limits"
    both = {0: 0, 1: 0}
    cases = {
        "no bytes at all": fetch(fetch_topic(topic, both), max_bytes=0),
        "one byte": fetch(fetch_topic(topic, both), max_bytes=1),
        "less than two batches": fetch(fetch_topic(topic, both), max_bytes=300),
        "two batches and part of one": fetch(fetch_topic(topic, both), max_bytes=400),
        "negative bytes": fetch(fetch_topic(topic, both), max_bytes=-1),
        "no bytes of a partition": fetch(fetch_topic(topic, both, max_bytes=0)),
        "one byte of a partition": fetch(fetch_topic(topic, both, max_bytes=1)),
        "one and a half batches": fetch(fetch_topic(topic, both, max_bytes=260)),
        "two batches exactly": fetch(fetch_topic(topic, both, max_bytes=344)),
        "negative bytes of a partition": fetch(fetch_topic(topic, both, max_bytes=-1)),
    }
    for about, request in cases.items():
        for version in (4, BY_NAME):
            session.ask(about, request, version)


def leader_epochs(session: Session) -> None:
    """The epochs a client knows are checked: too old, too new, and where logs part."""
    topic_id = create_topic(session, "f-epochs")
    append(session, "f-epochs", batch("a", "b"))
    for version in versions(FetchRequest, since=9):
        current = fetch_topic("f-epochs", {0: 0}, topic_id, current_leader_epoch=0)
        session.ask("the right epoch", fetch(current), version)
        newer = fetch_topic("f-epochs", {0: 0}, topic_id, current_leader_epoch=5)
        session.ask("an epoch to come", fetch(newer), version)
        older = fetch_topic("f-epochs", {0: 0}, topic_id, current_leader_epoch=-2)
        session.ask("a negative epoch", fetch(older), version)
    for version in versions(FetchRequest, since=12):
        for epoch in (0, 1, -2):
            last = fetch_topic("f-epochs", {0: 2}, topic_id, last_fetched_epoch=epoch)
            session.ask(f"last fetched of epoch {epoch}", fetch(last), version)
        beyond = fetch_topic("f-epochs", {0: 9}, topic_id, last_fetched_epoch=0)
        session.ask("beyond the end of the epoch", fetch(beyond), version)


def isolation(session: Session) -> None:
    """Committed reads of what knows no transactions, and a level that does not exist."""
    topic_id = create_topic(session, "f-isolation")
    producer = new_producer(session)
    numbered = batch("a", producer_id=producer, producer_epoch=0, base_sequence=0)
    append(session, "f-isolation", batch("a"), numbered)
    for version in versions(FetchRequest):
        request = fetch(fetch_topic("f-isolation", {0: 0}, topic_id), isolation_level=1)
        session.ask("committed only", request, version)
    strange = fetch(fetch_topic("f-isolation", {0: 0}), isolation_level=2)
    session.ask("level 2", strange, BY_NAME)


def replicas(session: Session) -> None:
    """Fetches that say they come from a replica, and the special ids of debugging consumers."""
    topic_id = create_topic(session, "f-replicas")
    append(session, "f-replicas", batch("a"))
    topic = fetch_topic("f-replicas", {0: 0}, topic_id)
    for replica in (-2, -3, 1, 5):
        for version in (4, BY_NAME):
            session.ask(f"replica {replica}", fetch(topic, replica_id=replica), version)
    for replica, epoch in ((5, 0), (5, -1), (-2, -1)):
        state = ReplicaState(replica_id=replica, replica_epoch=epoch)
        session.ask(f"replica {replica} of epoch {epoch}", fetch(topic, replica_state=state), LATEST)


def waiting(session: Session) -> None:
    """A fetch waits for enough bytes or its time, and an append wakes it."""
    topic_id = create_topic(session, "f-waiting", 2)
    topic = fetch_topic("f-waiting", {0: 0, 1: 0}, topic_id)
    session.ask("nothing in time", fetch(topic, max_wait_ms=50), LATEST)
    session.ask("nothing wanted", fetch(topic, max_wait_ms=60_000, min_bytes=0), LATEST)
    sent = session.begin("woken by an append", fetch(topic, max_wait_ms=50_000), LATEST, "waiting")
    session.ask("append", produce("f-waiting", batch("a")), 12)
    session.finish(sent)
    more = fetch(topic, max_wait_ms=50_000, min_bytes=100)
    sent = session.begin("woken by the second append", more, LATEST, "waiting")
    session.ask("append more", produce("f-waiting", batch("b"), partition=1), 12)
    session.finish(sent)
    session.ask("never enough", fetch(topic, max_wait_ms=50, min_bytes=10_000), LATEST)
    nowhere = fetch_topic("f-nowhere", {0: 0}, UNKNOWN_ID)
    session.ask("what is unknown waits", fetch(topic, nowhere, max_wait_ms=50, min_bytes=10_000), LATEST)
    beyond = fetch_topic("f-waiting", {0: 90, 1: 0}, topic_id)
    session.ask("an error does not wait", fetch(beyond, max_wait_ms=20_000, min_bytes=10_000), LATEST)


def sessions(session: Session) -> None:
    """A session tells only what changed; its epochs count up from one, and 0 begins another."""
    topic_id = create_topic(session, "f-sessions", 3)
    append(session, "f-sessions", batch("a"))
    for version in (SESSIONS_SINCE, BY_NAME, 13, LATEST):
        everything = fetch_topic("f-sessions", {0: 0, 1: 0}, topic_id)
        begun = session.ask("begin", fetch(everything, session_epoch=0), version)
        ids = {"session_id": begun.session_id}
        session.ask("nothing new", fetch(**ids, session_epoch=1), version)
        moved = fetch_topic("f-sessions", {0: 1}, topic_id)
        session.ask("move on", fetch(moved, **ids, session_epoch=2), version)
        session.ask("nothing new", fetch(**ids, session_epoch=3), version)
        session.ask("a wrong epoch", fetch(**ids, session_epoch=9), version)
        back = fetch_topic("f-sessions", {0: 0, 2: 0}, topic_id)
        session.ask("back and one more", fetch(back, **ids, session_epoch=4), version)
        forgotten = [ForgottenTopic(topic="f-sessions", topic_id=topic_id, partitions=[0, 1])]
        session.ask("forget two", fetch(**ids, session_epoch=5, forgotten_topics_data=forgotten), version)
        session.ask("nothing new", fetch(**ids, session_epoch=6), version)
        session.ask("end", fetch(**ids, session_epoch=-1), version)
        session.ask("after the end", fetch(**ids, session_epoch=7), version)


def odd_sessions(session: Session) -> None:
    """Sessions that do not exist or cannot be begun."""
    topic_id = create_topic(session, "f-odd")
    append(session, "f-odd", batch("a"))
    for version in (SESSIONS_SINCE, BY_NAME, LATEST):
        topic = fetch_topic("f-odd", {0: 0}, topic_id)
        session.ask("an unknown session", fetch(topic, session_id=77, session_epoch=1), version)
        session.ask("no session amid epochs", fetch(topic, session_epoch=3), version)
        session.ask("an unknown session to end", fetch(topic, session_id=77, session_epoch=-1), version)
        session.ask("an unknown session to begin", fetch(topic, session_id=77, session_epoch=0), version)
        session.ask("a session of nothing", fetch(session_epoch=0), version)
        session.ask("no session, nothing asked", fetch(), version)
        wrong = fetch_topic("f-nowhere", {0: 0}, UNKNOWN_ID)
        session.ask("a session of what does not exist", fetch(wrong, session_epoch=0), version)


def errors_in_sessions(session: Session) -> None:
    """An error is told at every turn until it is forgotten."""
    topic_id = create_topic(session, "f-session-errors")
    append(session, "f-session-errors", batch("a"))
    for version in (BY_NAME, LATEST):
        topics = _beyond_and_missing(topic_id)
        begun = session.ask("begin with errors", fetch(*topics, session_epoch=0), version)
        ids = {"session_id": begun.session_id}
        session.ask("errors again", fetch(**ids, session_epoch=1), version)
        right = fetch_topic("f-session-errors", {0: 0}, topic_id)
        session.ask("one is mended", fetch(right, **ids, session_epoch=2), version)
        session.ask("one is left", fetch(**ids, session_epoch=3), version)


def _beyond_and_missing(topic_id: UUID) -> list[FetchTopic]:
    partitions = [
        FetchPartition(partition=0, fetch_offset=50, partition_max_bytes=1000),
        FetchPartition(partition=4, fetch_offset=0, partition_max_bytes=1000),
    ]
    return [FetchTopic(topic="f-session-errors", topic_id=topic_id, partitions=partitions)]


def names_and_ids_in_sessions(session: Session) -> None:
    """A session of names cannot go on with ids, nor the other way round."""
    topic_id = create_topic(session, "f-mixed")
    append(session, "f-mixed", batch("a"))
    topic = fetch_topic("f-mixed", {0: 0}, topic_id)
    begun = session.ask("begin by name", fetch(topic, session_epoch=0), BY_NAME)
    onward = fetch(topic, session_id=begun.session_id, session_epoch=1)
    session.ask("go on by id", onward, 13)
    begun = session.ask("begin by id", fetch(topic, session_epoch=0), 13)
    onward = fetch(topic, session_id=begun.session_id, session_epoch=1)
    session.ask("go on by name", onward, BY_NAME)


def recreated_topics(session: Session) -> None:
    """A topic made anew has another id; a session of the old one does not see it."""
    old_id = create_topic(session, "f-again")
    append(session, "f-again", batch("old"))
    begun = session.ask("begin", fetch(fetch_topic("f-again", {0: 0}, old_id), session_epoch=0), LATEST)
    delete_topic(session, "f-again")
    new_id = create_topic(session, "f-again")
    append(session, "f-again", batch("new"))
    ids = {"session_id": begun.session_id}
    session.ask("the old id in its session", fetch(**ids, session_epoch=1), LATEST)
    added = fetch_topic("f-again", {0: 0}, new_id)
    session.ask("the new id beside it", fetch(added, **ids, session_epoch=2), LATEST)
    replaced = [ForgottenTopic(topic_id=old_id, partitions=[0])]
    session.ask(
        "the new id in its place", fetch(**ids, session_epoch=3, forgotten_topics_data=replaced), LATEST
    )
    session.ask("the old id alone", fetch(fetch_topic("", {0: 0}, old_id)), LATEST)
    session.ask("append to the old id", produce("f-again", batch("x"), topic_id=old_id), 13)
    session.ask("the new id alone", fetch(fetch_topic("", {0: 0}, new_id)), LATEST)


def repeated_partitions(session: Session) -> None:
    """A partition asked for twice in one request."""
    topic_id = create_topic(session, "f-twice")
    append(session, "f-twice", batch("a"), batch("b"))
    topics = [fetch_topic("f-twice", {0: 0}, topic_id), fetch_topic("f-twice", {0: 1}, topic_id)]
    for version in (BY_NAME, LATEST):
        session.ask("twice", fetch(*topics), version)
        session.ask("twice in a session", fetch(*topics, session_epoch=0), version)


def pipelined(session: Session) -> None:
    """Replies come in the order of the requests, though a later one could be answered first."""
    topic_id = create_topic(session, "f-pipeline", 2)
    append(session, "f-pipeline", batch("a"))
    slow = fetch(fetch_topic("f-pipeline", {0: 1}, topic_id), max_wait_ms=50)
    quick = fetch(fetch_topic("f-pipeline", {0: 0}, topic_id))
    sent = [session.begin("slow", slow, LATEST), session.begin("quick", quick, LATEST)]
    elsewhere = produce("f-pipeline", batch("b"), topic_id=topic_id, partition=1)
    sent.append(session.begin("append", elsewhere, ProduceRequest.VERSION_MAX))
    for each in sent:
        session.finish(each)


SCENARIOS = (
    every_version,
    positions,
    limits,
    leader_epochs,
    isolation,
    replicas,
    waiting,
    sessions,
    odd_sessions,
    errors_in_sessions,
    names_and_ids_in_sessions,
    recreated_topics,
    repeated_partitions,
    pipelined,
)
