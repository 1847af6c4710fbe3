"""How far each log was compacted: one checkpoint file per log directory, held in memory, written through."""

import asyncio
from collections.abc import Container, Iterable
from logging import getLogger
from typing import Final

from headrace.log.checkpoints import CLEANER_OFFSET, CorruptCheckpoint, read_offsets, write_offsets
from headrace.ports import Disk
from headrace.types import TopicPartition

LOGGER: Final = getLogger(__name__)


class CleanerCheckpoints:
    """The first dirty offset of every partition that has been compacted, by log directory.

    Entries of partitions that are not among `known` any more go with the next write: a topic of the same name
    must not begin with them."""

    __slots__ = ("_disk", "_known", "_offsets", "_unwritten", "_writing")

    def __init__(self, disk: Disk, directories: Iterable[str], known: Container[TopicPartition]) -> None:
        self._disk = disk
        self._known = known
        self._writing = asyncio.Lock()
        self._unwritten: set[str] = set()
        self._offsets = {directory: self._read(directory) for directory in directories}

    def get(self, directory: str, partition: TopicPartition) -> int | None:
        """The first dirty offset; None if the partition was never compacted."""
        return self._offsets.get(directory, {}).get(partition)

    async def put(self, directory: str, partition: TopicPartition, offset: int) -> None:
        """Note how far a partition is clean; durable on return."""
        offsets = self._offsets.get(directory)
        if offsets is not None and offsets.get(partition) != offset:
            offsets[partition] = offset
            await self._write(directory)

    async def lower(self, directory: str, partition: TopicPartition, offset: int) -> None:
        """After a truncation: what lies from `offset` on will be new."""
        known = self.get(directory, partition)
        if known is not None and known > offset:
            await self.put(directory, partition, offset)

    async def remove(self, directory: str, partition: TopicPartition) -> None:
        """Forget a partition that was deleted or has moved."""
        if self._offsets.get(directory, {}).pop(partition, None) is not None:
            await self._write(directory)

    def drop_directory(self, directory: str) -> None:
        """Stop reading and writing in a directory that has failed."""
        self._offsets.pop(directory, None)

    def _read(self, directory: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(self._disk, f"{directory}/{CLEANER_OFFSET}")
        except CorruptCheckpoint as error:
            # Compacting what is clean already costs time and nothing else.
            LOGGER.warning("%s; its logs are compacted from their start", error)
            return {}

    async def _write(self, directory: str) -> None:
        path = f"{directory}/{CLEANER_OFFSET}"
        self._unwritten.add(directory)
        async with self._writing:
            if directory not in self._unwritten:
                # The write before has taken this change along: of a topic's partitions all go at once.
                return
            self._unwritten.discard(directory)
            offsets = {
                each: offset for each, offset in self._offsets[directory].items() if each in self._known
            }
            self._offsets[directory] = dict(offsets)
            await self._disk.off_loop(lambda: write_offsets(self._disk, path, offsets))
