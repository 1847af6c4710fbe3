"""Replays a partition of an internal topic into its shard, in slices that do not hold up the event loop."""

import asyncio
import logging
from typing import Final

from headrace.coordinator.shard import Shard
from headrace.log.log_errors import StaleRange
from headrace.log.log_reads import Isolation
from headrace.log.partition_log import PartitionLog
from headrace.protocol.prefixed import CoordinatorRecords
from headrace.records.batch import Batch, batches
from headrace.records.control import ControlType, control_type_of_key
from headrace.records.reader import read_records
from headrace.replication.partition import Partition

CHUNK_BYTES: Final = 262_144
SLICE_RECORDS: Final = 100

logger: Final = logging.getLogger("headrace.coordinator")


class Loading:
    """One load of one partition. `records` and `size_bytes` tell what it took."""

    __slots__ = ("_codec", "_partition", "_shard", "offset", "records", "size_bytes")

    def __init__(self, partition: Partition, codec: CoordinatorRecords, shard: Shard) -> None:
        self._partition = partition
        self._codec = codec
        self._shard = shard
        self.offset = partition.leader_log.log_start_offset
        self.records = 0
        self.size_bytes = 0

    async def run(self) -> None:
        """Replay everything up to the log's end, which may move meanwhile.

        When this returns, nothing has been appended since its last look at the log."""
        while True:
            log = self._partition.leader_log
            if self.offset >= log.log_end_offset:
                return
            try:
                data = await self._read(log)
            except StaleRange:
                # Compaction has replaced the file meanwhile.
                continue
            if not data:
                # Everything from here to the end was compacted away.
                self.offset = log.log_end_offset
                return
            await self._replay(data)

    async def _read(self, log: PartitionLog) -> bytes:
        offset = max(self.offset, log.log_start_offset)
        found = log.read(offset, CHUNK_BYTES, Isolation.LOG_END, True).records
        return b"" if found is None else await log.disk.off_loop(found.read)

    async def _replay(self, data: bytes) -> None:
        self.size_bytes += len(data)
        since_pause = 0
        for batch in batches(data):
            if batch.next_offset <= self.offset:
                continue
            if batch.is_control:
                self._replay_control(batch)
            else:
                for record in read_records(batch):
                    self._replay_record(batch, record.offset, record.key, record.value)
                    since_pause += 1
                    if since_pause >= SLICE_RECORDS:
                        since_pause = 0
                        await asyncio.sleep(0)
            self.records += batch.count
            self.offset = batch.next_offset

    def _replay_control(self, batch: Batch) -> None:
        for record in read_records(batch):
            kind = control_type_of_key(record.key)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                self._shard.replay_end_transaction_marker(
                    batch.producer_id, batch.producer_epoch, kind is ControlType.COMMIT
                )

    def _replay_record(self, batch: Batch, offset: int, key: bytes | None, value: bytes | None) -> None:
        codec = self._codec
        kind = codec.type_of(key or b"")
        if not codec.has_type(kind):
            logger.warning(
                "%s has a record of unknown type %d at offset %d, which is passed over",
                self._partition.name,
                kind,
                offset,
            )
            return
        decoded_key = codec.decode_key(key or b"")
        decoded = None if value is None else codec.decode_value(decoded_key, value)[0]
        self._shard.replay(offset, batch.producer_id, batch.producer_epoch, decoded_key, decoded)
