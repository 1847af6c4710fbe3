"""What the validator is told, what it hands back, and how it refuses."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from headrace.errors import ErrorCode, KafkaError
from headrace.records.batch import Batch
from headrace.records.compression import DECOMPRESSED_MAX, Compression
from headrace.records.shapes import ShapeMemory
from headrace.types import TopicPartition

INT64_MAX: Final = 2**63 - 1
# What is checked where it was received, on the loop; larger batches are a worker's. See `HeavyBatch`.
RECORDS_AT_ONCE_MAX: Final = 25_000
INFLATED_AT_ONCE_MAX: Final = 4 * 1024 * 1024
INFLATED_AT_ONCE_MIN: Final = 512 * 1024
INFLATION_USUAL: Final = 20
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1


class Origin(Enum):
    """Who appends. Clients are held to more rules than the broker's own coordinators."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


@dataclass(slots=True, frozen=True)
class ValidationRules:
    """A topic's settings as far as its batches must heed them.

    `compression` None means that batches stay as their producers compressed them. `max_message_bytes` None
    means no bound. `decompressed_max` bounds the memory that a batch may inflate to. With `at_once`, batches
    that would take long are not looked through, and `HeavyBatch` is raised.
    """

    topic_partition: TopicPartition
    compact: bool = False
    timestamp_type: int = CREATE_TIME
    before_max_ms: int = INT64_MAX
    after_max_ms: int = 3_600_000
    compression: Compression | None = None
    level: int | None = None
    origin: Origin = Origin.CLIENT
    max_message_bytes: int | None = None
    decompressed_max: int = DECOMPRESSED_MAX
    at_once: bool = False
    shapes: ShapeMemory = field(default_factory=ShapeMemory, compare=False, repr=False)

    def inflated_max(self, size: int) -> int:
        """How much a payload of `size` compressed bytes may inflate to here."""
        if not self.at_once:
            return self.decompressed_max
        return min(
            self.decompressed_max, INFLATED_AT_ONCE_MAX, max(INFLATED_AT_ONCE_MIN, INFLATION_USUAL * size)
        )


class RecordError(NamedTuple):
    """What is wrong with one record, by its index in the batch."""

    batch_index: int
    message: str


@dataclass(slots=True)
class Validated:
    """A batch fit to be stored, once it is stamped with offset and leader epoch.

    `batch` views the bytes that were given, or new ones where the batch was compressed anew (`rebuilt`). Its
    header fields are current. `append_time` is -1 unless the broker set the time.
    """

    batch: Batch
    max_timestamp: int
    append_time: int
    rebuilt: bool

    @property
    def buffer(self) -> memoryview:
        """The batch's bytes; writable."""
        return self.batch.data

    @property
    def count(self) -> int:
        return self.batch.count

    def __len__(self) -> int:
        return self.batch.size


class RecordsRefused(KafkaError):
    """A batch that is not stored. Clients see the message only where single records are at fault."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors

    @property
    def client_message(self) -> str | None:
        """What a produce response carries as its error message."""
        return self.message if self.record_errors else None


class HeavyBatch(RecordsRefused):
    """A batch that may be fine, but takes too long to be looked through where everybody waits for it."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
