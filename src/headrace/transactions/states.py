"""The states of a transaction, and which may follow which."""

from enum import IntEnum
from typing import Final


class TransactionState(IntEnum):
    """Where a transactional id stands, by the number it has on disk.

    `PREPARE_COMMIT` and `PREPARE_ABORT` are the point of no return: the outcome is durable, and what remains
    is to tell the partitions."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The state's name in replies, and in the filters of ListTransactions."""
        return _LABELS[self]

    @property
    def is_ending(self) -> bool:
        """Whether the outcome is known and partitions are being told."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def may_expire(self) -> bool:
        """Whether an id in this state is forgotten when it has been idle for long enough."""
        return self in _AT_REST

    @property
    def predecessors(self) -> frozenset["TransactionState"]:
        """The states that this one may follow."""
        return _PREDECESSORS[self]


_LABELS: Final = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
STATES_BY_LABEL: Final = {label: state for state, label in _LABELS.items()}

_AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
_ONGOING: Final = frozenset({TransactionState.ONGOING})

_PREDECESSORS: Final = {
    TransactionState.EMPTY: _AT_REST,
    TransactionState.ONGOING: _AT_REST | _ONGOING,
    TransactionState.PREPARE_COMMIT: _ONGOING,
    # With transaction version 2 a producer that does not know how far it got may abort what was not begun.
    TransactionState.PREPARE_ABORT: _AT_REST | _ONGOING,
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: _AT_REST,
    TransactionState.PREPARE_EPOCH_FENCE: _ONGOING,
}
