"""The last offset of every key, within a fixed number of bytes: what compaction decides by.

Recent keys sit in a dict, which is fast but takes up to two hundred bytes an entry. When it is full its
entries settle in a table of 24 bytes each, so that a log with millions of keys still needs few passes. A
short key is its own name in the dict; a long one, and every settled one, is known by a cryptographic digest.
"""

from array import array
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from headrace.errors import HeadraceError

LOAD_FACTOR: Final = 0.9

# A name of up to 33 bytes (80), an offset (32), and a dict's slots at their emptiest, while it grows (88).
RECENT_ENTRY_BYTES: Final = 200
RECENT_SHARE: Final = 0.4
NAME_BYTES_MAX: Final = 32
# One byte longer than any key that is its own name, so that a digest is never taken for a key.
LONG_KEY_DIGEST_BYTES: Final = NAME_BYTES_MAX + 1

DIGEST_BYTES: Final = 16
OFFSET_BYTES: Final = 8
BUCKET_SLOTS: Final = 32
BUCKET_BYTES: Final = BUCKET_SLOTS * DIGEST_BYTES
SLOT_BYTES: Final = DIGEST_BYTES + OFFSET_BYTES
FILL_BYTES: Final = 1
ABSENT: Final = -1

KeyedRecord = tuple[int, bytes | None, bool]
"""A record's offset delta, its key and whether it has a value."""


class OffsetMapTooSmall(HeadraceError):
    """The configured buffer can't hold a single key."""

    def __init__(self, budget_bytes: int) -> None:
        super().__init__(
            f"a deduplication buffer of {budget_bytes} bytes cannot hold a single key, so compaction would "
            "never get on; raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads"
        )


class SettledOffsets:
    """Digest to offset in buckets of flat arrays. A bucket is searched by one call of `find`."""

    __slots__ = ("_buckets", "_digests", "_fills", "_offsets", "capacity", "size")

    def __init__(self, budget_bytes: int, load_factor: float) -> None:
        self._buckets = budget_bytes // (BUCKET_SLOTS * SLOT_BYTES + FILL_BYTES)
        slots = self._buckets * BUCKET_SLOTS
        # One slot stays free, so that a search for what is not there comes to an end.
        self.capacity = max(0, min(int(slots * load_factor), slots - 1))
        self.size = 0
        # Left empty until the first use: most logs never need the table.
        self._digests = bytearray()
        self._offsets = array("q")
        self._fills = bytearray()

    def put(self, entries: Iterable[tuple[bytes, int]]) -> None:
        """Enter names with their offsets; the caller sees to it that they fit."""
        if not self._digests:
            self._allocate()
        digests, offsets, fills = self._digests, self._offsets, self._fills
        find = digests.find
        for name, offset in entries:
            digest = blake2b(name, digest_size=DIGEST_BYTES).digest()
            bucket = hash(digest) % self._buckets
            start = bucket * BUCKET_BYTES
            fill = fills[bucket]
            position = find(digest, start, start + fill * DIGEST_BYTES)
            while position < 0 and fill == BUCKET_SLOTS:
                bucket = (bucket + 1) % self._buckets
                start = bucket * BUCKET_BYTES
                fill = fills[bucket]
                position = find(digest, start, start + fill * DIGEST_BYTES)
            if position < 0:
                position = start + fill * DIGEST_BYTES
                digests[position : position + DIGEST_BYTES] = digest
                fills[bucket] = fill + 1
                self.size += 1
            offsets[position // DIGEST_BYTES] = offset

    def get(self, name: bytes) -> int:
        """The offset entered for a name, or ABSENT."""
        if not self.size:
            return ABSENT
        digest = blake2b(name, digest_size=DIGEST_BYTES).digest()
        bucket = hash(digest) % self._buckets
        start = bucket * BUCKET_BYTES
        fill = self._fills[bucket]
        position = self._digests.find(digest, start, start + fill * DIGEST_BYTES)
        while position < 0 and fill == BUCKET_SLOTS:
            bucket = (bucket + 1) % self._buckets
            start = bucket * BUCKET_BYTES
            fill = self._fills[bucket]
            position = self._digests.find(digest, start, start + fill * DIGEST_BYTES)
        return ABSENT if position < 0 else self._offsets[position // DIGEST_BYTES]

    def _allocate(self) -> None:
        slots = self._buckets * BUCKET_SLOTS
        self._digests = bytearray(slots * DIGEST_BYTES)
        self._offsets = array("q", [0]) * slots
        self._fills = bytearray(self._buckets)


class OffsetMap:
    """Keys to their last offsets, up to a budget of bytes."""

    __slots__ = ("_recent", "_recent_max", "_settled", "capacity", "last_offset")

    def __init__(self, budget_bytes: int, load_factor: float = LOAD_FACTOR) -> None:
        recent_bytes = int(budget_bytes * RECENT_SHARE)
        self._settled = SettledOffsets(budget_bytes - recent_bytes, load_factor)
        if self._settled.capacity:
            self._recent_max = max(1, recent_bytes // RECENT_ENTRY_BYTES)
        else:
            # Too little for even one bucket: the dict has it all.
            self._recent_max = int(budget_bytes * load_factor) // RECENT_ENTRY_BYTES
        if not self._recent_max:
            raise OffsetMapTooSmall(budget_bytes)
        self.capacity = max(self._recent_max, self._settled.capacity)
        self._recent: dict[bytes, int] = {}
        self.last_offset = ABSENT

    def __len__(self) -> int:
        """Keys held; one that is both recent and settled counts twice until the map nears its capacity."""
        return self._settled.size + len(self._recent)

    @property
    def utilisation(self) -> float:
        """How full the map is, from 0 to 1."""
        return len(self) / self.capacity

    def put(self, offset: int, key: bytes) -> bool:
        """Enter a key, or return false if the map is full and this offset has to wait for another pass."""
        return self.put_all(offset, [(0, key, True)])

    def put_all(self, base_offset: int, records: Iterable[KeyedRecord]) -> bool:
        """Enter the keys of a batch, in order; false if the map filled up on the way."""
        recent, recent_max = self._recent, self._recent_max
        offset = self.last_offset
        for delta, key, _ in records:
            if key is None:
                continue
            if len(recent) >= recent_max:
                if not self._make_room():
                    self.last_offset = offset
                    return False
                recent = self._recent
            offset = base_offset + delta
            # `name_of` in place: a call per record would cost more than all the rest.
            recent[key if len(key) <= NAME_BYTES_MAX else long_name(key)] = offset
        self.last_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The last offset entered for a key, or ABSENT."""
        return self.finder()(key)

    def finder(self) -> Callable[[bytes], int]:
        """What `get` does, without the way there; to be asked for anew after each `put`."""
        recent_get = self._recent.get
        settled_get = self._settled.get

        def find_recent(key: bytes) -> int:
            return recent_get(key if len(key) <= NAME_BYTES_MAX else long_name(key), ABSENT)

        def find(key: bytes) -> int:
            name = key if len(key) <= NAME_BYTES_MAX else long_name(key)
            found = recent_get(name, ABSENT)
            return settled_get(name) if found == ABSENT else found

        return find if self._settled.size else find_recent

    def _make_room(self) -> bool:
        """Settle the recent entries if they fit, which they do as long as all of them could be new keys."""
        if self._settled.size + len(self._recent) > self._settled.capacity:
            return False
        self._settled.put(self._recent.items())
        self._recent = {}
        return True


def long_name(key: bytes) -> bytes:
    """What stands for a long key in the map; a short one stands for itself."""
    return blake2b(key, digest_size=LONG_KEY_DIGEST_BYTES).digest()
