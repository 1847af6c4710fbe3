"""Which partition a row goes to: by its key as Java's producer does it, or to one partition for a while.

A key is hashed with murmur2, for a whole column at once. Rows without a key stick to a partition for about a
batch, so that batches are full; the next one is chosen at random, the less likely the more it has waiting.
Nothing here knows of connections or time.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.records.arrow_input import sizes_in
from headrace.records.arrow_varints import Bytes, Longs

Words = NDArray[np.uint32]
Partitions = NDArray[np.int32]

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_SHIFT: Final = 24
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF
_WORD: Final = 4
# A round over all keys that are long enough costs as much as hashing about this many one after the other.
_ROUND_MIN: Final = 24
_TO_BE_CHOSEN: Final = -1


def murmur2(key: bytes) -> int:
    """The hash of one key, as an unsigned number."""
    whole = len(key) // _WORD * _WORD
    mixed = _mixed(np.frombuffer(key[:whole], "<u4")).tolist()
    return _finished(_folded(_SEED ^ len(key), mixed), key[whole:])


def partition_of_key(key: bytes, count: int) -> int:
    """The partition of one key among `count`."""
    return (murmur2(key) & _POSITIVE) % count


def partitions_of_keys(keys: pa.Array, count: int) -> Partitions:
    """The partition of each key of a `binary` column among `count`; what null gets means nothing."""
    hashes = murmur2_column(keys)
    return ((hashes & np.uint32(_POSITIVE)) % np.uint32(count)).astype(np.int32)


def murmur2_column(keys: pa.Array) -> Words:
    """The hash of each key of a `binary` column."""
    sizes = np.maximum(sizes_in(keys), 0)
    edges = np.frombuffer(keys.buffers()[1], np.int32, keys.offset + len(keys) + 1)
    starts = edges[keys.offset : keys.offset + len(keys)].astype(np.int64)
    return _hash(_bytes_of(keys), starts, sizes)


def _bytes_of(column: pa.Array) -> Bytes:
    data = column.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _hash(data: Bytes, starts: Longs, sizes: Longs) -> Words:
    hashes: Words = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    words = sizes // _WORD
    whole = words * _WORD
    longest = int(words.max()) if words.size else 0
    if longest:
        _fold_words(data, starts, words, longest, hashes)
    _fold_tails(data, starts + whole, sizes - whole, hashes)
    hashes ^= hashes >> np.uint32(13)
    hashes *= np.uint32(_MULTIPLIER)
    hashes ^= hashes >> np.uint32(15)
    return hashes


def _fold_words(data: Bytes, starts: Longs, words: Longs, longest: int, hashes: Words) -> None:
    """The whole words of every key: one round per word, over the keys that are long enough."""
    # A view of the word at every byte: keys begin anywhere.
    every = np.ndarray((data.size - _WORD + 1,), "<u4", data, strides=(1,))
    left: Longs | None = None
    for index in range(longest):
        if int(words.min() if left is None else words[left].min()) <= index:
            left = np.flatnonzero(words > index)
        if left is None:
            hashes *= np.uint32(_MULTIPLIER)
            hashes ^= _mixed(every[starts + index * _WORD])
        elif left.size < _ROUND_MIN:
            _fold_rest(data, starts, words, index, left, hashes)
            return
        else:
            mixed = _mixed(every[starts[left] + index * _WORD])
            hashes[left] = hashes[left] * np.uint32(_MULTIPLIER) ^ mixed


def _fold_rest(data: Bytes, starts: Longs, words: Longs, index: int, left: Longs, hashes: Words) -> None:
    """All words from `index` on of a few long keys."""
    for row in left.tolist():
        begin = int(starts[row])
        rest = data[begin + index * _WORD : begin + int(words[row]) * _WORD].tobytes()
        hashes[row] = _folded(int(hashes[row]), _mixed(np.frombuffer(rest, "<u4")).tolist())


def _fold_tails(data: Bytes, starts: Longs, sizes: Longs, hashes: Words) -> None:
    """The up to three bytes after the whole words."""
    for byte in (2, 1, 0):
        longer = np.flatnonzero(sizes > byte)
        if longer.size:
            hashes[longer] ^= data[starts[longer] + byte].astype(np.uint32) << np.uint32(8 * byte)
    longer = np.flatnonzero(sizes)
    hashes[longer] *= np.uint32(_MULTIPLIER)


def _mixed(words: Words) -> Words:
    mixed = words * np.uint32(_MULTIPLIER)
    mixed ^= mixed >> np.uint32(_SHIFT)
    mixed *= np.uint32(_MULTIPLIER)
    return mixed


def _folded(seed: int, mixed: Sequence[int]) -> int:
    reached = seed
    for word in mixed:
        reached = (reached * _MULTIPLIER & _MASK) ^ word
    return reached


def _finished(reached: int, tail: bytes) -> int:
    if tail:
        reached = ((reached ^ int.from_bytes(tail, "little")) * _MULTIPLIER) & _MASK
    reached ^= reached >> 13
    reached = reached * _MULTIPLIER & _MASK
    return reached ^ reached >> 15


class StickyPartitioner:
    """Partitions for the rows of one topic that have neither key nor partition, a batch's worth at a time."""

    __slots__ = ("_batch_bytes", "_bytes_open", "_bytes_since_switch", "_random", "partition")

    def __init__(self, batch_bytes: int, random: Callable[[], float]) -> None:
        self._batch_bytes = max(batch_bytes, 1)
        self._random = random
        #: Where the next row goes unless the batch is full; -1 as long as that is to be chosen.
        self.partition = _TO_BE_CHOSEN
        self._bytes_open = 0
        self._bytes_since_switch = 0

    def assign(self, sizes: Longs, weights: Mapping[int, int]) -> Partitions:
        """A partition for each row, given what the rows take; `weights` says how much each is preferred."""
        assigned = np.empty(sizes.size, np.int32)
        reached = np.cumsum(sizes)
        row, before = 0, 0
        while row < sizes.size:
            if self.partition not in weights or self._is_full(int(sizes[row])):
                self._switch(weights)
            room = self._batch_bytes - self._bytes_open
            end = max(int(np.searchsorted(reached, before + room, "right")), row + 1)
            assigned[row:end] = self.partition
            taken = int(reached[end - 1]) - before
            self._bytes_open += taken
            self._bytes_since_switch += taken
            row, before = end, int(reached[end - 1])
        return assigned

    def batch_closed(self, partition: int) -> None:
        """A partition's open batch was sent before it was full; the next row begins another one."""
        if partition != self.partition:
            return
        self._bytes_open = 0
        if self._bytes_since_switch >= self._batch_bytes:
            self.partition = _TO_BE_CHOSEN

    def _is_full(self, size: int) -> bool:
        return self._bytes_open > 0 and self._bytes_open + size > self._batch_bytes

    def _switch(self, weights: Mapping[int, int]) -> None:
        chosen = list(weights)
        heights = list(accumulate(weights.values()))
        drawn = int(self._random() * heights[-1])
        self.partition = chosen[int(np.searchsorted(heights, drawn, "right"))]
        self._bytes_open = self._bytes_since_switch = 0


def weights_of(waiting: Mapping[int, int]) -> dict[int, int]:
    """How much to prefer each partition, given how many batches wait for it: the fewer, the more."""
    most = max(waiting.values()) + 1
    return {partition: most - count for partition, count in waiting.items()}
