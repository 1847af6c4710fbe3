"""What a coordinator's runtime and the state machines that run on it have to know of each other.

A shard is the state of one partition of an internal topic. It decides: an operation turns a request into
records and a reply, and changes nothing that records stand for. Only `replay` does that, so that the live
path, a restart and a fail-over are the same code."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from headrace.protocol.message import Message

if TYPE_CHECKING:
    from headrace.metadata.delta import MetadataDelta
    from headrace.metadata.image import MetadataImage

T = TypeVar("T")
S_contra = TypeVar("S_contra", contravariant=True)


class CoordinatorRecord(NamedTuple):
    """A record of an internal topic, not yet in bytes. Without a value it deletes what its key names."""

    key: Message
    value: Message | None = None
    version: int = 0
    """The version that the value is written in."""
    encoded: tuple[bytes, bytes | None] | None = None
    """Key and value in bytes, from whoever has them at hand."""


Records: TypeAlias = Sequence[CoordinatorRecord]
Done: TypeAlias = Callable[[BaseException | None], None]


@dataclass(slots=True)
class Decision(Generic[T]):
    """What an operation comes to: records to be written, and the reply that waits until they are committed.

    `is_replayed` is false for records of a state that the operation has changed already; such an operation
    puts things right in `on_done`, which is called with the failure or None before anybody is answered.
    Records that need not be written together (`is_atomic` false) may be spread over several batches."""

    records: Records
    reply: T
    is_replayed: bool = True
    is_atomic: bool = True
    on_done: Done | None = None


class Shard(Protocol):
    """The state machine of one partition. Nothing here waits."""

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, key: Message, value: Message | None
    ) -> None:
        """Take over a record that was written, now or before a restart. The producer is -1 outside of
        transactions."""

    def replay_end_transaction_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Take over that a transaction with records of this partition has ended."""

    def on_loaded(self, image: "MetadataImage") -> None:
        """All records that the log has were replayed: requests come from here on."""

    def on_new_metadata_image(self, image: "MetadataImage", delta: "MetadataDelta") -> None:
        """The cluster's metadata have changed."""

    def on_unloaded(self) -> None:
        """The shard is not needed any more: it is answered that this is not the coordinator."""

    def state(self) -> Any:
        """All that records add up to, as a plain value: two shards with the same log have equal ones."""


class ShardTimers(Protocol):
    """Operations that run later, by keys of a shard. They end with the shard."""

    def schedule(
        self, key: object, delay_ms: int, operation: "TimedOperation", *, retry: bool = True
    ) -> None:
        """Run an operation after a while; what was scheduled for the key before is forgotten.

        With `retry`, one whose records could not be written runs again a little later."""

    def schedule_if_absent(
        self, key: object, delay_ms: int, operation: "TimedOperation", *, retry: bool = True
    ) -> None:
        """Likewise, unless something is scheduled for the key."""

    def cancel(self, key: object) -> None:
        """Forget what is scheduled for a key, if there is anything."""

    def is_scheduled(self, key: object) -> bool:
        """Whether anything is scheduled for a key."""


#: They are given the shard and the present time.
Operation: TypeAlias = Callable[[S_contra, int], Decision[T]]
Reading: TypeAlias = Callable[[S_contra, int], T]
#: It is given the present time.
TimedOperation: TypeAlias = Callable[[int], Decision[None]]


class ShardContext(NamedTuple):
    """What a shard is made with."""

    partition: int
    """The partition whose state it is."""
    timers: ShardTimers
    image: "MetadataImage"
    """The cluster's metadata; one object that changes as they do."""
