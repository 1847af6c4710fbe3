"""What a controller's part decides: records to append, and the reply once they are committed."""

from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from headrace.errors import ErrorCode, KafkaError
from headrace.metadata.snapshot import VersionedRecord

R = TypeVar("R")

#: More records than this may not follow from one request.
RECORDS_PER_REQUEST_MAX: Final = 10_000


@dataclass(slots=True)
class Decision(Generic[R]):
    """Records and reply. Unless `atomic`, many records may be split over several batches, in order."""

    reply: R
    records: list[VersionedRecord] = field(default_factory=list)
    atomic: bool = True


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
