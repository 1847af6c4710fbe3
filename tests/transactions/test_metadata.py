"""What each transition changes, and which transitions there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ErrorCode, KafkaError
from headrace.transactions.log_records import metadata_of, value_of
from headrace.transactions.metadata import EPOCH_MAX, TIMEOUT_NEVER_MS, IllegalTransition, TransactionMetadata
from headrace.transactions.states import STATES_BY_LABEL, TransactionState
from headrace.types import TopicPartition
from tests.support_transactions import AT_REST, ENDING, NOW_MS, ORDERS, PAYMENTS, metadata

LATER_MS = NOW_MS + 10


@pytest.mark.parametrize("state", AT_REST)
def test_a_new_session_raises_the_epoch_and_remembers_no_other(state: TransactionState) -> None:
    raised = metadata(state, epoch=5, last_producer_epoch=4).with_epoch_raised(1_000, None, LATER_MS)
    assert raised.state is TransactionState.EMPTY
    assert (raised.producer_epoch, raised.last_producer_epoch) == (6, -1)
    assert (raised.timeout_ms, raised.start_ms, raised.last_update_ms) == (1_000, -1, LATER_MS)
    assert not raised.partitions


def test_the_first_session_of_an_id_has_epoch_zero() -> None:
    assert metadata(epoch=-1).with_epoch_raised(1_000, None, LATER_MS).producer_epoch == 0


def test_a_session_that_goes_on_is_told_its_epoch_again_when_it_asks_again() -> None:
    raised = metadata(epoch=5).with_epoch_raised(1_000, 5, LATER_MS)
    assert (raised.producer_epoch, raised.last_producer_epoch) == (6, 5)
    again = raised.with_epoch_raised(1_000, 5, LATER_MS + 1)
    assert (again.producer_epoch, again.last_producer_epoch) == (6, 5)


def test_a_session_of_an_epoch_that_is_neither_current_nor_last_is_fenced() -> None:
    with pytest.raises(KafkaError) as refused:
        metadata(epoch=5, last_producer_epoch=4).with_epoch_raised(1_000, 3, LATER_MS)
    assert refused.value.code is ErrorCode.PRODUCER_FENCED


def test_a_new_producer_id_starts_at_epoch_zero() -> None:
    last = metadata(epoch=EPOCH_MAX - 1)
    rotated = last.with_new_producer_id(8, 1_000, LATER_MS, remembers_epoch=True)
    assert (rotated.producer_id, rotated.producer_epoch) == (8, 0)
    assert (rotated.previous_producer_id, rotated.last_producer_epoch) == (7, EPOCH_MAX - 1)
    forgetful = last.with_new_producer_id(8, 1_000, LATER_MS, remembers_epoch=False)
    assert forgetful.last_producer_epoch == -1


@pytest.mark.parametrize("state", AT_REST)
def test_the_first_partition_begins_the_transaction(state: TransactionState) -> None:
    begun = metadata(state).with_partitions(frozenset({ORDERS}), LATER_MS, 2)
    assert (begun.state, begun.start_ms, begun.client_version) == (TransactionState.ONGOING, LATER_MS, 2)
    joined = begun.with_partitions(frozenset({PAYMENTS}), LATER_MS + 1, 2)
    assert (joined.partitions, joined.start_ms) == (frozenset({ORDERS, PAYMENTS}), LATER_MS)


def test_with_version_two_the_end_of_a_transaction_raises_the_epoch() -> None:
    ending = metadata(TransactionState.ONGOING).ending(TransactionState.PREPARE_COMMIT, 2, -1, LATER_MS)
    assert (ending.producer_epoch, ending.last_producer_epoch, ending.start_ms) == (6, 5, NOW_MS)
    done = ending.completed(LATER_MS + 1)
    assert done.state is TransactionState.COMPLETE_COMMIT
    assert (done.producer_epoch, done.partitions) == (6, frozenset())


def test_before_version_two_a_transaction_ends_within_its_epoch() -> None:
    ending = metadata(TransactionState.ONGOING, last_producer_epoch=4).ending(
        TransactionState.PREPARE_ABORT, 0, -1, LATER_MS
    )
    assert (ending.producer_epoch, ending.last_producer_epoch) == (5, 4)
    assert ending.completed(LATER_MS).state is TransactionState.COMPLETE_ABORT


def test_the_last_epoch_of_an_id_hands_over_to_the_next_id_when_its_transaction_is_complete() -> None:
    ongoing = metadata(TransactionState.ONGOING, epoch=EPOCH_MAX - 1)
    ending = ongoing.ending(TransactionState.PREPARE_COMMIT, 2, 99, LATER_MS)
    assert (ending.producer_id, ending.producer_epoch, ending.next_producer_id) == (7, EPOCH_MAX, 99)
    done = ending.completed(LATER_MS)
    assert (done.producer_id, done.producer_epoch, done.next_producer_id) == (99, 0, -1)
    assert (done.previous_producer_id, done.last_producer_epoch) == (7, EPOCH_MAX - 1)


def test_an_abort_at_the_highest_epoch_does_not_overflow() -> None:
    ending = metadata(TransactionState.ONGOING, epoch=EPOCH_MAX).ending(
        TransactionState.PREPARE_ABORT, 2, 99, LATER_MS
    )
    assert ending.producer_epoch == EPOCH_MAX
    assert metadata(epoch=EPOCH_MAX).fenced().producer_epoch == EPOCH_MAX


@pytest.mark.parametrize("state", AT_REST)
def test_what_was_not_begun_is_aborted_at_the_time_of_the_abort(state: TransactionState) -> None:
    ending = metadata(state, start_ms=1).ending(TransactionState.PREPARE_ABORT, 2, -1, LATER_MS)
    assert ending.start_ms == LATER_MS


@pytest.mark.parametrize("state", ENDING)
def test_nothing_follows_a_decided_outcome_but_its_completion(state: TransactionState) -> None:
    ending = metadata(state)
    with pytest.raises(IllegalTransition):
        ending.with_partitions(frozenset({PAYMENTS}), LATER_MS, 0)
    with pytest.raises(IllegalTransition):
        ending.with_epoch_raised(1_000, None, LATER_MS)
    with pytest.raises(IllegalTransition):
        ending.ending(TransactionState.PREPARE_ABORT, 2, -1, LATER_MS)


def test_only_what_has_an_outcome_can_be_completed() -> None:
    with pytest.raises(IllegalTransition):
        metadata(TransactionState.ONGOING).completed(LATER_MS)


@pytest.mark.parametrize(
    ("state", "timeout_ms", "elapsed_ms", "expected"),
    [
        (TransactionState.ONGOING, 1_000, 1_000, False),
        (TransactionState.ONGOING, 1_000, 1_001, True),
        (TransactionState.ONGOING, TIMEOUT_NEVER_MS, TIMEOUT_NEVER_MS + 1, False),
        (TransactionState.PREPARE_COMMIT, 1_000, 5_000, False),
        (TransactionState.COMPLETE_COMMIT, 1_000, 5_000, False),
    ],
)
def test_only_open_transactions_time_out(
    state: TransactionState, timeout_ms: int, elapsed_ms: int, expected: bool
) -> None:
    assert metadata(state, timeout_ms=timeout_ms).has_timed_out(NOW_MS + elapsed_ms) is expected


def test_states_are_named_as_in_kafka() -> None:
    assert sorted(STATES_BY_LABEL) == [
        "CompleteAbort",
        "CompleteCommit",
        "Dead",
        "Empty",
        "Ongoing",
        "PrepareAbort",
        "PrepareCommit",
        "PrepareEpochFence",
    ]
    assert all(state.label == label for label, state in STATES_BY_LABEL.items())
    assert [state for state in TransactionState if state.may_expire] == list(AT_REST)


partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 5))


@given(
    st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY]),
    st.frozensets(partitions),
    st.integers(0, EPOCH_MAX),
)
def test_metadata_survives_the_way_to_disk_and_back(
    state: TransactionState, joined: frozenset[TopicPartition], epoch: int
) -> None:
    before: TransactionMetadata = metadata(
        state, epoch=epoch, partitions=joined, next_producer_id=9, client_version=2
    )
    assert metadata_of("payments-1", value_of(before, 1)) == before


def test_an_empty_id_has_no_list_of_partitions_on_disk() -> None:
    assert value_of(metadata(), 1).transaction_partitions is None
    assert metadata_of("payments-1", value_of(metadata(), 1)) == metadata()


def test_before_transaction_version_one_other_producer_ids_are_not_written() -> None:
    written = value_of(metadata(TransactionState.ONGOING, next_producer_id=9), 0)
    assert (written.previous_producer_id, written.next_producer_id) == (-1, -1)
    with pytest.raises(KafkaError) as refused:
        value_of(metadata(TransactionState.ONGOING, client_version=2), 0)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
