"""Replays what the quorum commits into the image and tells subscribers what has changed.

Records between the beginning and the end of a metadata transaction count from its end on, all at once, and
not at all if it is aborted. `image.offset` stays before an open transaction, so that a snapshot never holds
half of one."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from headrace.errors import HeadraceError
from headrace.metadata.delta import MetadataDelta
from headrace.metadata.image import MetadataImage, UnreplayableRecord
from headrace.protocol.disk_records.cluster_metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from headrace.protocol.message import Message
from headrace.protocol.prefixed import decode_metadata_record
from headrace.raft.batches import ControlBatch, DataBatch
from headrace.raft.snapshots import SnapshotId

Subscriber = Callable[[MetadataDelta, MetadataImage], None]
NO_TRANSACTION: Final = -1
DECODED_AT_ONCE: Final = 200
logger: Final = logging.getLogger("headrace.metadata")


class MetadataStore:
    """The committed image of this node. It listens to the quorum (`raft.quorum.QuorumListener`)."""

    __slots__ = (
        "_open_records",
        "_prepared",
        "_subscribers",
        "bytes_since_snapshot",
        "image",
        "transaction_offset",
    )

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.bytes_since_snapshot = 0
        #: Where the open metadata transaction begins, if there is one.
        self.transaction_offset = NO_TRANSACTION
        self._open_records: list[tuple[int, Message]] = []
        self._prepared: tuple[int, list[Message]] | None = None
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        """Be called after every committed change with what has changed and the image as it is now.

        It is called on the event loop, before those who asked for the change get their reply, and must not
        wait. Should it fail, that is logged and the others are told nevertheless."""
        self._subscribers.append(subscriber)

    def on_snapshot_batch(self, batch: DataBatch) -> None:
        """Take over records of a snapshot."""
        delta = MetadataDelta()
        for value in batch.values:
            self.image.apply(_decode(value), delta)

    def on_snapshot(self, snapshot_id: SnapshotId, timestamp: int) -> None:
        """Note where the snapshot ends."""
        image = self.image
        image.offset, image.epoch, image.timestamp = snapshot_id.offset - 1, snapshot_id.epoch, timestamp
        for broker_id in image.brokers:
            image.registration_offsets[broker_id] = snapshot_id.offset - 1
        self.bytes_since_snapshot = 0

    def prepare(self, batch: DataBatch) -> Iterator[None]:
        """Decode the records of a batch a few at a time; `on_committed` takes them over all at once."""
        if len(batch.values) > DECODED_AT_ONCE:
            records: list[Message] = []
            for start in range(0, len(batch.values), DECODED_AT_ONCE):
                records += [_decode(value) for value in batch.values[start : start + DECODED_AT_ONCE]]
                yield
            self._prepared = batch.base_offset, records

    def on_committed(self, batch: DataBatch | ControlBatch) -> None:
        """Replay a batch of the log."""
        delta = MetadataDelta()
        if isinstance(batch, DataBatch):
            self._replay(batch, delta)
        self.bytes_since_snapshot += batch.size
        image = self.image
        if self.transaction_offset == NO_TRANSACTION:
            image.offset, image.epoch = batch.last_offset, batch.epoch
            image.timestamp = batch.append_timestamp
        if not delta.is_empty:
            self._tell(delta)

    def _tell(self, delta: MetadataDelta) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(delta, self.image)
            except Exception:
                # What is committed stays committed, and the others have to hear of it all the same.
                logger.exception("a subscriber failed to follow the metadata to offset %d", self.image.offset)

    def _replay(self, batch: DataBatch, delta: MetadataDelta) -> None:
        try:
            for offset, record in enumerate(self._records_of(batch), batch.base_offset):
                self._replay_record(offset, record, delta)
        except UnreplayableRecord as problem:
            raise UnreplayableRecord(f"the metadata batch at offset {batch.base_offset}: {problem}") from None

    def _records_of(self, batch: DataBatch) -> Iterable[Message]:
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared[0] == batch.base_offset:
            return prepared[1]
        return map(_decode, batch.values)

    def _replay_record(self, offset: int, record: Message, delta: MetadataDelta) -> None:
        match record:
            case BeginTransactionRecord():
                if self.transaction_offset != NO_TRANSACTION:
                    raise UnreplayableRecord(f"a transaction begins at {offset} within another")
                self.transaction_offset = offset
            case EndTransactionRecord():
                self._require_transaction(offset)
                for at, held in self._open_records:
                    self.image.apply(held, delta, at)
                self._close_transaction()
            case AbortTransactionRecord():
                self._require_transaction(offset)
                self._close_transaction()
            case _ if self.transaction_offset != NO_TRANSACTION:
                self._open_records.append((offset, record))
            case _:
                self.image.apply(record, delta, offset)

    def _require_transaction(self, offset: int) -> None:
        if self.transaction_offset == NO_TRANSACTION:
            raise UnreplayableRecord(f"a transaction ends at {offset} that has not begun")

    def _close_transaction(self) -> None:
        self.transaction_offset = NO_TRANSACTION
        self._open_records = []


def _decode(value: bytes) -> Message:
    try:
        return decode_metadata_record(value)[0]
    except HeadraceError as problem:
        raise UnreplayableRecord(f"a record that cannot be read: {problem}") from problem


def decode_all(values: Sequence[bytes]) -> list[Message]:
    """The records in some values."""
    return [_decode(value) for value in values]
