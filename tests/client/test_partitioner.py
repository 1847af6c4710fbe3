"""Keys go where Java's producer sends them; rows without a key fill one batch at a time."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.partitioner import (
    StickyPartitioner,
    murmur2,
    murmur2_column,
    partition_of_key,
    partitions_of_keys,
    weights_of,
)
from headrace.testing.entropy import SeededEntropy

# Printed by `org.apache.kafka.common.utils.Utils.murmur2` of Apache Kafka 4.3.1.
JAVA = {
    "": 275646681,
    "18": -73356581,
    "390b": 1538845942,
    "5d4a": 1514300328,
    "92471a": -121338273,
    "5dcab391": 1900526292,
    "a147e1f3": -889265211,
    "bfe793d9fc": 321539468,
    "166fc2edcea4": 75928089,
    "0705e6c8b71c": 1706701625,
    "2edd1479f19532": -1167415094,
    "364cf461b317c99f": -711255929,
    "8f814e38d93995b6": 1074368891,
    "c46434afeb50781ae0": -565630283,
    "b66c499800da641a22a4": -419295803,
    "7ae22a00a4174c64b514": -832258393,
    "da03c5c5347dd8728b2342": 1395613407,
    "9a0168a981181c9a324f0aec": -1482654188,
    "463dffe94c73ba9c9960c80b": 1139469662,
    "e9bf8a819b01f5529ebc20efac": 1755615577,
    "daf2ce71419a6512500fcbc182e1": -853105074,
    "b7631557828266251de9a5922a08": 647828885,
    "590b94b3ede70bfeb7c6e8d2988f49": 954584036,
    "ec0958b9d72ecb53418e134a23dd84dc": 1964917934,
    "6ebdbbc1d586f9d6d6c93e220a5d0110": 16020731,
    "438fd8e801b24847eafa8ebbfe41e1be58": -1704393435,
    "492a58e7cc5791c758218f6b8a0cd56d9d78": 1644533419,
    "0e33af179c6689465024424cc8942db5b9cf": 1162361904,
    "f95908d5ef4d8c7c468cc00866e1c466630d8f": -1890905584,
    "0780a35a9b91e79e364d03868055d669c03accc8": 2097983309,
    "f7df46f0f2420dd8af0ff55ca6af8911a2ce983c": -584477186,
    "809acf39c16a6fb4548b627bd393a4e4f45730c31c": 687900195,
    "66b0462ee4f80a716b1b9d4e95058b2b1dbb7de2f146": 244369497,
    "aa5cd164323bd3336f03b562919fee92d2262d6a87de": -758586657,
    "536aa67a9e53906dad44802ef359452ffe9e64214b97e6": -1281532828,
}


@pytest.mark.parametrize(("key", "expected"), JAVA.items())
def test_one_key_hashes_as_in_java(key: str, expected: int) -> None:
    assert murmur2(bytes.fromhex(key)) == expected & 0xFFFFFFFF


def test_a_column_of_keys_hashes_as_in_java() -> None:
    keys = pa.array([bytes.fromhex(key) for key in JAVA], pa.binary())
    assert murmur2_column(keys).tolist() == [value & 0xFFFFFFFF for value in JAVA.values()]


@given(st.lists(st.none() | st.binary(max_size=30), max_size=60), st.integers(0, 10), st.integers(1, 1000))
def test_a_column_hashes_as_its_keys_do_one_by_one(
    keys: list[bytes | None], start: int, partitions: int
) -> None:
    column = pa.array(keys, pa.binary())[start:]
    found = partitions_of_keys(column, partitions).tolist()
    assert len(found) == len(keys[start:])
    for partition, key in zip(found, keys[start:], strict=True):
        if key is not None:
            assert partition == partition_of_key(key, partitions)


def test_very_long_and_short_keys_hash_together() -> None:
    keys = [b"x" * 5_001, b"", b"ab", *(b"key-%d" % number for number in range(100))]
    assert murmur2_column(pa.array(keys, pa.binary())).tolist() == [murmur2(key) for key in keys]


def test_an_empty_key_is_a_key() -> None:
    assert partitions_of_keys(pa.array([b""], pa.binary()), 10).tolist() == [partition_of_key(b"", 10)]


def sizes(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def sticky(batch_bytes: int = 100) -> StickyPartitioner:
    return StickyPartitioner(batch_bytes, SeededEntropy(1).random)


EQUAL = dict.fromkeys(range(50), 1)


def test_rows_stay_in_a_partition_until_a_batch_is_full() -> None:
    assigned = sticky().assign(sizes(*[30] * 9), EQUAL).tolist()
    assert assigned == [assigned[0]] * 3 + [assigned[3]] * 3 + [assigned[6]] * 3
    assert len(set(assigned)) == 3


def test_a_batch_goes_on_in_the_next_call() -> None:
    partitioner = sticky()
    first = partitioner.assign(sizes(30, 30), EQUAL).tolist()
    following = partitioner.assign(sizes(30, 30), EQUAL).tolist()
    assert following[0] == first[0]
    assert following[1] != first[0]


def test_a_row_larger_than_a_batch_has_one_for_itself() -> None:
    assigned = sticky().assign(sizes(500, 500, 10), EQUAL).tolist()
    assert len(set(assigned)) == 3


def test_a_batch_that_was_sent_early_is_followed_by_a_whole_one_in_the_same_partition() -> None:
    partitioner = sticky()
    (chosen,) = partitioner.assign(sizes(60), EQUAL).tolist()
    partitioner.batch_closed(chosen)
    assert partitioner.assign(sizes(60, 30), EQUAL).tolist() == [chosen, chosen]
    partitioner.batch_closed(chosen)
    assert partitioner.assign(sizes(10), EQUAL).tolist() != [chosen]


def test_a_partition_that_is_no_longer_to_be_had_is_left() -> None:
    partitioner = sticky()
    (chosen,) = partitioner.assign(sizes(10), EQUAL).tolist()
    others = dict.fromkeys(EQUAL.keys() - {chosen}, 1)
    assert partitioner.assign(sizes(10), others).tolist() != [chosen]


def test_partitions_with_much_waiting_are_chosen_seldom() -> None:
    assert weights_of({0: 0, 1: 3, 2: 1}) == {0: 4, 1: 1, 2: 3}
    partitioner = sticky(1)
    chosen = partitioner.assign(sizes(*[1] * 8_000), weights_of({0: 0, 1: 3, 2: 1})).tolist()
    assert [round(chosen.count(partition) / 1_000) for partition in range(3)] == [4, 1, 3]
