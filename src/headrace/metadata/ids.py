"""Ids of topics, directories and incarnations: random, and spelt as Kafka spells them."""

from typing import Final
from uuid import UUID

from headrace.log.partition_metadata import decode_id, encode_id
from headrace.ports import Entropy

__all__ = ["LOST_DIRECTORY", "MIGRATING_DIRECTORY", "UNASSIGNED_DIRECTORY", "decode_id", "encode_id"]

MIGRATING_DIRECTORY: Final = UUID(int=0)
UNASSIGNED_DIRECTORY: Final = UUID(int=1)
LOST_DIRECTORY: Final = UUID(int=2)
_RESERVED_DIRECTORY_COUNT: Final = 100


def random_id(entropy: Entropy) -> UUID:
    """A fresh id of UUID version 4; none is spelt with a dash first, as tools would take it for a flag."""
    while True:
        fresh = UUID(bytes=entropy.random_bytes(16), version=4)
        if not encode_id(fresh).startswith("-"):
            return fresh


def is_reserved_directory(directory_id: UUID) -> bool:
    """Whether an id stands for something else than a directory."""
    return directory_id.int < _RESERVED_DIRECTORY_COUNT


def is_directory_online(directory_id: UUID, online: tuple[UUID, ...]) -> bool:
    """Whether a replica in that directory can be used, as far as the registration of its broker tells."""
    if directory_id in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    if directory_id == LOST_DIRECTORY:
        return False
    # A broker that registered without directories predates them.
    return not online or directory_id in online
