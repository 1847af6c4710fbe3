"""Transactions that go wrong, and some that do not: sessions, partitions, ends, markers, offsets, batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.messages.end_txn import EndTxnRequest
from headrace.protocol.messages.find_coordinator import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id import InitProducerIdRequest
from headrace.protocol.messages.list_transactions import ListTransactionsRequest
from headrace.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.answers.requests import (
    batch,
    create_topic,
    delete_topic,
    fetch,
    fetch_topic,
    list_offsets,
    produce,
    versions,
)
from tests.answers.session import Session

KEYS = (24, 25, 26, 27, 28, 65, 66)
_GROUP, _TRANSACTION = 0, 1
READ_COMMITTED = 1
NONE, STALE = (-1, -1), (4711, 3)
COMMIT, ABORT = True, False
Owner = tuple[int, int]
Names = Mapping[str, Sequence[int]]


def init(
    transactional_id: str | None, timeout_ms: int = 60_000, owner: Owner = NONE
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=owner[0],
        producer_epoch=owner[1],
    )


def topics_of(names: Names) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=name, partitions=list(each)) for name, each in names.items()]


def add(transactional_id: str, owner: Owner, names: Names) -> AddPartitionsToTxnRequest:
    """As a producer of the old kind asks."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=owner[0],
        v3_and_below_producer_epoch=owner[1],
        v3_and_below_topics=topics_of(names),
    )


def part(transactional_id: str, owner: Owner, names: Names, verify: bool) -> AddPartitionsToTxnTransaction:
    """One transaction of those that a broker asks about."""
    return AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=owner[0],
        producer_epoch=owner[1],
        verify_only=verify,
        topics=topics_of(names),
    )


def end(transactional_id: str, owner: Owner, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id, producer_id=owner[0], producer_epoch=owner[1], committed=commit
    )


def marker(owner: Owner, names: Names, commit: bool, coordinator_epoch: int = 0, version: int = 0) -> Any:
    return WritableTxnMarker(
        producer_id=owner[0],
        producer_epoch=owner[1],
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=list(each)) for name, each in names.items()
        ],
    )


def mark(*markers: WritableTxnMarker) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=list(markers))


def await_coordinators(session: Session) -> None:
    """Have the coordinators' topics made, and wait until they are served."""
    for kind in (_TRANSACTION, _GROUP):
        question = FindCoordinatorRequest(key="any", key_type=kind)
        session.settle(question, 1, lambda reply: reply.error_code == 0)
    session.settle(init("first"), 4, lambda reply: reply.error_code == 0)


def begin(session: Session, transactional_id: str) -> Owner:
    """A session that nothing is written down of."""
    reply = session.settle(init(transactional_id), 4, lambda reply: reply.error_code == 0)
    session.masks.identity("producer", reply.producer_id)
    return reply.producer_id, reply.producer_epoch


def await_state(session: Session, transactional_id: str, state: str) -> None:
    """Wait until a transaction is where it should be: markers come after the reply."""
    question = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    session.settle(question, 0, lambda reply: reply.transaction_states[0].transaction_state == state)


def written(owner: Owner, sequence: int, *texts: str) -> bytes:
    return batch(
        *texts, producer_id=owner[0], producer_epoch=owner[1], base_sequence=sequence, transactional=True
    )


def sessions(session: Session) -> None:
    """InitProducerId with ids, epochs and time-outs that do not fit."""
    await_coordinators(session)
    for version in versions(InitProducerIdRequest):
        session.ask("the first session", init(f"s-{version}"), version)
        session.ask("the second session", init(f"s-{version}"), version)
    for timeout_ms in (0, -1, 900_001, 2**31 - 1):
        session.ask(f"a time-out of {timeout_ms} ms", init("s-timeout", timeout_ms), 4)
    session.ask("the longest time-out", init("s-timeout", 900_000), 4)
    session.ask("no name", init(""), 4)
    session.ask("no name and no time-out", init("", 0), 4)
    session.ask("no transaction, no time-out", init(None, 0), 4)
    session.ask("an id without an epoch", init("s-half", owner=(7, -1)), 4)
    session.ask("an epoch without an id", init("s-half", owner=(-1, 7)), 4)
    session.ask("a stranger of an unknown name", init("s-stranger", owner=STALE), 4)
    for version in (3, 4, 5):
        name = f"s-going-on-{version}"
        producer_id, epoch = begin(session, name)
        session.ask("it goes on", init(name, owner=(producer_id, epoch)), version)
        session.ask("it asks again", init(name, owner=(producer_id, epoch)), version)
        session.ask("an epoch before", init(name, owner=(producer_id, epoch - 1)), version)
        session.ask("an epoch to come", init(name, owner=(producer_id, epoch + 5)), version)
        session.ask("another producer", init(name, owner=STALE), version)
        session.ask("anew", init(name), version)
        session.ask("it asks again too late", init(name, owner=(producer_id, epoch)), version)


def partitions_by_producers(session: Session) -> None:
    """AddPartitionsToTxn as producers of the old kind send it."""
    await_coordinators(session)
    create_topic(session, "t-one", 2)
    create_topic(session, "t-two")
    one: Names = {"t-one": [0]}
    for version in (0, 1, 2, 3):
        name = f"a-{version}"
        producer_id, epoch = owner = begin(session, name)
        session.ask("an unknown name", add("nobody", owner, one), version)
        session.ask("no name", add("", owner, one), version)
        session.ask("another producer", add(name, STALE, one), version)
        session.ask("an epoch before", add(name, (producer_id, epoch - 1), one), version)
        session.ask("an epoch to come", add(name, (producer_id, epoch + 1), one), version)
        session.ask("no such topic", add(name, owner, {"absent": [0]}), version)
        session.ask("one that is there", add(name, owner, {"absent": [0], "t-one": [0, 1]}), version)
        session.ask("no such partition", add(name, owner, {"t-one": [0, 7]}), version)
        session.ask("a negative partition", add(name, owner, {"t-one": [-1]}), version)
        session.ask("a topic of brokers", add(name, owner, {"__consumer_offsets": [0]}), version)
        both: Names = {"__transaction_state": [0], "t-two": [0]}
        session.ask("a topic of brokers and another", add(name, owner, both), version)
        session.ask("nothing of this is in it", DescribeTransactionsRequest(transactional_ids=[name]), 0)
        session.ask("two topics", add(name, owner, {"t-one": [0], "t-two": [0]}), version)
        session.ask("once more", add(name, owner, one), version)
        session.ask("what is in it", DescribeTransactionsRequest(transactional_ids=[name]), 0)
        session.ask("it is ended", end(name, owner, ABORT), 3)
        await_state(session, name, "CompleteAbort")
    producer_id, epoch = owner = begin(session, "a-nothing")
    session.ask("no partition at all", add("a-nothing", owner, {}), 3)
    session.ask("what has begun", DescribeTransactionsRequest(transactional_ids=["a-nothing"]), 0)


def partitions_by_brokers(session: Session) -> None:
    """AddPartitionsToTxn as brokers send it: several transactions, added to or verified."""
    await_coordinators(session)
    create_topic(session, "t-one", 2)
    one: Names = {"t-one": [0]}
    for version in (4, 5):
        first, second = f"b-{version}-1", f"b-{version}-2"
        owner, other = begin(session, first), begin(session, second)
        for verify in (True, False):
            word = "verified" if verify else "added"
            transactions = [
                part(first, owner, one, verify),
                part(second, (other[0], other[1] + 1), one, verify),
                part("nobody", STALE, one, verify),
                part("", STALE, one, verify),
            ]
            request = AddPartitionsToTxnRequest(transactions=transactions)
            session.ask(f"several are {word}", request, version)
        wrong = part(second, owner, {"t-one": [0], "absent": [1]}, False)
        session.ask("a topic is absent", AddPartitionsToTxnRequest(transactions=[wrong]), version)
        more = part(first, owner, {"t-one": [0, 1]}, True)
        session.ask("one of two is in it", AddPartitionsToTxnRequest(transactions=[more]), version)
        offsets = part(first, owner, {"__consumer_offsets": [0]}, False)
        session.ask("a topic of brokers", AddPartitionsToTxnRequest(transactions=[offsets]), version)


def ends(session: Session) -> None:
    """EndTxn of strangers, in states where nothing can end, and once more."""
    await_coordinators(session)
    create_topic(session, "t-one")
    for version in versions(EndTxnRequest):
        name = f"e-{version}"
        producer_id, epoch = owner = begin(session, name)
        for commit in (COMMIT, ABORT):
            session.ask("an unknown name", end("nobody", owner, commit), version)
            session.ask("no name", end("", owner, commit), version)
            session.ask("another producer", end(name, STALE, commit), version)
            session.ask("an epoch before", end(name, (producer_id, epoch - 1), commit), version)
            session.ask("an epoch to come", end(name, (producer_id, epoch + 1), commit), version)
        session.ask("nothing to commit", end(name, owner, COMMIT), version)
        reply = session.ask("nothing to abort", end(name, owner, ABORT), version)
        if version >= 5:
            await_state(session, name, "CompleteAbort")
            owner = reply.producer_id, reply.producer_epoch
        for commit, state in ((COMMIT, "CompleteCommit"), (ABORT, "CompleteAbort")):
            session.ask("a partition", add(name, owner, {"t-one": [0]}), 3)
            reply = session.ask("its end", end(name, owner, commit), version)
            await_state(session, name, state)
            session.ask("its end again", end(name, owner, commit), version)
            session.ask("the other end", end(name, owner, not commit), version)
            if version >= 5:
                owner = reply.producer_id, reply.producer_epoch
                session.ask("a commit of nothing", end(name, owner, COMMIT), version)
                session.ask("an epoch long past", end(name, (owner[0], owner[1] - 2), commit), version)
        session.ask("what is left", DescribeTransactionsRequest(transactional_ids=[name]), 0)


def fencing(session: Session) -> None:
    """A second producer of a name ends what the first has begun."""
    await_coordinators(session)
    create_topic(session, "t-one")
    for version in (1, 4):
        name = f"f-{version}"
        owner = begin(session, name)
        session.ask("a partition", add(name, owner, {"t-one": [0]}), 3)
        session.ask("the second comes", init(name), version)
        await_state(session, name, "CompleteAbort")
        reply = session.ask("it comes again", init(name), version)
        second = reply.producer_id, reply.producer_epoch
        session.ask("the first adds", add(name, owner, {"t-one": [0]}), 1)
        session.ask("the first adds, newer", add(name, owner, {"t-one": [0]}), 3)
        session.ask("the first ends", end(name, owner, COMMIT), 1)
        session.ask("the first ends, newer", end(name, owner, COMMIT), 3)
        session.ask("the first ends, newest", end(name, owner, COMMIT), 5)
        session.ask("the first goes on", init(name, owner=owner), 3)
        session.ask("the first goes on, newer", init(name, owner=owner), 4)
        session.ask("the second adds", add(name, second, {"t-one": [0]}), 3)
        session.ask("the second ends", end(name, second, COMMIT), 3)
        await_state(session, name, "CompleteCommit")


def batches_of_producers(session: Session) -> None:
    """Produce within transactions that are not there, not this one, or in disorder."""
    await_coordinators(session)
    create_topic(session, "t-batches")
    request = produce("t-batches", written(STALE, 0, "a"), transactional_id="nobody")
    for version in (3, 8, 10, 11, 12):
        session.ask("an unknown name", request, version)
    for version in (3, 10, 11, 12):
        name = f"p-{version}"
        producer_id, epoch = owner = begin(session, name)

        def ask(
            about: str, who: Owner, sequence: int, named: str = name, through: int = version, text: str = "a"
        ) -> None:
            data = written(who, sequence, text)
            session.ask(about, produce("t-batches", data, transactional_id=named), through)

        ask("another producer", STALE, 0)
        ask("an epoch to come", (producer_id, epoch + 1), 0)
        ask("no name", owner, 0, named="")
        if version < 12:
            ask("a partition that was not added", owner, 0)
            session.ask("it is added", add(name, owner, {"t-batches": [0]}), 3)
        if version >= 12:
            ask("it begins in the middle", owner, 5)
        ask("the first batch", owner, 0)
        ask("the first batch again", owner, 0)
        ask("a gap", owner, 7)
        ask("the second batch", owner, 1)
        ask("an epoch before", (producer_id, epoch - 1), 2)
        session.ask("nothing is stable", list_offsets("t-batches", {0: -1}, isolation_level=1), 7)
        reply = session.ask("the end", end(name, owner, COMMIT), 5 if version >= 12 else 3)
        await_state(session, name, "CompleteCommit")
        ask("a late batch", owner, 2)
        if version >= 12:
            owner = reply.producer_id, reply.producer_epoch
            ask("a wrong start of the next", owner, 3)
            ask("the start of the next", owner, 0)
            session.ask("it is aborted", end(name, owner, ABORT), 5)
            await_state(session, name, "CompleteAbort")
    session.ask("all", fetch(fetch_topic("t-batches", {0: 0})), 12)
    session.ask("the committed", fetch(fetch_topic("t-batches", {0: 0}), isolation_level=READ_COMMITTED), 12)
    for isolation in (0, 1):
        session.ask("the end", list_offsets("t-batches", {0: -1}, isolation_level=isolation), 7)


def markers(session: Session) -> None:
    """WriteTxnMarkers for partitions that are absent, and from epochs that are over."""
    await_coordinators(session)
    create_topic(session, "t-marked", 2)
    for version in versions(WriteTxnMarkersRequest):
        name = f"m-{version}"
        begin(session, name)
        producer_id, epoch = owner = begin(session, name)
        partition: Names = {"t-marked": [0]}
        session.ask("nothing", mark(), version)
        session.ask("no partition", mark(marker(owner, {}, COMMIT)), version)
        absent: Names = {"absent": [0], "t-marked": [9]}
        session.ask("absent partitions", mark(marker(owner, absent, COMMIT)), version)
        some: Names = {"absent": [0], "t-marked": [1]}
        session.ask("one that is there", mark(marker(owner, some, COMMIT)), version)
        session.ask("a partition", add(name, owner, partition), 3)
        data = produce("t-marked", written(owner, 0, "a"), transactional_id=name)
        session.ask("its batch", data, 11)
        session.ask("no producer", mark(marker((-1, 0), partition, ABORT)), version)
        session.ask("no epoch", mark(marker((producer_id, -1), partition, ABORT)), version)
        old = marker((producer_id, epoch - 1), partition, ABORT)
        session.ask("an old epoch of the producer", mark(old), version)
        session.ask("an epoch that is over", mark(marker(owner, partition, ABORT, -5)), version)
        two = [marker(owner, partition, ABORT, 3), marker(STALE, partition, ABORT, 3)]
        session.ask("two producers", mark(*two), version)
        session.ask("an old coordinator", mark(marker(owner, partition, ABORT, 2)), version)
        session.ask("the same again", mark(marker(owner, partition, COMMIT, 3, version=2)), version)
        newer = marker((producer_id, epoch + 1), partition, COMMIT, 3, version=2)
        session.ask("a newer epoch", mark(newer), version)
        session.ask(
            "of the coordinator's topics", mark(marker(owner, {"__consumer_offsets": [0]}, COMMIT)), version
        )
    session.ask("what was written", fetch(fetch_topic("t-marked", {0: 0, 1: 0})), 12)
    known = DescribeProducersRequest(topics=[TopicRequest(name="t-marked", partition_indexes=[0, 1])])
    session.ask("what is known of producers", known, 0)


def listed(session: Session) -> None:
    """DescribeTransactions and ListTransactions with filters of all kinds."""
    await_coordinators(session)
    create_topic(session, "t-one", 2)
    session.ask("nobody", DescribeTransactionsRequest(transactional_ids=["nobody", "", "first"]), 0)
    session.ask("none asked for", DescribeTransactionsRequest(), 0)
    owner = begin(session, "l-open")
    session.ask("a partition", add("l-open", owner, {"t-one": [1]}), 3)
    idle = begin(session, "l-idle")
    session.ask("both", DescribeTransactionsRequest(transactional_ids=["l-open", "l-idle", "l-open"]), 0)
    for version in versions(ListTransactionsRequest):
        session.ask("all", ListTransactionsRequest(), version)
        for states in (["Ongoing"], ["Empty", "Ongoing"], ["ongoing"], ["Nonsense", "Empty"], ["Dead"], [""]):
            session.ask(f"in states {states}", ListTransactionsRequest(state_filters=states), version)
        for producers in ([owner[0]], [idle[0], 4711], [-1]):
            session.ask("of producers", ListTransactionsRequest(producer_id_filters=producers), version)
        both = ListTransactionsRequest(producer_id_filters=[owner[0]], state_filters=["Empty"])
        session.ask("of a producer in another state", both, version)
    for age_ms in (0, 3_600_000, -1, -2, 2**62):
        session.ask(f"older than {age_ms} ms", ListTransactionsRequest(duration_filter=age_ms), 1)
    for pattern in ("l-.*", "l-", "", "(", "[", "l-(?=o).*", "open|l-idle", "\\Ql-open\\E", ".*n"):
        wanted = ListTransactionsRequest(transactional_id_pattern=pattern)
        session.ask(f"named {pattern!r}", wanted, 2)
    session.ask("named nothing", ListTransactionsRequest(transactional_id_pattern=None), 2)


def deleted_topics(session: Session) -> None:
    """A transaction whose topic is deleted ends all the same."""
    await_coordinators(session)
    create_topic(session, "t-gone")
    owner = begin(session, "d-one")
    session.ask("a partition", add("d-one", owner, {"t-gone": [0]}), 3)
    delete_topic(session, "t-gone")
    session.ask("it is gone", add("d-one", owner, {"t-gone": [0]}), 3)
    session.ask("the end", end("d-one", owner, COMMIT), 3)
    await_state(session, "d-one", "CompleteCommit")
    session.ask("what is left", DescribeTransactionsRequest(transactional_ids=["d-one"]), 0)


def commit(transactional_id: str, group: str, owner: Owner, names: Names, **fields: Any) -> Any:
    topics = [
        TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=5, committed_metadata="m"
                )
                for index in each
            ],
        )
        for name, each in names.items()
    ]
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=owner[0],
        producer_epoch=owner[1],
        topics=topics,
        **fields,
    )


def offsets(session: Session) -> None:
    """AddOffsetsToTxn and TxnOffsetCommit of strangers, of groups and members that are not there."""
    await_coordinators(session)
    create_topic(session, "t-offsets")
    for version in versions(AddOffsetsToTxnRequest):
        name = f"o-{version}"
        producer_id, epoch = owner = begin(session, name)

        def add_offsets(about: str, named: str, who: Owner, group: str = "g", through: int = version) -> None:
            request = AddOffsetsToTxnRequest(
                transactional_id=named, producer_id=who[0], producer_epoch=who[1], group_id=group
            )
            session.ask(about, request, through)

        add_offsets("an unknown name", "nobody", owner)
        add_offsets("no name", "", owner)
        add_offsets("another producer", name, STALE)
        add_offsets("an epoch before", name, (producer_id, epoch - 1))
        add_offsets("an epoch to come", name, (producer_id, epoch + 1))
        add_offsets("offsets of a group", name, owner)
        add_offsets("offsets of a group without a name", name, owner, "")
        session.ask("what is in it", DescribeTransactionsRequest(transactional_ids=[name]), 0)
    for version in versions(TxnOffsetCommitRequest):
        name = f"c-{version}"
        group = f"g-{version}"
        producer_id, epoch = owner = begin(session, name)
        one: Names = {"t-offsets": [0]}
        session.ask("no group", commit(name, "", owner, one), version)
        session.ask("no such topic", commit(name, group, owner, {"absent": [0]}), version)
        session.ask("no such partition", commit(name, group, owner, {"t-offsets": [4]}), version)
        session.ask("an unknown name", commit("nobody", group, owner, one), version)
        session.ask("another producer", commit(name, group, STALE, one), version)
        session.ask("an epoch to come", commit(name, group, (producer_id, epoch + 1), one), version)
        if version < 5:
            session.ask("a group that was not added", commit(name, group, owner, one), version)
            request = AddOffsetsToTxnRequest(
                transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=group
            )
            session.ask("it is added", request, 3)
        if version >= 3:
            member = {"generation_id": 1, "member_id": "somebody"}
            session.ask("a member of an empty group", commit(name, group, owner, one, **member), version)
            instance = {"group_instance_id": "instance"}
            session.ask("an instance of it", commit(name, group, owner, one, **instance), version)
        session.ask("offsets", commit(name, group, owner, one), version)
        some: Names = {"t-offsets": [0, 3], "absent": [1]}
        session.ask("some that are there", commit(name, group, owner, some), version)
        session.ask("it is ended", end(name, owner, COMMIT), 5 if version >= 5 else 3)
        await_state(session, name, "CompleteCommit")
        session.ask("a late commit", commit(name, group, owner, one), version)


SCENARIOS = ()
ALONE = (
    sessions,
    partitions_by_producers,
    partitions_by_brokers,
    ends,
    fencing,
    batches_of_producers,
    markers,
    listed,
    deleted_topics,
    offsets,
)
