"""Where an offset lies on disk: the segment that holds it and the byte its batch starts at.

A position may be known by offset alone; whoever needs the bytes asks the log to complete it."""

from typing import NamedTuple

UNKNOWN = -1


class LogPosition(NamedTuple):
    """An offset with its place in the log's files, where that is known."""

    offset: int
    segment_base: int = UNKNOWN
    position: int = UNKNOWN

    @property
    def is_offset_only(self) -> bool:
        """Whether the place on disk has not been looked up."""
        return self.segment_base == UNKNOWN and self.position == UNKNOWN

    def is_on_older_segment_than(self, other: "LogPosition") -> bool:
        """Whether both places are known and this one lies in an earlier segment."""
        if self.is_offset_only or other.is_offset_only:
            return False
        return self.segment_base < other.segment_base
