"""A reader of committed data sees everything but the batches of aborted transactions."""

from headrace.records.aborted import AbortedTransaction, committed
from headrace.records.batch import batches
from headrace.records.builder import build_batch
from headrace.records.control import ControlType, build_end_transaction_marker


def data(offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    return build_batch(
        [(1, b"k", b"v", [])],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )


def marker(offset: int, producer_id: int, kind: ControlType) -> bytes:
    return build_end_transaction_marker(
        kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=offset
    )


def offsets(parts: list[bytes], aborted: list[tuple[int, int]]) -> list[int]:
    passed = committed(batches(b"".join(parts)), aborted)
    return [batch.base_offset for batch in passed if not batch.is_control]


def test_an_aborted_transaction_is_left_out_up_to_its_marker() -> None:
    parts = [data(0, 7), data(1, 7), marker(2, 7, ControlType.ABORT), data(3, 7)]
    assert offsets(parts, [AbortedTransaction(7, 0)]) == [3]


def test_interleaved_producers_are_told_apart() -> None:
    parts = [
        data(0, 7),
        data(1, 8),
        data(2, 7),
        marker(3, 8, ControlType.COMMIT),
        marker(4, 7, ControlType.ABORT),
    ]
    assert offsets(parts, [(7, 0)]) == [1]


def test_two_transactions_of_one_producer_may_both_be_aborted_whatever_their_order_in_the_list() -> None:
    abort = ControlType.ABORT
    parts = [data(0, 7), marker(1, 7, abort), data(2, 7), marker(3, 7, ControlType.COMMIT)]
    parts += [data(4, 7), marker(5, 7, abort)]
    assert offsets(parts, [(7, 4), (7, 0)]) == [2]


def test_a_transaction_that_starts_later_does_not_hide_earlier_batches() -> None:
    parts = [data(0, 7), marker(1, 7, ControlType.COMMIT), data(2, 7), marker(3, 7, ControlType.ABORT)]
    assert offsets(parts, [(7, 2)]) == [0]


def test_batches_outside_transactions_always_pass() -> None:
    plain = build_batch([(1, None, b"v", [])], base_offset=1)
    parts = [data(0, 7), plain, data(2, 7, transactional=False), marker(3, 7, ControlType.ABORT)]
    assert offsets(parts, [(7, 0)]) == [1, 2]


def test_a_fetch_that_starts_inside_an_aborted_transaction_leaves_its_rest_out() -> None:
    parts = [data(5, 7), marker(6, 7, ControlType.ABORT), data(7, 7)]
    assert offsets(parts, [(7, 2)]) == [7]
