"""Metadata in any state, made with as few words as a test should need."""

from dataclasses import replace

from headrace.transactions.metadata import TransactionMetadata
from headrace.transactions.states import TransactionState
from headrace.types import TopicPartition

NOW_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)

AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
ENDING = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def metadata(
    state: TransactionState = TransactionState.EMPTY,
    *,
    producer_id: int = 7,
    epoch: int = 5,
    **changes: object,
) -> TransactionMetadata:
    """A transactional id in a state, with what usually goes with that state."""
    begun = state is not TransactionState.EMPTY
    has_partitions = state is TransactionState.ONGOING or state in ENDING
    made = TransactionMetadata(
        "payments-1",
        producer_id,
        TIMEOUT_MS,
        NOW_MS,
        producer_epoch=epoch,
        state=state,
        partitions=frozenset({ORDERS}) if has_partitions else frozenset(),
        start_ms=NOW_MS if begun else -1,
        previous_producer_id=producer_id,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


class NoTimers:
    """For shards that are not to do anything by themselves."""

    def schedule(self, key: object, delay_ms: int, operation: object, *, retry: bool = True) -> None:
        raise AssertionError("the transaction coordinator sets no timers on shards")

    def schedule_if_absent(
        self, key: object, delay_ms: int, operation: object, *, retry: bool = True
    ) -> None:
        raise AssertionError("the transaction coordinator sets no timers on shards")

    def cancel(self, key: object) -> None:
        """There is nothing to cancel."""

    def is_scheduled(self, key: object) -> bool:
        return False
