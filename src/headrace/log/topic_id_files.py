"""Writes the `partition.metadata` of new logs soon after they were made, many at a time and off the loop.

A log whose directory lacks this file is a stray to Kafka, which puts it aside. Writing it costs two syncs,
which the first append need not wait for; an append that comes before it is written does so itself."""

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.log.partition_metadata import FILE_NAME, encode_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.log.health import DirectoryHealth
    from headrace.log.partition_log import PartitionLog
    from headrace.ports import Disk, File

WRITTEN_AT_ONCE: Final = 16
#: Not the temporary name of `Disk.replace`: an append, or the end of the log, may come first with that.
DRAFT_NAME: Final = f"{FILE_NAME}.new"


class _Draft(NamedTuple):
    """A file under its temporary name. The log may be renamed or deleted before it gets its own."""

    log: "PartitionLog"
    directory: str
    file: "File"

    @property
    def is_wanted(self) -> bool:
        return self.log.topic_id_unwritten and self.log.directory == self.directory


class TopicIdFiles:
    """The logs of one directory that wait for their file."""

    __slots__ = ("_disk", "_health", "_is_in_use", "_waiting")

    def __init__(
        self, disk: "Disk", health: "DirectoryHealth", is_in_use: "Callable[[PartitionLog], bool]"
    ) -> None:
        self._disk = disk
        self._health = health
        self._is_in_use = is_in_use
        self._waiting: dict[PartitionLog, None] = {}

    def expect(self, log: "PartitionLog") -> None:
        """Have the file of a log written if it is not there."""
        if log.topic_id_unwritten:
            self._waiting[log] = None

    async def write(self) -> int:
        """Write what is waiting; returns how many files that were."""
        written = 0
        while self._waiting:
            self._health.check()
            batch = list(self._waiting)[:WRITTEN_AT_ONCE]
            for log in batch:
                del self._waiting[log]
            try:
                written += await self._write_batch(batch)
            except OSError as error:
                raise self._health.fail("writing the topic ids of new partitions", error) from error
        return written

    async def _write_batch(self, logs: "list[PartitionLog]") -> int:
        drafts = [self._draft(log) for log in logs if log.topic_id_unwritten and self._is_in_use(log)]
        try:
            await self._disk.off_loop(lambda: _sync(drafts))
            placed = [draft for draft in drafts if _place(draft)]
            await self._disk.off_loop(lambda: self._sync_places(placed))
        finally:
            for draft in drafts:
                self._put_away(draft)
        for draft in placed:
            if draft.is_wanted:
                draft.log.topic_id_unwritten = False
        return len(placed)

    def _draft(self, log: "PartitionLog") -> _Draft:
        assert log.topic_id is not None
        file = self._disk.open(f"{log.directory}/{DRAFT_NAME}", create=True)
        file.truncate(0)
        file.append(encode_file(log.topic_id))
        return _Draft(log, log.directory, file)

    def _sync_places(self, drafts: list[_Draft]) -> None:
        for draft in drafts:
            try:
                self._disk.sync_directory(draft.directory)
            except FileNotFoundError:
                if draft.is_wanted:
                    raise

    def _put_away(self, draft: _Draft) -> None:
        draft.file.close()
        if draft.file.path.endswith(DRAFT_NAME) and draft.log.directory == draft.directory:
            with suppress(FileNotFoundError):
                self._disk.remove(draft.file.path)


def _sync(drafts: list[_Draft]) -> None:
    for draft in drafts:
        try:
            draft.file.sync()
        except FileNotFoundError:
            # The log has moved on, with its files.
            if draft.is_wanted:
                raise


def _place(draft: _Draft) -> bool:
    """Give the file its name, unless it was written meanwhile or its directory is no longer the log's."""
    if not draft.is_wanted:
        return False
    draft.file.rename(f"{draft.directory}/{FILE_NAME}")
    return True
