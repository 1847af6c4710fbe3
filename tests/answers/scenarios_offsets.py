"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, InitProducerId and DescribeProducers."""

from headrace.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.records.builder import build_batch
from headrace.records.compression import Compression
from tests.answers.requests import (
    CONSUMER,
    T0,
    append,
    batch,
    create_topic,
    fetch,
    fetch_topic,
    list_offsets,
    new_producer,
    values,
    versions,
)
from tests.answers.session import Session

#: An id that no broker of a test gets to.
_FOREIGN_PRODUCER = 9_000_000_000
SPECIAL_TIMES = {
    "latest": -1,
    "earliest": -2,
    "of the highest time": -3,
    "earliest on this disk": -4,
    "last in remote storage": -5,
    "earliest to be uploaded": -6,
    "a time nobody knows": -7,
}


def times_of_every_version(session: Session) -> None:
    """Each special time in each version, on a log with records and one without."""
    create_topic(session, "l-every", 2)
    append(session, "l-every", batch("a", "b"), batch("c"))
    for version in versions(ListOffsetsRequest):
        for about, timestamp in SPECIAL_TIMES.items():
            request = list_offsets("l-every", {0: timestamp, 1: timestamp}, timeout_ms=10_000)
            session.ask(about, request, version)
        session.ask("by time", list_offsets("l-every", {0: T0 + 1, 1: T0}, timeout_ms=1000), version)


def by_time(session: Session) -> None:
    """The first record whose time is not before the one asked for, also within a batch, compressed or not."""
    create_topic(session, "l-times")
    append(
        session,
        "l-times",
        build_batch(values("a", "b", "c", timestamp=T0 + 100)),
        build_batch(values("d", timestamp=T0 + 50)),
        build_batch(values("e", "f", "g", timestamp=T0 + 300), compression=Compression.GZIP),
        build_batch(values("h", timestamp=T0 + 302)),
    )
    for after in (-1, 0, 100, 101, 102, 103, 300, 301, 302, 303, 5000):
        for version in (1, 7, 11):
            session.ask(f"{after} ms", list_offsets("l-times", {0: T0 + after}, timeout_ms=1000), version)
    session.ask("the year zero", list_offsets("l-times", {0: 0}), 7)
    session.ask("of the highest time", list_offsets("l-times", {0: -3}), 7)


def wrong_partitions(session: Session) -> None:
    """Partitions and topics that do not exist, are asked for twice, or with other epochs."""
    create_topic(session, "l-wrong")
    append(session, "l-wrong", batch("a"))
    for version in (1, 3, 4, 6, 10, 11):
        session.ask("an unknown partition", list_offsets("l-wrong", {4: -1}), version)
        session.ask("an unknown topic", list_offsets("l-nowhere", {0: -1}), version)
        session.ask("no topics", ListOffsetsRequest(replica_id=CONSUMER), version)
        twice = ListOffsetsTopic(
            name="l-wrong",
            partitions=[ListOffsetsPartition(partition_index=0, timestamp=time) for time in (-1, -2)],
        )
        session.ask("one twice", ListOffsetsRequest(replica_id=CONSUMER, topics=[twice]), version)
    for version in versions(ListOffsetsRequest, since=4):
        for epoch in (0, 3, -2):
            partition = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
            topics = [ListOffsetsTopic(name="l-wrong", partitions=[partition])]
            request = ListOffsetsRequest(replica_id=CONSUMER, topics=topics)
            session.ask(f"leader epoch {epoch}", request, version)


def asked_as_others(session: Session) -> None:
    """As a replica, as a debugging consumer, and with isolation."""
    create_topic(session, "l-others")
    append(session, "l-others", batch("a"))
    for replica in (-2, 1, 5):
        session.ask(f"replica {replica}", list_offsets("l-others", {0: -1}, replica_id=replica), 7)
    for version in versions(ListOffsetsRequest, since=2):
        session.ask("committed only", list_offsets("l-others", {0: -1}, isolation_level=1), version)
    session.ask("isolation level 2", list_offsets("l-others", {0: -1}, isolation_level=2), 7)
    session.ask("committed, by time", list_offsets("l-others", {0: T0}, isolation_level=1), 7)


def epochs_ends(session: Session) -> None:
    """OffsetForLeaderEpoch: the end of an epoch, and epochs that are not."""
    create_topic(session, "e-ends", 2)
    append(session, "e-ends", batch("a", "b"))
    for version in versions(OffsetForLeaderEpochRequest):
        for replica in (-1, -2, 5):
            for epoch in (0, 1, -1, -2):
                session.ask(f"epoch {epoch} for {replica}", _epoch_end("e-ends", 0, epoch, replica), version)
        session.ask("an empty log", _epoch_end("e-ends", 1, 0), version)
        session.ask("an unknown partition", _epoch_end("e-ends", 8, 0), version)
        session.ask("an unknown topic", _epoch_end("e-nowhere", 0, 0), version)
        session.ask("a leader epoch to come", _epoch_end("e-ends", 0, 0, current=4), version)
        session.ask("the leader epoch", _epoch_end("e-ends", 0, 0, current=0), version)
        session.ask("no topics", OffsetForLeaderEpochRequest(replica_id=-1), version)


def _epoch_end(
    topic: str, partition: int, epoch: int, replica: int = -1, current: int = -1
) -> OffsetForLeaderEpochRequest:
    asked = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, current_leader_epoch=current)
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    return OffsetForLeaderEpochRequest(replica_id=replica, topics=topics)


def deleted_records(session: Session) -> None:
    """DeleteRecords moves the start of the log, to the end at most, and never back."""
    create_topic(session, "d-records", 2)
    append(session, "d-records", batch("a", "b", "c"), batch("d", "e"), batch("f"), batch("g"))
    for version in versions(DeleteRecordsRequest):
        start = version + 1
        session.ask("some", _delete_records("d-records", {0: start}), version)
        session.ask("the same again", _delete_records("d-records", {0: start}), version)
        session.ask("fewer", _delete_records("d-records", {0: 0}), version)
        session.ask("more than there are", _delete_records("d-records", {0: 8}), version)
        session.ask("below none", _delete_records("d-records", {0: -2}), version)
        session.ask("an unknown partition", _delete_records("d-records", {5: 0}), version)
        session.ask("an unknown topic", _delete_records("d-nowhere", {0: 0}), version)
        session.ask("good and bad", _delete_records("d-records", {0: start, 1: 0, 7: 0}), version)
        session.ask("no topics", DeleteRecordsRequest(timeout_ms=1000), version)
        session.ask("from before the start", fetch(fetch_topic("d-records", {0: 0})), 12)
        session.ask("from the start", fetch(fetch_topic("d-records", {0: start})), 12)
        session.ask("the earliest", list_offsets("d-records", {0: -2}), 7)
        session.ask("by time", list_offsets("d-records", {0: T0}), 7)
    session.ask("all", _delete_records("d-records", {0: -1}), 2)
    session.ask("the earliest", list_offsets("d-records", {0: -2}), 7)
    session.ask("by time", list_offsets("d-records", {0: T0}), 7)


def deleted_records_of_compacted_topics(session: Session) -> None:
    """Records of a topic that is only compacted are not deleted."""
    create_topic(session, "d-compact", configs={"cleanup.policy": "compact"})
    append(session, "d-compact", build_batch(values("a", key="k")))
    create_topic(session, "d-both", configs={"cleanup.policy": "compact,delete"})
    append(session, "d-both", build_batch(values("a", key="k")))
    for topic in ("d-compact", "d-both"):
        session.ask(topic, _delete_records(topic, {0: 1}), 2)


def _delete_records(topic: str, offsets: dict[int, int]) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=at, offset=to) for at, to in offsets.items()]
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=10_000
    )


def producer_ids(session: Session) -> None:
    """InitProducerId without transactions: a new id each time, and requests that make no sense."""
    for version in versions(InitProducerIdRequest):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        session.ask("one", request, version)
        session.ask("another", request, version)
        no_time = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        session.ask("no time for transactions", no_time, version)
        empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000)
        session.ask("an empty transactional id", empty, version)
    for version in versions(InitProducerIdRequest, since=3):
        for producer, epoch in ((_FOREIGN_PRODUCER, 0), (_FOREIGN_PRODUCER, -1), (-1, 5)):
            known = InitProducerIdRequest(
                transactional_id=None,
                transaction_timeout_ms=60_000,
                producer_id=producer,
                producer_epoch=epoch,
            )
            session.ask(f"producer {producer} of epoch {epoch}", known, version)


def described_producers(session: Session) -> None:
    """DescribeProducers: who writes to a partition."""
    create_topic(session, "d-producers", 2)
    producer = new_producer(session)
    session.ask("nobody yet", _describe_producers("d-producers", 0, 1), 0)
    for epoch, count in ((0, 2), (3, 1)):
        for at in range(count):
            fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": at * 2}
            append(session, "d-producers", batch("a", "b", **fields))
        session.ask(f"in epoch {epoch}", _describe_producers("d-producers", 0, 1), 0)
    append(session, "d-producers", batch("a", producer_id=producer + 90, producer_epoch=1, base_sequence=0))
    session.ask("two producers", _describe_producers("d-producers", 0), 0)
    session.ask("an unknown partition", _describe_producers("d-producers", 6, 0), 0)
    session.ask("an unknown topic", _describe_producers("d-nowhere", 0), 0)
    session.ask("an invalid name", _describe_producers("a b", 0), 0)
    session.ask("no topics", DescribeProducersRequest(), 0)


def _describe_producers(topic: str, *partitions: int) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])


SCENARIOS = (
    times_of_every_version,
    by_time,
    wrong_partitions,
    asked_as_others,
    epochs_ends,
    deleted_records,
    deleted_records_of_compacted_topics,
    producer_ids,
    described_producers,
)
