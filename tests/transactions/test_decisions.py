"""Request by request and state by state: what is written, and which code refuses."""

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.add_partitions import Participation, decide_added, missing_partitions
from headrace.transactions.end_transaction import Ending, abort_by_fence, decide_end
from headrace.transactions.init_producer_id import NewSession, ProducerIdAndEpoch, decide_session
from headrace.transactions.metadata import EPOCH_MAX, TransactionMetadata
from headrace.transactions.producer_ids import ProducerIdNeeded
from headrace.transactions.states import TransactionState
from tests.support_transactions import AT_REST, ENDING, NOW_MS, ORDERS, PAYMENTS, metadata

LATER_MS = NOW_MS + 10
EXHAUSTED = EPOCH_MAX - 1
S = TransactionState
E = ErrorCode


def session(
    current: TransactionMetadata | None,
    expected: tuple[int, int] | None = None,
    new_producer_id: int | None = 99,
    version: int = 2,
) -> TransactionMetadata:
    wanted = NewSession("payments-1", 1_000, None if expected is None else ProducerIdAndEpoch(*expected))
    return decide_session(current, wanted, new_producer_id, version, LATER_MS)


def refusal_of_session(current: TransactionMetadata, expected: tuple[int, int] | None) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        session(current, expected)
    return refused.value.code


# InitProducerId


def test_an_unknown_id_gets_a_new_producer_id_at_epoch_zero() -> None:
    given = session(None)
    assert (given.producer_id, given.producer_epoch, given.state) == (99, 0, S.EMPTY)
    assert given.timeout_ms == 1_000


def test_an_unknown_id_with_an_epoch_of_former_times_is_anybodys() -> None:
    assert session(None, expected=(12, 30)).producer_epoch == 0


def test_a_decision_asks_for_a_producer_id_only_where_it_needs_one() -> None:
    assert session(metadata(), new_producer_id=None).producer_epoch == 6
    for needy in (None, metadata(epoch=EXHAUSTED), metadata(S.ONGOING, epoch=EXHAUSTED)):
        with pytest.raises(ProducerIdNeeded):
            session(needy, new_producer_id=None)


@pytest.mark.parametrize("state", ENDING)
@pytest.mark.parametrize("expected", [None, (7, 5), (8, 5)])
def test_a_session_waits_for_a_transaction_that_is_ending(
    state: TransactionState, expected: tuple[int, int] | None
) -> None:
    assert refusal_of_session(metadata(state), expected) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("expected", [(8, 5), (8, EXHAUSTED), (7, 4), (7, 6)])
def test_a_session_of_somebody_else_is_fenced(expected: tuple[int, int]) -> None:
    assert refusal_of_session(metadata(), expected) is E.PRODUCER_FENCED


def test_exhausted_epochs_lead_to_a_new_producer_id_and_a_retry_gets_it_again() -> None:
    rotated = session(metadata(epoch=EXHAUSTED), expected=(7, EXHAUSTED))
    assert (rotated.producer_id, rotated.producer_epoch) == (99, 0)
    again = session(rotated, expected=(7, EXHAUSTED), new_producer_id=100)
    assert (again.producer_id, again.producer_epoch) == (99, 0)
    assert refusal_of_session(rotated, (7, EXHAUSTED - 1)) is E.PRODUCER_FENCED


def test_a_session_of_an_old_epoch_of_an_exhausted_id_fails() -> None:
    assert refusal_of_session(metadata(epoch=EXHAUSTED), (7, 5)) is E.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("version", "client_version", "last_epoch"), [(0, 0, -1), (1, 0, -1), (2, 2, 5)])
def test_a_new_session_aborts_what_its_predecessor_left_open(
    version: int, client_version: int, last_epoch: int
) -> None:
    fenced = session(metadata(S.ONGOING, last_producer_epoch=4), version=version)
    assert (fenced.state, fenced.producer_id, fenced.producer_epoch) == (S.PREPARE_ABORT, 7, 6)
    assert (fenced.client_version, fenced.last_producer_epoch) == (client_version, last_epoch)
    given = session(fenced.completed(LATER_MS))
    assert (given.producer_id, given.producer_epoch) == (7, 7)


@pytest.mark.parametrize(("version", "next_id"), [(0, -1), (2, 99)])
def test_fencing_the_last_epoch_ends_in_a_new_producer_id(version: int, next_id: int) -> None:
    fenced = abort_by_fence(metadata(S.ONGOING, epoch=EXHAUSTED), 99, version, LATER_MS)
    assert (fenced.producer_epoch, fenced.next_producer_id) == (EPOCH_MAX, next_id)
    given = session(fenced.completed(LATER_MS), new_producer_id=100)
    assert (given.producer_id, given.producer_epoch) == ((100, 0) if version == 0 else (99, 1))


# AddPartitionsToTxn


def added(current: TransactionMetadata | None, *, producer_id: int = 7, epoch: int = 5) -> object:
    wanted = Participation("payments-1", producer_id, epoch, frozenset({ORDERS, PAYMENTS}))
    try:
        return decide_added(current, wanted, 0, LATER_MS)
    except KafkaError as error:
        return error.code


@pytest.mark.parametrize("state", [*AT_REST, S.ONGOING])
def test_partitions_are_added_in_every_state_that_is_not_ending(state: TransactionState) -> None:
    written = added(metadata(state))
    assert isinstance(written, TransactionMetadata)
    assert (written.state, written.partitions) == (S.ONGOING, frozenset({ORDERS, PAYMENTS}))


def test_adding_what_takes_part_already_writes_nothing() -> None:
    assert added(metadata(S.ONGOING, partitions=frozenset({ORDERS, PAYMENTS}))) is None


@pytest.mark.parametrize(
    ("current", "producer_id", "epoch", "code"),
    [
        (None, 7, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (metadata(), 8, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (metadata(), 7, 4, E.PRODUCER_FENCED),
        (metadata(), 7, 6, E.PRODUCER_FENCED),
        (metadata(S.PREPARE_COMMIT), 7, 5, E.CONCURRENT_TRANSACTIONS),
        (metadata(S.PREPARE_ABORT), 8, 4, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_partitions_are_refused(
    current: TransactionMetadata | None, producer_id: int, epoch: int, code: ErrorCode
) -> None:
    assert added(current, producer_id=producer_id, epoch=epoch) is code


@pytest.mark.parametrize(
    ("current", "producer_id", "epoch", "expected"),
    [
        (metadata(S.ONGOING), 7, 5, frozenset({PAYMENTS})),
        (metadata(), 7, 5, frozenset({ORDERS, PAYMENTS})),
        (None, 7, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (metadata(S.PREPARE_ABORT), 8, 5, E.INVALID_PRODUCER_ID_MAPPING),
        (metadata(S.PREPARE_ABORT), 7, 4, E.PRODUCER_FENCED),
        (metadata(S.PREPARE_ABORT), 7, 5, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_verification_tells_which_partitions_do_not_take_part(
    current: TransactionMetadata | None, producer_id: int, epoch: int, expected: object
) -> None:
    wanted = Participation("payments-1", producer_id, epoch, frozenset({ORDERS, PAYMENTS}))
    try:
        found: object = missing_partitions(current, wanted)
    except KafkaError as error:
        found = error.code
    assert found == expected


# EndTxn


def ended(
    current: TransactionMetadata | None, commit: bool, version: int, epoch: int = 5, producer_id: int = 7
) -> object:
    try:
        written = decide_end(current, Ending("payments-1", producer_id, epoch, commit, version), 99, LATER_MS)
    except KafkaError as error:
        return error.code
    return None if written is None else (written.state, written.producer_epoch)


COMMIT, ABORT = True, False


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        (S.EMPTY, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, ABORT, E.INVALID_TXN_STATE),
        (S.ONGOING, COMMIT, (S.PREPARE_COMMIT, 5)),
        (S.ONGOING, ABORT, (S.PREPARE_ABORT, 5)),
        (S.PREPARE_COMMIT, COMMIT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, ABORT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, COMMIT, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, ABORT, E.CONCURRENT_TRANSACTIONS),
        (S.COMPLETE_COMMIT, COMMIT, None),
        (S.COMPLETE_COMMIT, ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, ABORT, None),
    ],
)
def test_ends_before_version_two(state: TransactionState, commit: bool, expected: object) -> None:
    assert ended(metadata(state), commit, 0) == expected


@pytest.mark.parametrize("state", [*AT_REST, S.ONGOING])
@pytest.mark.parametrize("commit", [COMMIT, ABORT])
@pytest.mark.parametrize("epoch", [4, 6])
def test_before_version_two_the_end_of_another_epoch_is_fenced(
    state: TransactionState, commit: bool, epoch: int
) -> None:
    assert ended(metadata(state), commit, 0, epoch) is E.PRODUCER_FENCED


RETRY, CURRENT = 4, 5


@pytest.mark.parametrize(
    ("state", "commit", "epoch", "expected"),
    [
        (S.EMPTY, ABORT, RETRY, E.PRODUCER_FENCED),
        (S.EMPTY, ABORT, CURRENT, (S.PREPARE_ABORT, 6)),
        (S.EMPTY, COMMIT, RETRY, E.PRODUCER_FENCED),
        (S.EMPTY, COMMIT, CURRENT, E.INVALID_TXN_STATE),
        (S.ONGOING, ABORT, RETRY, E.PRODUCER_FENCED),
        (S.ONGOING, ABORT, CURRENT, (S.PREPARE_ABORT, 6)),
        (S.ONGOING, COMMIT, RETRY, E.PRODUCER_FENCED),
        (S.ONGOING, COMMIT, CURRENT, (S.PREPARE_COMMIT, 6)),
        (S.COMPLETE_ABORT, ABORT, RETRY, None),
        (S.COMPLETE_ABORT, ABORT, CURRENT, (S.PREPARE_ABORT, 6)),
        (S.COMPLETE_ABORT, COMMIT, RETRY, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, COMMIT, CURRENT, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, ABORT, RETRY, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, ABORT, CURRENT, (S.PREPARE_ABORT, 6)),
        (S.COMPLETE_COMMIT, COMMIT, RETRY, None),
        (S.COMPLETE_COMMIT, COMMIT, CURRENT, E.INVALID_TXN_STATE),
        (S.PREPARE_COMMIT, COMMIT, RETRY, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, COMMIT, RETRY, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_ends_with_version_two(state: TransactionState, commit: bool, epoch: int, expected: object) -> None:
    assert ended(metadata(state), commit, 2, epoch) == expected


@pytest.mark.parametrize("state", [*AT_REST, S.ONGOING])
@pytest.mark.parametrize("epoch", [3, 6, 7])
def test_with_version_two_any_other_epoch_is_fenced(state: TransactionState, epoch: int) -> None:
    assert ended(metadata(state), COMMIT, 2, epoch) is E.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 2])
def test_the_end_of_an_unknown_id_or_of_another_producer_is_refused(version: int) -> None:
    assert ended(None, COMMIT, version) is E.INVALID_PRODUCER_ID_MAPPING
    assert ended(metadata(S.ONGOING), COMMIT, version, producer_id=8) is E.INVALID_PRODUCER_ID_MAPPING


def test_the_end_that_used_up_the_last_epoch_may_be_retried_under_the_former_producer_id() -> None:
    ongoing = metadata(S.ONGOING, epoch=EXHAUSTED)
    ending = decide_end(ongoing, Ending("payments-1", 7, EXHAUSTED, COMMIT, 2), 99, LATER_MS)
    assert ending is not None
    done = ending.completed(LATER_MS)
    assert (done.producer_id, done.producer_epoch) == (99, 0)
    assert ended(done, COMMIT, 2, EXHAUSTED) is None
    assert ended(done, ABORT, 2, EXHAUSTED) is E.INVALID_TXN_STATE
    assert ended(done, COMMIT, 2, EXHAUSTED - 1) is E.INVALID_PRODUCER_ID_MAPPING
