"""What a dump finds amiss: gathered while files are walked, told at the end, and deciding the exit code."""

from dataclasses import dataclass, field

from headrace.cli.dump.line import Fields

_TIME_HEADINGS = {
    "timestampMismatch": "Found timestamp mismatch in :",
    "timestampOutOfOrder": "Found out of order timestamp in :",
    "offsetNotFound": "The following indexed offsets are not found in :",
}
_TIME_PAIRS = {
    "timestampMismatch": "  Index timestamp: {}, log timestamp: {}",
    "timestampOutOfOrder": "  Index timestamp: {}, Previously indexed timestamp: {}",
    "offsetNotFound": "Indexed offset: {}, found log offset: {}",
}
_TIME_KEYS = {
    "timestampMismatch": ("indexTimestamp", "logTimestamp"),
    "timestampOutOfOrder": ("indexTimestamp", "previousTimestamp"),
    "offsetNotFound": ("indexOffset", "logOffset"),
}


@dataclass(slots=True)
class Findings:
    """Findings by the absolute path of the file they are about."""

    offset_mismatches: dict[str, dict[int, int]] = field(default_factory=dict)
    time_mismatches: dict[str, dict[str, list[tuple[int, int]]]] = field(default_factory=dict)
    gaps: dict[str, dict[int, int]] = field(default_factory=dict)
    broken: list[tuple[str, str]] = field(default_factory=list)

    def offset_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """The offset index names an offset that is not the last one of the batch it points at."""
        self.offset_mismatches.setdefault(path, {})[index_offset] = log_offset

    def time_mismatch(self, what: str, path: str, indexed: int, found: int) -> None:
        """The time index disagrees with the log, or with itself; `what` is one of the three kinds."""
        self.time_mismatches.setdefault(what, {}).setdefault(path, []).append((indexed, found))

    def gap(self, path: str, offset: int, following: int) -> None:
        """Offsets are missing between two records: usual in compacted logs and later segments."""
        self.gaps.setdefault(path, {})[offset] = following

    def broke(self, path: str, what: str) -> None:
        """Something that Kafka's tool shows in passing and that should not go unnoticed."""
        self.broken.append((path, what))

    @property
    def is_clean(self) -> bool:
        """Whether every file holds together; gaps between offsets are no fault."""
        return not (self.offset_mismatches or self.time_mismatches or self.broken)

    def text(self) -> list[str]:
        """The closing lines, in the order and shape of Kafka's tool, then what it does not tell."""
        lines: list[str] = []
        for path, pairs in self.offset_mismatches.items():
            lines.append(f"Mismatches in :{path}")
            lines += [f"  Index offset: {i}, log offset: {pairs[i]}" for i in sorted(pairs, reverse=True)]
        for what, heading in _TIME_HEADINGS.items():
            for path, entries in self.time_mismatches.get(what, {}).items():
                lines.append(heading + path)
                lines += [_TIME_PAIRS[what].format(*entry) for entry in entries]
        for path, pairs in self.gaps.items():
            lines.append(f"Non-consecutive offsets in {path}")
            lines += [f"  {offset} is followed by {pairs[offset]}" for offset in sorted(pairs)]
        return lines + [f"error: {path}: {what}" for path, what in self.broken]

    def fields(self) -> list[Fields]:
        """The same as JSON objects, one per finding."""
        found = [
            _finding("offsetMismatch", path, indexOffset=offset, logOffset=pairs[offset])
            for path, pairs in self.offset_mismatches.items()
            for offset in sorted(pairs, reverse=True)
        ]
        for what, (first, second) in _TIME_KEYS.items():
            for path, entries in self.time_mismatches.get(what, {}).items():
                found += [_finding(what, path, **{first: one, second: two}) for one, two in entries]
        found += [
            _finding("offsetGap", path, offset=offset, nextOffset=pairs[offset])
            for path, pairs in self.gaps.items()
            for offset in sorted(pairs)
        ]
        return found + [_finding("broken", path, message=what) for path, what in self.broken]


def _finding(what: str, path: str, **values: int | str) -> Fields:
    return {"kind": "finding", "finding": what, "file": path, **values}
