"""Which batches of a producer are taken: sequences, epochs, markers and transaction states of 4.3.1."""

import pytest

from headrace.errors import ErrorCode, KafkaError
from headrace.log.append_origin import AppendOrigin
from headrace.log.producer_append import EPOCH_MAX, ProducerAppend
from headrace.log.producer_entry import SEQUENCE_MAX, ProducerEntry, RememberedBatch, VerificationEntry
from headrace.records.control import ControlType
from tests.support_log import marker, only_batch, producer_batch

PRODUCER = 7


def appending(
    entry: ProducerEntry | None = None,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    verification: VerificationEntry | None = None,
) -> ProducerAppend:
    return ProducerAppend("topic-0", entry or ProducerEntry(PRODUCER), origin, verification)


def entry_at(sequence: int, *, epoch: int = 0, transaction: int | None = None) -> ProducerEntry:
    entry = ProducerEntry(PRODUCER, epoch, 0, 1, transaction)
    entry.batches.append(RememberedBatch(sequence, 100, 0, 1))
    return entry


def append(to: ProducerAppend, data: bytearray, version: int = -1) -> object:
    return to.append(only_batch(data), None, version)


def refusal(to: ProducerAppend, data: bytearray, version: int = -1) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        append(to, data, version)
    return refused.value.code


def test_an_unknown_producer_may_begin_at_any_sequence() -> None:
    append(appending(), producer_batch(PRODUCER, 17))


def test_the_next_sequence_is_taken_and_a_gap_refused() -> None:
    """Promise 14: a gap in the sequence is OUT_OF_ORDER_SEQUENCE_NUMBER."""
    append(appending(entry_at(4)), producer_batch(PRODUCER, 5))
    assert refusal(appending(entry_at(4)), producer_batch(PRODUCER, 6)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_sequences_wrap_to_zero_after_the_largest() -> None:
    append(appending(entry_at(SEQUENCE_MAX)), producer_batch(PRODUCER, 0))
    first = producer_batch(PRODUCER, SEQUENCE_MAX - 1, 3)
    pending = appending(entry_at(SEQUENCE_MAX - 2))
    append(pending, first)
    assert pending.updated.last_sequence == 0
    assert pending.updated.batches[0].first_sequence == SEQUENCE_MAX - 1


def test_a_new_epoch_begins_at_sequence_zero() -> None:
    append(appending(entry_at(4)), producer_batch(PRODUCER, 0, epoch=1))
    assert refusal(appending(entry_at(4)), producer_batch(PRODUCER, 5, epoch=1)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_an_old_epoch_is_refused_to_clients_and_passed_for_replication() -> None:
    """Promise 14: an old epoch is INVALID_PRODUCER_EPOCH."""
    old = producer_batch(PRODUCER, 5, epoch=1)
    assert refusal(appending(entry_at(4, epoch=2)), old) == ErrorCode.INVALID_PRODUCER_EPOCH
    append(appending(entry_at(4, epoch=2), AppendOrigin.REPLICATION), old)


def test_batches_of_one_append_follow_one_another() -> None:
    pending = appending(entry_at(4))
    append(pending, producer_batch(PRODUCER, 5, 2))
    append(pending, producer_batch(PRODUCER, 7))
    assert refusal(pending, producer_batch(PRODUCER, 9)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_plain_batch_in_an_open_transaction_is_refused() -> None:
    assert refusal(appending(entry_at(4, transaction=90)), producer_batch(PRODUCER, 5)) == (
        ErrorCode.INVALID_TXN_STATE
    )


def test_the_first_transactional_batch_opens_a_transaction() -> None:
    pending = appending()
    append(pending, producer_batch(PRODUCER, 0, transactional=True, base_offset=40))
    append(pending, producer_batch(PRODUCER, 1, transactional=True, base_offset=41))
    assert pending.updated.transaction_first_offset == 40
    assert [transaction.first.offset for transaction in pending.started] == [40]


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_ends_the_transaction(kind: ControlType) -> None:
    pending = appending(entry_at(4, transaction=90), AppendOrigin.COORDINATOR)
    completed = pending.append(
        only_batch(marker(PRODUCER, kind, base_offset=120, coordinator_epoch=6)), None, 1
    )
    assert completed == (PRODUCER, 90, 120, kind is ControlType.ABORT)
    assert pending.updated.transaction_first_offset is None
    assert pending.updated.coordinator_epoch == 6


def test_a_marker_without_a_transaction_completes_nothing() -> None:
    assert append(appending(entry_at(4), AppendOrigin.COORDINATOR), marker(PRODUCER), 1) is None


def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    entry = entry_at(4, transaction=90)
    entry.coordinator_epoch = 5
    stale = marker(PRODUCER, coordinator_epoch=4)
    assert refusal(appending(entry, AppendOrigin.COORDINATOR), stale, 1) == (
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    append(appending(entry, AppendOrigin.REPLICATION), stale)


def test_transaction_version_1_takes_markers_of_the_current_epoch() -> None:
    append(appending(entry_at(4, transaction=90), AppendOrigin.COORDINATOR), marker(PRODUCER), 1)


def test_transaction_version_2_wants_markers_to_raise_the_epoch() -> None:
    coordinator = AppendOrigin.COORDINATOR
    append(appending(entry_at(4, transaction=90), coordinator), marker(PRODUCER, epoch=1), 2)
    assert refusal(appending(entry_at(4, transaction=90), coordinator), marker(PRODUCER), 2) == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_transaction_version_2_takes_a_repeated_marker_and_the_last_epoch() -> None:
    coordinator = AppendOrigin.COORDINATOR
    assert append(appending(entry_at(4), coordinator), marker(PRODUCER), 2) is None
    last = entry_at(4, epoch=EPOCH_MAX, transaction=90)
    assert append(appending(last, coordinator), marker(PRODUCER, epoch=EPOCH_MAX), 2) is not None


def test_a_marker_needs_its_transaction_version_except_from_replication() -> None:
    with pytest.raises(ValueError, match="transaction version"):
        append(appending(entry_at(4, transaction=90), AppendOrigin.COORDINATOR), marker(PRODUCER))
    append(appending(entry_at(4, transaction=90), AppendOrigin.REPLICATION), marker(PRODUCER))


def test_a_verified_producer_may_not_skip_the_lowest_sequence_seen() -> None:
    waiting = VerificationEntry(0, 3, 0, False)
    append(appending(verification=waiting), producer_batch(PRODUCER, 3))
    assert refusal(appending(verification=waiting), producer_batch(PRODUCER, 4)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_with_epoch_bumps_a_producer_without_state_begins_at_zero() -> None:
    waiting = VerificationEntry(0, 3, 0, True)
    assert refusal(appending(verification=waiting), producer_batch(PRODUCER, 3)) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    append(appending(verification=waiting), producer_batch(PRODUCER, 0))


def test_verification_keeps_the_lowest_sequence_of_the_highest_epoch() -> None:
    waiting = VerificationEntry(0, 5, 1, False)
    waiting.observe(3, 1)
    assert waiting.lowest_sequence == 3
    waiting.observe(1, 0)
    assert waiting.lowest_sequence == 3
    waiting.observe(9, 2)
    assert (waiting.lowest_sequence, waiting.epoch) == (9, 2)
