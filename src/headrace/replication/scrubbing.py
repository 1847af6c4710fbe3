"""Looks through everything on disk again and again, slowly, for bits that have flipped since.

A pass goes through every segment and is spread over its time in rounds; a round reads its share in a worker
process, a piece at a time, and rests in between. Damage is told with file and position, and consumers are not
given it from then on. Nothing is changed on disk."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from logging import getLogger
from typing import Final

from headrace.log.log_errors import CorruptLog
from headrace.log.partition_log import PartitionLog
from headrace.log.scrub import Stretch, scrub_stretch
from headrace.log.segment import Segment
from headrace.ports import Disk, Workers
from headrace.types import TopicPartition

LOGGER: Final = getLogger(__name__)
ROUNDS_PER_PASS: Final = 168
PIECE_BYTES: Final = 8 * 1024 * 1024
LOGS_PER_TURN: Final = 256
_HOUR_MS: Final = 3_600_000


@dataclass(slots=True, frozen=True)
class ScrubSettings:
    """How long a pass takes, and how fast bytes are read at most."""

    pass_hours: int
    bytes_per_second: int

    @property
    def round_ms(self) -> int:
        """The time between two rounds."""
        return self.pass_hours * _HOUR_MS // ROUNDS_PER_PASS


class Reading:
    """A segment that is being read, and how it was when that began."""

    __slots__ = ("_cuts", "log", "segment", "stretch")

    def __init__(self, log: PartitionLog, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self.stretch = Stretch(segment.log.path, segment.base_offset, 0, segment.size)
        self._cuts = log.truncations

    @property
    def is_outdated(self) -> bool:
        """Whether other bytes may have taken the place of those that are being read."""
        log, segment = self.log, self.segment
        is_same = log.truncations == self._cuts and log.segments.get(segment.base_offset) is segment
        return log.is_closed or not is_same


class Scrubber:
    """The passes over the logs of one node."""

    __slots__ = (
        "_left",
        "_logs",
        "_open_disk",
        "_reading",
        "_rounds",
        "_settings",
        "_share",
        "_workers",
        "bytes_read",
        "damages",
    )

    def __init__(
        self,
        logs: Mapping[TopicPartition, PartitionLog],
        workers: Workers,
        open_disk: Callable[[], Disk],
        settings: ScrubSettings,
    ) -> None:
        self._logs = logs
        self._workers = workers
        self._open_disk = open_disk
        self._settings = settings
        self._left: list[tuple[TopicPartition, int]] = []
        self._reading: Reading | None = None
        self._rounds = 0
        self._share = 0
        self.bytes_read = 0
        self.damages = 0

    async def run_round(self) -> None:
        """Read one share of a pass; the next pass begins when this one's time is up."""
        if self._rounds % ROUNDS_PER_PASS == 0:
            await self._begin_pass()
        self._rounds += 1
        wanted = self.bytes_read + self._share
        while self.bytes_read < wanted and self._find():
            await self._read(min(PIECE_BYTES, wanted - self.bytes_read))

    async def _begin_pass(self) -> None:
        self._left.clear()
        total = 0
        for number, log in enumerate(list(self._logs.values()), 1):
            for segment in log.segments:
                if segment.size:
                    self._left.append((log.partition, segment.base_offset))
                    total += segment.size
            if number % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._share = total // ROUNDS_PER_PASS + 1

    def _find(self) -> bool:
        """Whether there is anything left to read."""
        while self._reading is None and self._left:
            partition, base_offset = self._left.pop()
            log = self._logs.get(partition)
            segment = None if log is None else log.segments.get(base_offset)
            if log is not None and segment is not None:
                self._reading = Reading(log, segment)
        return self._reading is not None

    async def _read(self, bytes_max: int) -> None:
        """Read a piece of the segment in hand; it is let go at its end, or if it is not what it was."""
        reading = self._reading
        assert reading is not None
        if reading.is_outdated:
            self._reading = None
            return
        stretch = reading.stretch
        try:
            scrubbed = await self._workers.run(scrub_stretch, self._open_disk, stretch, bytes_max)
        except FileNotFoundError:
            self._reading = None
            return
        except OSError as error:
            self._reading = None
            raise reading.log.health.fail(f"reading {stretch.path} again", error) from error
        if reading.is_outdated:
            self._reading = None
            return
        for damage in scrubbed.damages:
            self._report(reading, damage)
        count = scrubbed.position - stretch.position
        self.bytes_read += count
        reading.stretch = stretch._replace(position=scrubbed.position)
        if scrubbed.position >= stretch.size:
            self._reading = None
        await asyncio.sleep(count / self._settings.bytes_per_second)

    def _report(self, reading: Reading, damage: CorruptLog) -> None:
        self.damages += 1
        LOGGER.error("%s: %s; it is not served from now on", reading.log.partition, damage)
        reading.log.verifier.distrust(reading.segment.base_offset, reading.segment.size)
