"""What the levels of the feature `transaction.version` mean.

0 is the original protocol, 1 writes states with tagged fields, 2 raises the producer's epoch with every
transaction and lets brokers add partitions (KIP-890)."""

from typing import Final

VERSION_0: Final = 0
VERSION_2: Final = 2
FEATURE: Final = "transaction.version"

_ADD_PARTITIONS_BY_BROKERS_SINCE: Final = 4
_END_WITH_EPOCH_SINCE: Final = 5


def bumps_epochs(version: int) -> bool:
    """Whether every transaction has an epoch of its own."""
    return version >= VERSION_2


def record_version(version: int) -> int:
    """The version of the values in `__transaction_state`."""
    return 1 if version >= 1 else 0


def version_of_add_partitions(request_version: int) -> int:
    """The transaction version of whoever sends AddPartitionsToTxn: brokers, or producers of the old kind."""
    return VERSION_2 if request_version >= _ADD_PARTITIONS_BY_BROKERS_SINCE else VERSION_0


def version_of_end(request_version: int) -> int:
    """The transaction version of a producer that sends EndTxn."""
    return VERSION_2 if request_version >= _END_WITH_EPOCH_SINCE else VERSION_0
