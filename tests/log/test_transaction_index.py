"""The index of aborted transactions."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.log.index_errors import CorruptIndex, IndexOutOfOrder
from headrace.log.transaction_index import AbortedTransaction, TransactionIndex
from headrace.testing.memory_disk import MemoryDisk
from tests.support_segment import kafka_files

PATH = "/00000000000000000000.txnindex"


def new_index(*transactions: AbortedTransaction) -> tuple[MemoryDisk, TransactionIndex]:
    disk = MemoryDisk()
    index = TransactionIndex(disk, PATH, 0)
    for transaction in transactions:
        index.append(transaction)
    return disk, index


ONE = AbortedTransaction(producer_id=5, first_offset=0, last_offset=10, last_stable_offset=11)
TWO = AbortedTransaction(producer_id=6, first_offset=5, last_offset=15, last_stable_offset=13)
THREE = AbortedTransaction(producer_id=7, first_offset=18, last_offset=35, last_stable_offset=25)


def test_there_is_no_file_without_an_aborted_transaction() -> None:
    disk, index = new_index()
    assert index.is_empty
    assert list(index) == []
    assert index.search(0, 100) == ([], False)
    index.reset()
    index.truncate_to(0)
    index.sync()
    index.rename(PATH + ".deleted")
    index.delete()
    assert disk.list_directory("/") == []


def test_entries_are_written_as_kafka_writes_them() -> None:
    disk, _ = new_index(ONE, TWO)
    assert disk.read(PATH) == pack(">hqqqq", 0, 5, 0, 10, 11) + pack(">hqqqq", 0, 6, 5, 15, 13)


def test_kafkas_own_file_is_read_and_written_alike() -> None:
    content = kafka_files("clean-shutdown", "transactional-0")["00000000000000000005.txnindex"]
    disk = MemoryDisk()
    disk.open(PATH, create=True).append(content)
    found = list(TransactionIndex(disk, PATH, 5))
    assert len(found) == 2
    copy = TransactionIndex(disk, "/copy", 5)
    for transaction in found:
        copy.append(transaction)
    assert disk.read("/copy") == content


def test_last_offsets_must_grow() -> None:
    _, index = new_index(TWO)
    with pytest.raises(IndexOutOfOrder):
        index.append(ONE)


def test_a_search_finds_what_overlaps_and_says_whether_to_go_on() -> None:
    _, index = new_index(ONE, TWO, THREE)
    assert index.search(0, 100) == ([ONE, TWO, THREE], False)
    assert index.search(11, 18) == ([TWO], True)
    assert index.search(16, 18) == ([], True)
    assert index.search(0, 5) == ([ONE], True)


@given(
    bounds=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), max_size=20),
    fetch=st.integers(0, 400),
    length=st.integers(1, 100),
)
def test_nothing_that_overlaps_is_missed(bounds: list[tuple[int, int]], fetch: int, length: int) -> None:
    transactions = []
    last = 0
    for reach, gap in bounds:
        last += gap
        transactions.append(AbortedTransaction(1, max(0, last - reach), last, last + 1))
    _, index = new_index(*transactions)
    wanted = [
        each for each in transactions if each.last_offset >= fetch and each.first_offset < fetch + length
    ]
    found, is_complete = index.search(fetch, fetch + length)
    missed = [each for each in wanted if each not in found]
    assert set(found) <= set(wanted)
    assert not (missed and not is_complete)
    assert all(each.last_offset >= fetch + length for each in missed)


def test_truncation_drops_what_ended_later() -> None:
    disk, index = new_index(ONE, TWO, THREE)
    index.truncate_to(36)
    assert list(index) == [ONE, TWO, THREE]
    index.truncate_to(15)
    assert list(index) == [ONE]
    index.append(TWO)
    assert list(TransactionIndex(disk, PATH, 0)) == [ONE, TWO]
    index.truncate_to(0)
    assert index.is_empty
    index.append(ONE)


def test_a_reset_index_starts_over() -> None:
    disk, index = new_index(TWO)
    index.reset()
    index.append(ONE)
    assert list(TransactionIndex(disk, PATH, 0)) == [ONE]


def test_impossible_entries_are_refused() -> None:
    disk, _ = new_index(ONE)
    with pytest.raises(CorruptIndex, match="base offset 20"):
        TransactionIndex(disk, PATH, 20).sanity_check()
    disk.flip_bit(PATH, 1, 0)
    with pytest.raises(CorruptIndex, match="version 1"):
        list(TransactionIndex(disk, PATH, 0))


def test_many_entries_are_read_in_blocks() -> None:
    _, index = new_index(*(AbortedTransaction(1, number, number, number) for number in range(3000)))
    assert [each.last_offset for each in index] == list(range(3000))
