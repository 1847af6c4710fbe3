"""Dumps the small files beside a log: producer snapshots, aborted transactions, and checkpoint files."""

from dataclasses import dataclass
from struct import Struct

from headrace.cli.dump.dumped_file import DumpedFile
from headrace.cli.dump.findings import Findings
from headrace.cli.dump.line import DumpError, Fields, Lines, java_optional
from headrace.log.checkpoints import CorruptCheckpoint, parse_checkpoint
from headrace.log.producer_entry import ProducerEntry
from headrace.log.producer_snapshot import CorruptSnapshot, decode_snapshot

_ABORTED = Struct(">bxqqqq")
_ABORTED_VERSION_MAX = 0
_CHUNK_ENTRIES = 4096
LEADER_EPOCHS_NAME = "leader-epoch-checkpoint"
OFFSETS_SUFFIX = "-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class ProducerLine:
    """One producer of a snapshot."""

    entry: ProducerEntry

    def text(self) -> str:
        entry = self.entry
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch}"
            f" coordinatorEpoch: {entry.coordinator_epoch}"
            f" currentTxnFirstOffset: {java_optional(entry.transaction_first_offset)}"
            f" lastTimestamp: {entry.last_timestamp}"
        )
        for batch in entry.batches[:1]:
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta}"
                f" timestamp: {batch.timestamp}"
            )
        return line

    def fields(self) -> Fields:
        entry = self.entry
        found: Fields = {
            "kind": "producer",
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.transaction_first_offset,
            "lastTimestamp": entry.last_timestamp,
        }
        for batch in entry.batches[:1]:
            found |= {
                "firstSequence": batch.first_sequence,
                "lastSequence": batch.last_sequence,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.offset_delta,
                "timestamp": batch.timestamp,
            }
        return found


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A line whose text is its fields, one after the other."""

    kind: str
    values: dict[str, int | str]

    def text(self) -> str:
        return " ".join(f"{name}: {value}" for name, value in self.values.items())

    def fields(self) -> Fields:
        return {"kind": self.kind, **self.values}


def dump_producer_snapshot(dumped: DumpedFile, findings: Findings) -> Lines:
    """The producers of a snapshot; one that can't be trusted is reported, and the dump goes on."""
    file = dumped.open()
    try:
        entries = decode_snapshot(file.read_at(0, file.size), dumped.path)
    except CorruptSnapshot as error:
        findings.broke(dumped.path, str(error).removeprefix(dumped.path).strip())
        return
    for entry in entries:
        yield ProducerLine(entry)


def dump_transaction_index(dumped: DumpedFile, findings: Findings) -> Lines:
    """The aborted transactions of a segment."""
    dumped.base_offset()
    file = dumped.open()
    whole = file.size - file.size % _ABORTED.size
    chunk = _CHUNK_ENTRIES * _ABORTED.size
    for position in range(0, whole, chunk):
        rows = _ABORTED.iter_unpack(file.read_at(position, min(chunk, whole - position)))
        for version, producer_id, first, last, stable in rows:
            if version > _ABORTED_VERSION_MAX:
                raise DumpError(f"{dumped.path}: an aborted transaction of the unknown version {version}")
            values: dict[str, int | str] = {
                "version": version,
                "producerId": producer_id,
                "firstOffset": first,
                "lastOffset": last,
                "lastStableOffset": stable,
            }
            yield PlainLine("abortedTransaction", values)
    if whole != file.size:
        findings.broke(dumped.path, f"{file.size - whole} bytes after the last whole entry, at {whole}")


def is_checkpoint(name: str) -> bool:
    """Whether a file without a suffix is one of the checkpoint files that a broker keeps as text."""
    return name == LEADER_EPOCHS_NAME or name.endswith(OFFSETS_SUFFIX)


def dump_checkpoint(dumped: DumpedFile) -> Lines:
    """Leader epochs with their first offsets, or partitions with an offset each."""
    file = dumped.open()
    parse = _leader_epoch if dumped.name == LEADER_EPOCHS_NAME else _partition_offset
    try:
        yield from parse_checkpoint(dumped.path, file.read_at(0, file.size), parse)
    except CorruptCheckpoint as error:
        raise DumpError(f"{dumped.path}: {error.reason}") from error


def _leader_epoch(row: str) -> PlainLine:
    epoch, start = row.split()
    return PlainLine("leaderEpoch", {"epoch": int(epoch), "startOffset": int(start)})


def _partition_offset(row: str) -> PlainLine:
    topic, partition, offset = row.split()
    values: dict[str, int | str] = {"topic": topic, "partition": int(partition), "offset": int(offset)}
    return PlainLine("partitionOffset", values)
