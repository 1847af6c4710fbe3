"""Rows to batches: encoded on the spot, compressed in threads where the codec lets go of the interpreter."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from headrace.client.config import ClientConfig
from headrace.client.open_rows import Cut
from headrace.client.pending_batch import Payload, PendingBatch, new_batch
from headrace.records.arrow_builder import encoded_records
from headrace.records.arrow_reader import read_columns
from headrace.records.compression import LEVEL_DEFAULT, Compression, compress
from headrace.types import TopicPartition

# The other codecs are done before a thread has started.
_SLOW: Final = frozenset({Compression.GZIP, Compression.ZSTD})
_THREADS: Final = 4
# What a thread gets at a time: enough to be worth waking up for.
_JOB_BYTES: Final = 128 * 1024


class Encoder:
    """Makes batches with one codec. Close it to let its threads go."""

    __slots__ = ("_compression", "_level", "_threads")

    def __init__(self, config: ClientConfig) -> None:
        self._compression = Compression[config.compression_type.upper()]
        self._level = _level(self._compression, config)
        self._threads: ThreadPoolExecutor | None = None
        if self._compression in _SLOW or self._is_thorough_lz4:
            self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-compress")

    @property
    def _is_thorough_lz4(self) -> bool:
        return self._compression == Compression.LZ4 and self._level != LEVEL_DEFAULT[Compression.LZ4]

    @property
    def is_threaded(self) -> bool:
        """Whether encoding takes a while, during which other things happen."""
        return self._threads is not None

    async def encode(self, cut: Cut, slots: Sequence[TopicPartition]) -> list[PendingBatch]:
        """The batches of rows, in their order."""
        payloads = [Payload(*each) for each in encoded_records(cut.batch, cut.firsts)]
        compressed = await self._compressed(payloads)
        return [
            new_batch(slots[slot], payload, self._compression, written_ms)
            for slot, written_ms, payload in zip(cut.slots, cut.written_ms, compressed, strict=True)
        ]

    def split(self, batch: PendingBatch) -> list[PendingBatch]:
        """The records of a batch that was too large, in two."""
        columns = read_columns(batch.data, check_crcs=False)
        firsts = np.array([0, batch.count // 2, batch.count], np.int64)
        halves = (Payload(*each) for each in encoded_records(columns, firsts))
        return [
            new_batch(batch.partition, self._compress(half), self._compression, batch.created_ms)
            for half in halves
        ]

    def close(self) -> None:
        """Let the threads go."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _compressed(self, payloads: list[Payload]) -> list[Payload]:
        if self._compression == Compression.NONE:
            return payloads
        if self._threads is None:
            return self._compress_all(payloads)
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(self._threads, self._compress_all, part) for part in _jobs(payloads)]
        return [payload for part in await asyncio.gather(*jobs) for payload in part]

    def _compress_all(self, payloads: list[Payload]) -> list[Payload]:
        return [self._compress(payload) for payload in payloads]

    def _compress(self, payload: Payload) -> Payload:
        return payload._replace(records=compress(self._compression, payload.records, self._level))


def _level(compression: Compression, config: ClientConfig) -> int | None:
    return {
        Compression.GZIP: config.compression_gzip_level,
        Compression.LZ4: config.compression_lz4_level,
        Compression.ZSTD: config.compression_zstd_level,
    }.get(compression)


def _jobs(payloads: list[Payload]) -> list[list[Payload]]:
    jobs: list[list[Payload]] = []
    room = 0
    for payload in payloads:
        if room <= 0:
            jobs.append([])
            room = _JOB_BYTES
        jobs[-1].append(payload)
        room -= len(payload.records)
    return jobs
