"""Rows to batches. Few are encoded on the spot, many in threads, where Arrow, numpy and the codecs do most of
the work and let go of the interpreter meanwhile."""

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
# Less than this is encoded sooner than a thread wakes up.
_THREAD_BYTES_MIN: Final = 256 * 1024
# What a thread gets to compress at a time.
_JOB_BYTES: Final = 128 * 1024


class Encoder:
    """Makes batches with one codec. Close it to let its threads go."""

    __slots__ = ("_compression", "_is_slow", "_level", "_threads")

    def __init__(self, config: ClientConfig) -> None:
        self._compression = Compression[config.compression_type.upper()]
        self._level = _level(self._compression, config)
        is_thorough_lz4 = (
            self._compression == Compression.LZ4 and self._level != LEVEL_DEFAULT[Compression.LZ4]
        )
        self._is_slow = self._compression in _SLOW or is_thorough_lz4
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="headrace-encode")

    def is_quick(self, cut: Cut) -> bool:
        """Whether it is not worth a thread."""
        return not self._is_slow and cut.bytes_estimated < _THREAD_BYTES_MIN

    def encode_now(self, cut: Cut, slots: Sequence[TopicPartition]) -> list[PendingBatch]:
        """The batches of rows, in their order."""
        return self._batches(cut, slots, self._compress_all(_payloads(cut)))

    async def encode(self, cut: Cut, slots: Sequence[TopicPartition]) -> list[PendingBatch]:
        """The same in threads, while the loop does other things."""
        loop = asyncio.get_running_loop()
        if not self._is_slow:
            return await loop.run_in_executor(self._threads, self.encode_now, cut, slots)
        payloads = await loop.run_in_executor(self._threads, _payloads, cut)
        jobs = [loop.run_in_executor(self._threads, self._compress_all, part) for part in _jobs(payloads)]
        compressed = [payload for part in await asyncio.gather(*jobs) for payload in part]
        return self._batches(cut, slots, compressed)

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
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _batches(
        self, cut: Cut, slots: Sequence[TopicPartition], payloads: list[Payload]
    ) -> list[PendingBatch]:
        return [
            new_batch(slots[slot], payload, self._compression, written_ms)
            for slot, written_ms, payload in zip(cut.slots, cut.written_ms, payloads, strict=True)
        ]

    def _compress_all(self, payloads: list[Payload]) -> list[Payload]:
        return [self._compress(payload) for payload in payloads]

    def _compress(self, payload: Payload) -> Payload:
        return payload._replace(records=compress(self._compression, payload.records, self._level))


def _payloads(cut: Cut) -> list[Payload]:
    return [Payload(*each) for each in encoded_records(cut.batch, cut.firsts)]


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
