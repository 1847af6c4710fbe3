"""What came of one partition in one fetch: whole batches that are known to be sound, not decoded yet.

Headers and checksums are looked at when the bytes arrive, so that the next fetch can leave at once and a
damaged batch is told with its offset; records are decoded when somebody takes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client.read_state import ReadState
from headrace.errors import KafkaError
from headrace.ports import BytesLike
from headrace.records.batch import Batch, batches


@dataclass(slots=True)
class Fetched:
    """Batches of one partition from `start` up to `end`, which is the position after them."""

    state: ReadState
    start: int
    end: int
    found: Sequence[Batch]
    aborted: Sequence[tuple[int, int]] | None
    size: int


@dataclass(slots=True, frozen=True)
class Scan:
    """The sound batches at the start of a partition's bytes, and what is wrong behind them, if anything."""

    found: list[Batch]
    damage: str | None

    @property
    def end(self) -> int | None:
        """The offset after the last batch."""
        return self.found[-1].next_offset if self.found else None


def scan(records: BytesLike, *, check_crcs: bool) -> Scan:
    """Look at the headers, and at the checksums if wanted. A torn batch at the end is left out."""
    found: list[Batch] = []
    try:
        for batch in batches(records):
            if check_crcs and not batch.crc_is_valid():
                return Scan(found, f"the batch at offset {batch.base_offset} does not match its checksum")
            found.append(batch)
    except KafkaError as error:
        return Scan(found, str(error))
    return Scan(found, None)
