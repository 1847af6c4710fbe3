"""Batches for the log's tests: short, readable, and always with the fields that matter spelled out."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import ParamSpec

from headrace.records.batch import Batch, batches
from headrace.records.builder import NewRecord, build_batch
from headrace.records.compression import Compression
from headrace.records.control import ControlType, build_end_transaction_marker
from headrace.records.reader import Record, read_records

P = ParamSpec("P")
NOW_MS = 1_700_000_000_000
LEADER_EPOCH = 3


def on_loop(scenario: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test that awaits on an event loop of its own."""

    @wraps(scenario)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(scenario(*args, **kwargs))

    return run


def plain_batch(
    count: int = 1,
    *,
    size: int = 10,
    timestamp: int = NOW_MS,
    keys: Iterable[bytes | None] | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    compression: Compression = Compression.NONE,
) -> bytearray:
    """Records with distinct values, `count` of them."""
    listed = list(keys) if keys is not None else [b"k%d" % index for index in range(count)]
    records = [
        NewRecord(timestamp + index, key, (b"%d." % index).ljust(size, b"v"))
        for index, key in enumerate(listed)
    ]
    return bytearray(
        build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch, compression=compression)
    )


def producer_batch(
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = NOW_MS,
    value: bytes = b"value",
) -> bytearray:
    """A batch of an idempotent or transactional producer."""
    return bytearray(
        build_batch(
            [NewRecord(timestamp, b"p%d" % producer_id, value) for _ in range(count)],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
            leader_epoch=leader_epoch,
        )
    )


def marker(
    producer_id: int,
    kind: ControlType = ControlType.COMMIT,
    *,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp: int = NOW_MS,
) -> bytearray:
    """The end of a transaction."""
    return bytearray(
        build_end_transaction_marker(
            kind,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=timestamp,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
        )
    )


def only_batch(data: bytes | bytearray) -> Batch:
    """The one batch in a buffer."""
    (batch,) = batches(data)
    return batch


def records_in(data: bytes) -> list[Record]:
    """Every data record in a stretch of log."""
    return [record for batch in batches(data) if not batch.is_control for record in read_records(batch)]
