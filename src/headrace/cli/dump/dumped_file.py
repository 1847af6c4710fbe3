"""One file that is being dumped: its names, and its bytes through the disk port."""

from dataclasses import dataclass

from headrace.cli.dump.line import DumpError
from headrace.cli.dump.segment_file import SegmentFile
from headrace.ports import Disk, File

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """A file as the user named it, and where that is."""

    path: str
    absolute: str
    disk: Disk

    @property
    def name(self) -> str:
        return self.absolute.rpartition("/")[2]

    def base_offset(self) -> int:
        """The offset that the file's name starts with."""
        stem = self.name.split(".")[0]
        try:
            return int(stem)
        except ValueError:
            raise DumpError(
                f"{self.path}: the name of a segment's file starts with its offset, like "
                f"00000000000000000000{LOG_SUFFIX}; {stem!r} is none"
            ) from None

    def open(self) -> File:
        return self._open(self.absolute)

    def segment(self) -> SegmentFile:
        """This file as a log."""
        return SegmentFile(self.open(), self.path)

    def log_beside(self) -> SegmentFile:
        """The log of the same segment, which an index is checked against."""
        return SegmentFile(self._open(self._beside(LOG_SUFFIX)), self._beside(LOG_SUFFIX))

    def offset_index_beside(self) -> File:
        """The offset index of the same segment."""
        return self._open(self._beside(INDEX_SUFFIX))

    def _beside(self, suffix: str) -> str:
        directory = self.absolute.rpartition("/")[0]
        return f"{directory}/{self.name.split('.')[0]}{suffix}"

    def _open(self, absolute: str) -> File:
        if self.disk.is_directory(absolute):
            raise DumpError(f"{absolute} is a directory; name the files in it, like {absolute}/*{LOG_SUFFIX}")
        try:
            return self.disk.open(absolute)
        except FileNotFoundError:
            raise DumpError(f"{absolute}: no such file") from None
        except OSError as error:
            raise DumpError(f"{absolute}: {error.strerror or error}") from error
