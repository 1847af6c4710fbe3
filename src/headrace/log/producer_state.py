"""What a partition knows about its producers, and the snapshots that keep it over restarts.

State changes only by `update` and `complete`, after the bytes they stand for were written, so that a
failed write leaves no trace. Snapshots are taken at the offset the state stands at (`end_offset`)."""

from collections.abc import Iterable

from headrace.log.append_origin import AppendOrigin
from headrace.log.log_position import LogPosition
from headrace.log.open_transactions import TransactionsByOffset
from headrace.log.producer_append import ProducerAppend
from headrace.log.producer_entry import (
    CompletedTransaction,
    OpenTransaction,
    ProducerEntry,
    VerificationEntry,
)
from headrace.log.producer_snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from headrace.log.segment_files import DELETED_SUFFIX, snapshot_path
from headrace.log.settings import ProducerStateSettings
from headrace.ports import Disk, File

LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000


class ProducerState:
    """All producers of one partition."""

    __slots__ = (
        "_disk",
        "_max_transaction_timeout_ms",
        "directory",
        "end_offset",
        "entries",
        "last_snapshot_offset",
        "name",
        "ongoing",
        "settings",
        "snapshot_offsets",
        "unreplicated",
        "verifications",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        name: str,
        settings: ProducerStateSettings,
        snapshot_offsets: Iterable[int] = (),
        max_transaction_timeout_ms: int = 900_000,
    ) -> None:
        self._disk = disk
        self._max_transaction_timeout_ms = max_transaction_timeout_ms
        self.directory = directory
        self.name = name
        self.settings = settings
        self.entries: dict[int, ProducerEntry] = {}
        self.verifications: dict[int, VerificationEntry] = {}
        self.ongoing = TransactionsByOffset()
        self.unreplicated = TransactionsByOffset()
        self.snapshot_offsets: list[int] = sorted(snapshot_offsets)
        self.end_offset = 0
        self.last_snapshot_offset = 0

    @property
    def is_empty(self) -> bool:
        return not self.entries and not self.unreplicated

    @property
    def has_no_transactions(self) -> bool:
        """Whether nothing is open or waits for its marker to be replicated."""
        return not len(self.ongoing) and not len(self.unreplicated)

    # Appending

    def prepare(self, producer_id: int, origin: AppendOrigin) -> ProducerAppend:
        """Begin to collect what one append changes about one producer."""
        entry = self.entries.get(producer_id) or ProducerEntry(producer_id)
        return ProducerAppend(self.name, entry, origin, self.verifications.get(producer_id))

    def update(self, append: ProducerAppend) -> None:
        """Take over an append's changes, once its bytes are written."""
        updated = append.updated
        known = self.entries.get(updated.producer_id)
        if known is None:
            self.entries[updated.producer_id] = updated
        else:
            known.merge(updated)
        for transaction in append.started:
            self.ongoing.add(transaction)

    def complete(self, completed: CompletedTransaction) -> None:
        """Note a marker; the transaction stays unstable until the high watermark has passed it."""
        transaction = self.ongoing.pop(completed.first_offset)
        if transaction is None:
            raise ValueError(f"{completed} ends a transaction that was not begun in {self.name}")
        transaction.last_offset = completed.last_offset
        self.unreplicated.add(transaction)

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset once this transaction has ended, as the transaction index records it."""
        for transaction in self.ongoing:
            if transaction.producer_id != completed.producer_id:
                return transaction.first.offset
        return completed.last_offset + 1

    # Transactions

    def first_unstable(self) -> LogPosition | None:
        """Where the oldest transaction begins that is open or whose marker is not replicated yet."""
        undecided = self.ongoing.oldest()
        unreplicated = self.unreplicated.oldest()
        if undecided is None:
            return unreplicated.first if unreplicated is not None else None
        if unreplicated is None or undecided.first.offset < unreplicated.first.offset:
            return undecided.first
        return unreplicated.first

    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        undecided = self.ongoing.oldest()
        return undecided.first.offset if undecided is not None else None

    def forget_replicated(self, offset: int) -> None:
        """Drop ended transactions whose markers lie below `offset`, the high watermark or log start."""
        if not len(self.unreplicated):
            return
        replicated = [
            transaction.first.offset
            for transaction in self.unreplicated
            if transaction.last_offset is not None and transaction.last_offset < offset
        ]
        for first_offset in replicated:
            self.unreplicated.pop(first_offset)

    def has_late_transaction(self, now_ms: int) -> bool:
        """Whether the oldest transaction is open for longer than any coordinator would let it."""
        oldest = self.ongoing.oldest()
        entry = self.entries.get(oldest.producer_id) if oldest is not None else None
        if entry is None or entry.last_timestamp <= 0:
            return False
        return now_ms - entry.last_timestamp > self._max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return entry is not None and entry.transaction_first_offset is not None and entry.epoch == epoch

    # Verification

    def begin_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationEntry:
        """The verification of this producer, begun now if none is under way."""
        entry = self.verifications.get(producer_id)
        if entry is None:
            entry = VerificationEntry(now_ms, sequence, epoch, supports_epoch_bump)
            self.verifications[producer_id] = entry
        entry.observe(sequence, epoch)
        return entry

    # Expiry

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers and verifications that have been idle for too long."""
        expired = [
            producer_id for producer_id, entry in self.entries.items() if self._is_expired(entry, now_ms)
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        age_max = self.settings.producer_id_expiration_ms
        stale = [
            producer_id
            for producer_id, entry in self.verifications.items()
            if now_ms - entry.timestamp >= age_max
        ]
        for producer_id in stale:
            del self.verifications[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        if entry.transaction_first_offset is not None:
            return False
        return now_ms - entry.last_timestamp >= self.settings.producer_id_expiration_ms

    # Snapshots

    def snapshot_path(self, offset: int) -> str:
        return snapshot_path(self.directory, offset)

    def take_snapshot(self) -> File | None:
        """Write the state at `end_offset` unless that is done already; the caller syncs the file."""
        if self.end_offset <= self.last_snapshot_offset:
            return None
        file = self._disk.open(self.snapshot_path(self.end_offset), create=True)
        file.truncate(0)
        file.append(encode_snapshot(self.entries.values()))
        self._note_snapshot(self.end_offset)
        self.last_snapshot_offset = self.end_offset
        return file

    def _note_snapshot(self, offset: int) -> None:
        if offset not in self.snapshot_offsets:
            self.snapshot_offsets.append(offset)
            self.snapshot_offsets.sort()

    def remove_snapshot(self, offset: int) -> None:
        """Delete one snapshot at once."""
        if offset in self.snapshot_offsets:
            self.snapshot_offsets.remove(offset)
            _remove_if_there(self._disk, self.snapshot_path(offset))

    def retire_snapshot(self, offset: int) -> str | None:
        """Rename one snapshot for later deletion; returns its new path if it was there."""
        if offset not in self.snapshot_offsets:
            return None
        self.snapshot_offsets.remove(offset)
        path = self.snapshot_path(offset)
        retired = path + DELETED_SUFFIX
        try:
            self._disk.rename(path, retired)
        except FileNotFoundError:
            return None
        return retired

    def remove_stray_snapshots(self, segment_bases: Iterable[int]) -> None:
        """Keep the snapshots at segment bases and the newest other one, if it lies beyond the last base."""
        bases = set(segment_bases)
        strays = [offset for offset in self.snapshot_offsets if offset not in bases]
        if strays and (not bases or strays[-1] >= max(bases)):
            strays.pop()
        for offset in strays:
            self.remove_snapshot(offset)

    # Loading and truncation

    def reload(self, log_start: int, log_end: int, now_ms: int) -> None:
        """Go back to the newest snapshot within the log, unless the state stands at `log_end` already."""
        for offset in list(self.snapshot_offsets):
            if offset > log_end or offset <= log_start:
                self.remove_snapshot(offset)
        if log_end == self.end_offset:
            self.on_log_start_moved(log_start)
            return
        self._clear()
        self._load_newest_snapshot(log_start, now_ms)

    def on_log_start_moved(self, log_start: int) -> None:
        self.forget_replicated(log_start)
        self.end_offset = max(self.end_offset, log_start)
        self.last_snapshot_offset = self.snapshot_offsets[-1] if self.snapshot_offsets else log_start

    def start_afresh(self, offset: int) -> None:
        """Forget everything: the log begins anew at `offset`."""
        self._clear()
        for snapshot in list(self.snapshot_offsets):
            self.remove_snapshot(snapshot)
        self.last_snapshot_offset = 0
        self.end_offset = offset

    def _clear(self) -> None:
        self.entries.clear()
        self.ongoing.clear()
        self.unreplicated.clear()

    def _load_newest_snapshot(self, log_start: int, now_ms: int) -> None:
        while self.snapshot_offsets:
            offset = self.snapshot_offsets[-1]
            path = self.snapshot_path(offset)
            try:
                entries = decode_snapshot(self._disk.read(path), path)
            except (CorruptSnapshot, FileNotFoundError):
                # A snapshot is a shortcut: without it, more of the log is replayed.
                self.remove_snapshot(offset)
                continue
            self.load(entries, now_ms)
            self.end_offset = self.last_snapshot_offset = offset
            return
        self.end_offset = self.last_snapshot_offset = log_start

    def load(self, entries: Iterable[ProducerEntry], now_ms: int) -> None:
        """Take over producers from elsewhere, except those that have expired meanwhile."""
        for entry in entries:
            if self._is_expired(entry, now_ms):
                continue
            self.entries[entry.producer_id] = entry
            first_offset = entry.transaction_first_offset
            if first_offset is not None:
                self.ongoing.add(OpenTransaction(entry.producer_id, LogPosition(first_offset)))


def _remove_if_there(disk: Disk, path: str) -> None:
    try:
        disk.remove(path)
    except FileNotFoundError:
        # Somebody has removed it by hand; that is the state we want.
        return
