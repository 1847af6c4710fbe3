"""What a controller's part decides: records to append, and the reply once they are committed."""

import asyncio
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.snapshot import VersionedRecord

R = TypeVar("R")

#: More records than this may not follow from one request.
RECORDS_PER_REQUEST_MAX: Final = 10_000
#: How many partitions or records are worked on before others on the loop get their turn.
STEP: Final = 200

#: Work that pauses now and then, and returns its result in the end.
Steps: TypeAlias = Generator[None, None, R]


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records and reply. Unless `atomic`, many records may be split over several batches, in order."""

    reply: R
    records: list[VersionedRecord] = field(default_factory=list)
    atomic: bool = True


def at_once(steps: Steps[R]) -> R:
    """Do all the work here and now."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result


async def in_turns(steps: Steps[R]) -> R:
    """Do the work, and let others have their turn at every pause."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: R = done.value
            return result
        await asyncio.sleep(0)


class ItemError(NamedTuple):
    """How one item of a request has fared."""

    code: int = ErrorCode.NONE
    message: str | None = None

    @property
    def is_failure(self) -> bool:
        return self.code != ErrorCode.NONE


FINE: Final = ItemError()


def item_error(error: KafkaError) -> ItemError:
    """The refusal of one item; a message that only repeats the code is not sent."""
    return ItemError(error.code, error.message or None)


def check_record_count(records: list[VersionedRecord]) -> None:
    """Refuse a request that leads to more records than one batch should have."""
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
