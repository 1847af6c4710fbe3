"""What can be wrong with an index. None of it is fatal: an index can be rebuilt from its log."""

from headrace.errors import HeadraceError


class CorruptIndex(HeadraceError):
    """An index file that cannot be what was written; rebuild it from the segment's log."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is corrupt: {reason}")
        self.path = path
        self.reason = reason


class OffsetOverflow(HeadraceError):
    """An offset too far from a segment's base to be written relative to it; roll, or split the segment."""

    def __init__(self, path: str, base_offset: int, offset: int) -> None:
        super().__init__(f"offset {offset} does not fit in {path}, whose base offset is {base_offset}")
        self.base_offset = base_offset
        self.offset = offset


class IndexOutOfOrder(HeadraceError):
    """An entry that does not follow the one before it."""
